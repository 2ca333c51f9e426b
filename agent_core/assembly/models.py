"""Which adapter opens which model: the only place, with `sessions`, that names adapters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent_core.kernel import Clock
from agent_core.kernel.errors import ConfigError
from agent_core.providers import Api, Model, ModelFacts
from agent_core.providers.access import Access
from agent_core.providers.adapters.anthropic_messages import AnthropicMessages
from agent_core.providers.adapters.embedded import EMBEDDED_FACTS, EmbeddedModel
from agent_core.providers.adapters.openai_completions import OpenAICompletions
from agent_core.providers.catalogue import ProviderFacts
from agent_core.providers.http import HttpPool
from agent_core.providers.models_file import load_models_file
from agent_core.providers.registry import ModelRegistry, Opener
from agent_core.resources.paths import AppPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSet:
    """The models of a session."""

    registry: ModelRegistry

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        """What was wrong in models.json."""
        return self.registry.problems


async def load_models(
    *,
    paths: AppPaths,
    env: Mapping[str, str],
    clock: Clock,
    pool: HttpPool,
    block_images: bool = False,
) -> ModelSet:
    """Read what models there are. Never fails because of a broken file.

    Args:
        paths: Where models.json lies.
        env: Where keys are looked up.
        clock: Time, for the embedded model.
        pool: The connections to use; the caller closes it.
        block_images: Ask every model as one that sees none: no picture leaves, wherever it came from.
    """
    registry = ModelRegistry(
        openers=_openers(pool, clock, block_images=block_images),
        environment=env,
        file=await load_models_file(paths.models),
        extra=(_embedded(),),
    )
    return ModelSet(registry=registry)


def _embedded() -> ProviderFacts:
    """Give the provider that is no network service: it needs no key, and is used only when named."""
    return ProviderFacts(
        id=EMBEDDED_FACTS.provider,
        name=EMBEDDED_FACTS.name,
        api="embedded",
        base_url="",
        keyless=True,
        models=(EMBEDDED_FACTS,),
    )


def _openers(pool: HttpPool, clock: Clock, *, block_images: bool) -> Mapping[Api, Opener]:
    def seen(facts: ModelFacts) -> ModelFacts:
        return replace(facts, images=False) if block_images else facts

    def openai(facts: ModelFacts, access: Access) -> Model:
        return OpenAICompletions(seen(facts), access=access, pool=pool)

    def anthropic(facts: ModelFacts, access: Access) -> Model:
        return AnthropicMessages(seen(facts), access=access, pool=pool)

    def embedded(_facts: ModelFacts, _access: Access) -> Model:
        return EmbeddedModel(clock)

    return {
        "openai-completions": openai,
        "anthropic-messages": anthropic,
        "embedded": embedded,
    }
