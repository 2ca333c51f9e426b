"""The models of a workspace: which adapter opens which, the first one of a session, and the default."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

import anyio.to_thread
from anyio import to_thread
from msgspec.structs import replace

from agent_core.events import ThinkingLevel
from agent_core.kernel import Clock
from agent_core.kernel.environment import EnvironmentWith
from agent_core.kernel.errors import ConfigError, ModelUnknown
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.providers import Model, ModelInfo, WireApi
from agent_core.providers.adapters.embedded import EMBEDDED_FACTS
from agent_core.providers.auth.credentials import Authenticator
from agent_core.providers.auth.store import AuthStore
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.catalog.models_file import load_models_file
from agent_core.providers.http.client import HttpPool
from agent_core.providers.messages.request_options import LEVELS
from agent_core.providers.registry import (
    NOTHING,
    ChosenModel,
    ExtensionModels,
    ModelFactory,
    ModelRegistry,
)
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.file import change_settings_now
from agent_core.resources.settings.layers import Layer, load_settings
from agent_core.resources.settings.values import SettingsValues
from agent_core.session.model_selection import Choosable
from agent_core.transcript.context import ModelChoice
from agent_core.workspace.permissions.policy.commands.programs import outside_path

NEEDED = frozenset({"HOME", "PATH"})
"""Variables without which no program runs well; a key is never in them, though a header may name them."""

_log = logging.getLogger(__name__)


class HttpModelFactory(Protocol):
    """The class of an adapter that asks over HTTP."""

    def __call__(self, model: ModelInfo, *, access: Authenticator, pool: HttpPool) -> Model:
        """Make a model that is ready to be asked."""
        ...


class ModelSet(Value, frozen=True, kw_only=True):
    """The models of a session."""

    registry: ModelRegistry

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        """Problems found in models.json."""
        return self.registry.problems

    @property
    def secret_variables(self) -> frozenset[str]:
        """The variables that may hold a key, as long as extensions bring what they bring now."""
        return self.registry.secret_variables - NEEDED

    def hold_secrets(self, redactor: Redactor, env: Mapping[str, str]) -> None:
        """Have their values taken out of whatever is shown, before they are used."""
        redactor.hold(*(env.get(name) for name in self.secret_variables))


async def load_models(
    *,
    paths: AppPaths,
    env: Mapping[str, str],
    clock: Clock,
    pool: HttpPool,
    roots: Sequence[Path] = (),
    block_images: bool = False,
    redactor: Redactor | None = None,
    brought: ExtensionModels = NOTHING,
) -> ModelSet:
    """Load the available models. Never fails because of a broken file.

    Args:
        paths: Locate models.json and auth.json.
        env: Environment in which API keys are looked up.
        clock: Time source of the embedded model.
        pool: The connections to use; the caller closes it.
        roots: The folders of the workspace: commands of the user's files that print a key find no program in them.
        redactor: Registers every key that is stored or used.
        brought: Providers and models that extensions contribute.
        block_images: Treat every model as one without image input: no image is sent, whatever its source.
    """
    auth = AuthStore(paths.auth, clock=clock, redactor=redactor)
    await auth.load()
    outside = lru_cache(maxsize=8)(partial(outside_path, roots=tuple(roots)))
    if (path := env.get("PATH")) is not None:
        # The disk is looked at here, once, and not where the value is used.
        _ = await to_thread.run_sync(outside, path)
    registry = ModelRegistry(
        auth=auth,
        redactor=redactor,
        openers=_openers(pool, clock, block_images=block_images),
        environment=EnvironmentWith(env, name="PATH", changed=outside),
        file=await load_models_file(paths.models),
        models_path=paths.models,
        extra=(_embedded(),),
        brought=brought,
    )
    return ModelSet(registry=registry)


def _embedded() -> ProviderInfo:
    """Return the provider that is no network service: it needs no key, and is used only when named."""
    return ProviderInfo(
        id=EMBEDDED_FACTS.provider,
        name=EMBEDDED_FACTS.name,
        api="embedded",
        base_url="",
        keyless=True,
        models=(EMBEDDED_FACTS,),
    )


def _openers(pool: HttpPool, clock: Clock, *, block_images: bool) -> Mapping[WireApi, ModelFactory]:
    def over_http(find: Callable[[], HttpModelFactory]) -> ModelFactory:
        def opened(facts: ModelInfo, access: Authenticator) -> Model:
            seen = replace(facts, images=False) if block_images else facts
            return find()(seen, access=access, pool=pool)

        return opened

    return {
        "anthropic-messages": over_http(_anthropic),
        "openai-completions": over_http(_chat),
        "openai-responses": over_http(_responses),
        "azure-openai-responses": over_http(_azure),
        "google-generative-ai": over_http(_google),
        "google-vertex": over_http(_vertex),
        "bedrock-converse-stream": over_http(_bedrock),
        "mistral-conversations": over_http(_mistral),
        "ollama-chat": over_http(_ollama),
        "embedded": lambda _facts, _access: _embedded_model(clock),
    }


# A session asks one of these: each is loaded when a model of its kind is opened.


def _anthropic() -> HttpModelFactory:
    from agent_core.providers.adapters.anthropic_messages import (  # noqa: PLC0415 - see above
        AnthropicMessages,
    )

    return AnthropicMessages


def _chat() -> HttpModelFactory:
    from agent_core.providers.adapters.openai_completions import (  # noqa: PLC0415 - see above
        OpenAICompletions,
    )

    return OpenAICompletions


def _responses() -> HttpModelFactory:
    from agent_core.providers.adapters.openai_responses import (  # noqa: PLC0415 - see above
        OpenAIResponses,
    )

    return OpenAIResponses


def _embedded_model(clock: Clock) -> Model:
    from agent_core.providers.adapters.embedded.model import (  # noqa: PLC0415 - see above
        EmbeddedModel,
    )

    return EmbeddedModel(clock)


def _azure() -> HttpModelFactory:
    from agent_core.providers.adapters.azure_openai_responses import (  # noqa: PLC0415 - see above
        AzureOpenAIResponses,
    )

    return AzureOpenAIResponses


def _google() -> HttpModelFactory:
    from agent_core.providers.adapters.google_generative_ai import (  # noqa: PLC0415 - see above
        GoogleGenerativeAI,
    )

    return GoogleGenerativeAI


def _vertex() -> HttpModelFactory:
    from agent_core.providers.adapters.google_vertex import GoogleVertex  # noqa: PLC0415 - see above

    return GoogleVertex


def _bedrock() -> HttpModelFactory:
    from agent_core.providers.adapters.bedrock_converse import (  # noqa: PLC0415 - see above
        BedrockConverse,
    )

    return BedrockConverse


def _mistral() -> HttpModelFactory:
    from agent_core.providers.adapters.mistral_conversations import (  # noqa: PLC0415 - see above
        MistralConversations,
    )

    return MistralConversations


def _ollama() -> HttpModelFactory:
    from agent_core.providers.adapters.ollama_chat import OllamaChat  # noqa: PLC0415 - see above

    return OllamaChat


async def keep_first_model(
    chosen: ModelInfo | None,
    *,
    before: ModelInfo | None,
    paths: AppPaths,
) -> bool:
    """Write the model into the user's settings, for new sessions, where there was none and the settings name none.

    Args:
        chosen: The model in force now.
        before: The model in force before.
        paths: Where the user's settings are.

    Returns:
        Whether it was written.
    """
    # The embedded model is for demonstrations; other sessions are not to begin with it.
    if before is not None or chosen is None or chosen.api == "embedded":
        return False
    file = paths.settings
    try:
        values = (await load_settings((Layer(name="user", content=file),))).values
        if values.default_provider or values.default_model:
            return False
        await anyio.to_thread.run_sync(
            change_settings_now,
            file,
            {"defaultProvider": chosen.provider, "defaultModel": chosen.id},
        )
    except ConfigError as error:
        # The choice is in force all the same; `tiller doctor` tells of the file.
        _log.warning("the first model is not kept: %s", error)
        return False
    return True


class RequestedModel(Value, frozen=True, kw_only=True):
    """Requested model and thinking level of the session's opener; None: not requested."""

    model: str | None
    thinking: ThinkingLevel | None


class InitialModelChoice(Value, frozen=True, kw_only=True):
    """Initial model and thinking level of a session."""

    model: Model | None
    why_no_model: str
    """Error text for prompts sent while there is no model; empty when there is a model."""
    look_again: Callable[[], Model | None]
    """Chooses again while there is no model: a key may have been added since."""
    thinking: ThinkingLevel
    asked_for: frozenset[Choosable]
    """Requested choices that the session file does not hold yet."""
    notices: tuple[str, ...]
    """Notices for the user about the choice, one sentence each."""


def choose_start(
    wishes: RequestedModel,
    *,
    values: SettingsValues,
    registry: ModelRegistry,
    context: ModelChoice,
    now: Callable[[], SettingsValues] | None = None,
) -> InitialModelChoice:
    """Choose the request, else the session's earlier choice, else the settings.

    Args:
        wishes: The request.
        values: The settings.
        registry: The models.
        context: Context of the session's current branch, with its earlier choice.
        now: Returns the settings for a later choice; None: they stay the same.

    Raises:
        ModelUnknown: The requested model cannot be used.
    """

    def choose(said: SettingsValues) -> ChosenModel:
        provider, name = said.default_provider, said.default_model
        return registry.choose(
            request=wishes.model,
            session=context.model,
            settings=f"{provider}/{name}" if provider and name else name or None,
            provider=provider or None,
        )

    choice = choose(values)
    model, trouble = _opened(registry, choice)
    thinking = wishes.thinking or choice.thinking
    # Without patterns there is nothing that could be wrong with them.
    problems = registry.scope(values.scoped_models).problems if values.scoped_models else ()
    return InitialModelChoice(
        model=model,
        why_no_model="" if model else trouble,
        look_again=lambda: _opened(registry, choose(values if now is None else now()))[0],
        thinking=thinking or _supported_level(context.thinking) or values.default_thinking_level,
        asked_for=_asked_for(wishes, model=model, thinking=thinking, context=context),
        notices=(*((trouble,) if model and trouble else ()), *problems),
    )


def _asked_for(
    wishes: RequestedModel,
    *,
    model: Model | None,
    thinking: ThinkingLevel | None,
    context: ModelChoice,
) -> frozenset[Choosable]:
    asked_for: set[Choosable] = set()
    if wishes.model is not None and model is not None and model.facts.ref != context.model:
        asked_for.add("model")
    if thinking is not None and thinking != context.thinking:
        asked_for.add("thinking")
    return frozenset(asked_for)


def _opened(registry: ModelRegistry, choice: ChosenModel) -> tuple[Model | None, str]:
    message = choice.fallback_message or ""
    if choice.model is None:
        return None, message
    try:
        return registry.open(choice.model), message
    except ModelUnknown as error:
        return None, str(error)


def _supported_level(level: str | None) -> ThinkingLevel | None:
    """A session of a later version may have a level that this one has not."""
    return next((one for one in LEVELS if one == level), None)
