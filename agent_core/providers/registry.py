"""The registry of models: those of the catalogue, of files and of extensions, and the model of a reference."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from msgspec.structs import replace

from agent_core.events import ThinkingLevel
from agent_core.kernel.errors import ConfigError, ModelUnknown
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.auth.credentials import (
    Authenticator,
    CredentialSources,
    ProviderCredentials,
    ProviderState,
    in_environment,
    state_of,
)
from agent_core.providers.auth.oauth import OAuthFacts
from agent_core.providers.auth.store import AuthRead, AuthStore
from agent_core.providers.catalog.catalogue import (
    FoundServer,
    ModelScope,
    Named,
    ProviderInfo,
    builtin_providers,
    exactly,
    local_model,
    local_servers,
    matching,
    without_date,
    without_level,
)
from agent_core.providers.catalog.models_file import (
    CONTEXT_WINDOW,
    MAX_TOKENS,
    ModelsFile,
    ProviderShape,
    WrittenAccess,
    apply_models_file,
    reload_models_file,
    written_access,
)
from agent_core.providers.messages.request_options import LEVELS
from agent_core.providers.model import Model, ModelInfo, WireApi

ExtensionModelFactory = Callable[[ModelInfo, Authenticator], Model]
"""Makes a model ready to be asked."""


class ExtensionModels(Value, frozen=True, kw_only=True):
    """Everything by the name of the provider."""

    shapes: Mapping[str, ProviderShape] = msgspec.field(default_factory=dict[str, ProviderShape])
    oauth: Mapping[str, OAuthFacts] = msgspec.field(default_factory=dict[str, OAuthFacts])
    adapters: Mapping[str, ExtensionModelFactory] = msgspec.field(
        default_factory=dict[str, ExtensionModelFactory]
    )
    """Answer in the place of those of the wire format."""


NOTHING = ExtensionModels()


ModelFactory = Callable[[ModelInfo, Authenticator], Model]
"""Makes a model of one API, ready to be asked."""

NO_MODEL = (
    "no model can be used: sign in (tiller auth login; or set ANTHROPIC_API_KEY or OPENAI_API_KEY), or choose a model of a "
    "server on this machine (tiller models use; Ollama, LM Studio, llama.cpp and vLLM are found while they run)"
)
SUGGESTIONS = 3
NEVER_BY_CHANCE = ("embedded",)
"""Providers that are used only when they are named."""


class ChosenModel(Value, frozen=True, kw_only=True):
    """The model to use."""

    model: ModelInfo | None
    fallback_message: str | None = None
    """Set when it is not the one that was wished for, or when there is none: why, for the user."""
    thinking: ThinkingLevel | None = None
    """How hard it shall think, if its name said so."""


class ModelRegistry:
    """Registry of the known models, and of which of them can be used.

    `problems` are the errors in models.json and auth.json; their valid parts are used. `secret_variables` are the
    environment variables that may hold a key of some provider. `servers` are the model servers of this machine that
    answered at the last look.
    """

    def __init__(
        self,
        *,
        openers: Mapping[WireApi, ModelFactory],
        environment: Mapping[str, str],
        file: ModelsFile | None = None,
        models_path: Path | None = None,
        extra: Sequence[ProviderInfo] = (),
        auth: AuthStore | None = None,
        keys: Mapping[str, str] | None = None,
        redactor: Redactor | None = None,
        brought: ExtensionModels = NOTHING,
    ) -> None:
        """Lay the user's files over what is known.

        Args:
            openers: The APIs that are spoken.
            environment: Where keys and addresses are looked up.
            file: The user's models.json.
            models_path: Where it is read again by `refresh`; None: it is not.
            extra: Providers besides those of the catalogue.
            auth: The user's auth.json, loaded.
            keys: Keys for this process alone, by provider; they go before all others.
            redactor: Learns of every key that is used.
            brought: Models and providers of extensions.
        """
        self._openers = openers
        self._ground = _ProviderConfig(
            file or ModelsFile(), extra, auth, keys or {}, environment, redactor
        )
        self._models_path = models_path
        self._brought = brought
        self.servers: tuple[FoundServer, ...] = ()
        self._adapters: Mapping[str, ExtensionModelFactory] = {}
        self._providers: dict[str, ProviderInfo] = {}
        self._credentials: Mapping[str, ProviderCredentials] = {}
        self.secret_variables = frozenset[str]()
        self.problems: tuple[ConfigError, ...] = ()
        self.set_extension_models(brought)

    def set_extension_models(self, brought: ExtensionModels) -> None:
        """Replace the models of extensions by these; the user's own models.json has precedence over them."""
        self._brought = brought
        table = _build_provider_table(self._ground, brought)
        self._adapters = brought.adapters
        self._providers = {provider.id: provider for provider in table.providers}
        self._credentials = table.credentials
        self.secret_variables = table.secret_variables
        self.problems = table.problems
        for server in self.servers:
            self._add_models(server)

    async def refresh(self, *, servers: Literal["keep", "find"] = "keep") -> bool:
        """Read models.json and auth.json again; return whether models.json says something else now.

        Args:
            servers: `find` asks the model servers of this machine what they have; that can be chosen until the next time.
        """
        stored, file = await run_in_thread(_read_files, self._ground, self._models_path)
        if self._ground.auth is not None:
            self._ground.auth.adopt(stored)
        changed = self._adopt_models(file)
        if servers == "find":
            self.servers = await local_servers(self.providers())
        if changed or servers == "find":
            self.set_extension_models(self._brought)
        return changed

    def _adopt_models(self, file: ModelsFile) -> bool:
        previous = self._ground.file
        if file is previous:
            return False
        same_problems = [*map(str, file.problems)] == [*map(str, previous.problems)]
        self._ground = replace(self._ground, file=file)
        return not (same_problems and file.providers == previous.providers)

    def _add_models(self, server: FoundServer) -> None:
        provider = self._providers.get(server.provider)
        if provider is None:
            return
        listed = {one.id for one in provider.models}
        more = tuple(one for one in server.models if one.id not in listed)
        self._providers[provider.id] = replace(provider, models=(*provider.models, *more))

    def providers(self) -> tuple[ProviderInfo, ...]:
        """List the providers, the known ones first."""
        return tuple(self._providers.values())

    def states(self) -> Mapping[str, ProviderState]:
        """Return the providers as they stand, by id, in the same order."""
        return {
            name: state_of(one, self._credentials[name]) for name, one in self._providers.items()
        }

    def models(self) -> tuple[ModelInfo, ...]:
        """List every model whose API is spoken."""
        return tuple(model for model in self._all_models() if model.api in self._openers)

    def auth(self, provider: str) -> Literal["ok", "missing"]:
        """Return whether a provider can be asked."""
        found = self._credentials.get(provider)
        return "ok" if found is not None and found.what_to_set() is None else "missing"

    def key_source(self, provider: str) -> str | None:
        """Return where a provider's key comes from, never the key; None: it has none."""
        found = self._credentials.get(provider)
        return None if found is None else found.source()

    def find(self, ref: str) -> ModelInfo:
        """Find a model by `provider/id`, or by its id alone when no other provider has it.

        Raises:
            ModelUnknown: There is none; the text suggests the nearest names.
        """
        everything = self._all_models()
        same = exactly(ref, everything)
        if len(same) == 1:
            return same[0]
        # Several have it: the one that can be asked is meant, if there is only one; the text for the first helps best
        # when there is none.
        ready = [model for model in same if self._can_be_asked(model)]
        if len(ready) == 1 or (same and not ready):
            return (*ready, *same)[0]
        found = None if same else self._unlisted(ref)
        if found is not None:
            return found
        raise _unknown(ref, everything, same, problems=self.problems)

    def resolve(self, ref: str) -> Named:
        """Find a model as people name one: a full name, an id, a pattern or part of it, and `:level` behind it.

        Of several that a pattern fits, those that can be asked go first, then the order of the list.

        Raises:
            ModelUnknown: There is none; the text suggests the nearest names.
        """
        bare, level = without_level(ref)
        ways: list[tuple[str, ThinkingLevel | None]] = [(ref, None), (bare, level)]
        for name, thinking in ways:
            if same := exactly(name, self._all_models()):
                model = self.find(name) if len(same) > 1 else next(iter(same))
                return Named(model=model, thinking=thinking)
        fitting = matching(bare, self._all_models())
        if fitting:
            ready = [model for model in fitting if self._can_be_asked(model)]
            return Named(model=next(iter((*ready, *fitting))), thinking=level)
        return Named(model=self.find(bare if level else ref), thinking=level)

    def usable(self, ref: str) -> ModelInfo:
        """Find a model that can be asked, as people name one.

        Raises:
            ModelUnknown: There is none of that name, or its provider has no key; the text says what to set.
        """
        return self._checked(self.resolve(ref).model)

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked, also those that are used only when they are named."""
        return tuple(model for model in self._all_models() if self._can_be_asked(model))

    def scope(self, patterns: Sequence[str]) -> ModelScope:
        """Return the models to cycle through: the matches of the patterns, or without patterns those with a key."""
        if not patterns:
            return ModelScope(models=tuple(Named(model=one) for one in self._by_chance()))
        chosen: dict[str, Named] = {}
        problems: list[str] = []
        for pattern in patterns:
            found = [one for one in self._of_pattern(pattern) if self._can_be_asked(one.model)]
            for one in found:
                _ = chosen.setdefault(one.model.ref, one)
            if not found:
                problems.append(f"scopedModels: {pattern!r} stands for no model that can be used")
        return ModelScope(models=tuple(chosen.values()), problems=tuple(problems))

    def choose(
        self,
        *,
        request: str | None = None,
        session: str | None = None,
        settings: str | None = None,
        provider: str | None = None,
    ) -> ChosenModel:
        """Choose the model of the request, else of the session, else of the settings, else the first with a key.

        Only a request may use patterns; the session and the settings name exactly one model.

        Args:
            request: A model as people name one.
            session: The full name of the model that the session had.
            settings: The full name of the default model.
            provider: The default provider, where the settings name no model: its first is meant.

        Raises:
            ModelUnknown: The request names a model that cannot be used.
        """
        if request is not None:
            named = self.resolve(request)
            return ChosenModel(model=self._checked(named.model), thinking=named.thinking)
        troubles: list[str] = []
        first = partial(_first_of, providers=self._providers, spoken=self._openers)
        wishes = (
            ("the session's model", session, self.find),
            ("the default model", settings, self.find),
            ("the default model", provider if settings is None else None, first),
        )
        for whose, name, find in wishes:
            if name is None:
                continue
            try:
                model = self._checked(find(name))
            except ModelUnknown as error:
                troubles.append(f"{whose} cannot be used: {error}")
                continue
            return ChosenModel(model=model, fallback_message=_fallback_message(troubles, model))
        model = next(self._by_chance(), None)
        if model is None:
            return ChosenModel(model=None, fallback_message="; ".join((*troubles, NO_MODEL)))
        return ChosenModel(model=model, fallback_message=_fallback_message(troubles, model))

    def open(self, ref: str | ModelInfo) -> Model:
        """Return a model ready to be asked.

        Raises:
            ModelUnknown: No such model, or it has no credentials.
        """
        model = self.usable(ref) if isinstance(ref, str) else self._checked(ref)
        access = self._credentials[model.provider].for_model(model.id)
        opener = self._adapters.get(model.provider) or self._openers[model.api]
        return opener(model, access)

    def _all_models(self) -> tuple[ModelInfo, ...]:
        return tuple(model for provider in self._providers.values() for model in provider.models)

    def _of_pattern(self, pattern: str) -> Sequence[Named]:
        try:
            one = self.resolve(pattern)
        except ModelUnknown:
            return ()
        bare, _ = without_level(pattern)
        if exactly(pattern, (one.model,)) or exactly(bare, (one.model,)):
            return (one,)
        many = matching(bare, self._all_models()) or (one.model,)
        return [Named(model=model, thinking=one.thinking) for model in many]

    def _unlisted(self, ref: str) -> ModelInfo | None:
        """Return a snapshot of a known model, or a model of a provider that has others than are listed."""
        name, _, identity = ref.partition("/")
        provider = self._providers.get(name)
        if provider is None or not identity:
            return None
        bare = without_date(identity)
        if bare is not None and (same := exactly(f"{name}/{bare}", provider.models)):
            return replace(same[0], id=identity)
        if not provider.any_model:
            return None
        if provider.keyless:
            return local_model(provider, identity)
        return provider.unlisted(identity, context_window=CONTEXT_WINDOW, max_tokens=MAX_TOKENS)

    def _checked(self, model: ModelInfo) -> ModelInfo:
        if model.api not in self._openers:
            message = f"{model.ref} speaks {model.api!r}, which is not supported yet"
            raise ModelUnknown(message)
        missing = self._credentials[model.provider].what_to_set()
        if missing is not None:
            message = f"{model.ref} has no key; {missing}"
            raise ModelUnknown(message)
        return model

    def _can_be_asked(self, model: ModelInfo) -> bool:
        return model.api in self._openers and self.auth(model.provider) == "ok"

    def _by_chance(self) -> Iterator[ModelInfo]:
        """Return the models that may be chosen without being named."""
        providers = {name for name in self._providers if self._comes_by_chance(name)}
        spoken = (model for model in self._all_models() if model.api in self._openers)
        return (model for model in spoken if model.provider in providers)

    def _comes_by_chance(self, provider: str) -> bool:
        """Return whether models of a provider may be chosen without being named.

        A model that needs no key, or that an AWS or Google account pays for, must be named.
        """
        if provider in NEVER_BY_CHANCE or self.auth(provider) != "ok":
            return False
        keyless = self._providers[provider].keyless
        return not keyless and self._credentials[provider].has_key()


def _unknown(
    ref: str,
    everything: Sequence[ModelInfo],
    same: Sequence[ModelInfo],
    *,
    problems: Sequence[ConfigError],
) -> ModelUnknown:
    what = "more than one provider has" if same else "no model is called"
    bare, colon, word = ref.rpartition(":")
    if colon and not same and (exactly(bare, everything) or matching(bare, everything)):
        hint = f"{word!r} is no thinking level; there are {', '.join(LEVELS)}"
        return ModelUnknown(f"{what} {ref!r}; {hint}")
    names = [model.ref for model in everything]
    # Other versions of what was named come before names that are spelt alike.
    alike = [name for name in names if ref and ref.lower() in name.lower()]
    near = ([model.ref for model in same] or alike)[:SUGGESTIONS] or get_close_matches(
        ref, names, n=SUGGESTIONS, cutoff=0.5
    )
    hint = f"did you mean {' or '.join(near)}?" if near else "add it to models.json"
    left_out = f" (what could not be read may name it: {problems[0]})" if problems else ""
    return ModelUnknown(f"{what} {ref!r}; {hint}{left_out}")


def _first_of(
    name: str, *, providers: Mapping[str, ProviderInfo], spoken: Container[WireApi]
) -> ModelInfo:
    """Return the model that the name of a provider alone stands for."""
    provider = providers.get(name)
    if provider is None:
        message = f"no provider is called {name!r}{_near(name, providers)}"
        raise ModelUnknown(message)
    model = next((one for one in provider.models if one.api in spoken), None)
    if model is None:
        message = f"it is not known which models {name!r} has; name one as defaultModel"
        raise ModelUnknown(message)
    return model


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, names, n=SUGGESTIONS, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _fallback_message(troubles: Sequence[str], model: ModelInfo) -> str | None:
    return f"{'; '.join(troubles)}; using {model.ref}" if troubles else None


class _ProviderConfig(SecretValue, frozen=True):
    """Providers and credentials that do not depend on extensions. The `repr` shows no key."""

    hidden: ClassVar = frozenset({"file", "auth", "keys", "environment", "redactor"})

    file: ModelsFile
    extra: Sequence[ProviderInfo]
    auth: AuthStore | None
    keys: Mapping[str, str]
    environment: Mapping[str, str]
    redactor: Redactor | None


class _ProviderTable(SecretValue, frozen=True, kw_only=True):
    """Known providers and their credentials, including those of extensions."""

    hidden: ClassVar = frozenset({"credentials"})

    providers: tuple[ProviderInfo, ...]
    credentials: Mapping[str, ProviderCredentials]
    problems: tuple[ConfigError, ...]

    @property
    def secret_variables(self) -> frozenset[str]:
        """The variables of the environment that may hold a key of some provider."""
        return frozenset[str]().union(*(one.variables() for one in self.credentials.values()))


def _read_files(
    ground: _ProviderConfig, models_path: Path | None
) -> tuple[AuthRead | None, ModelsFile]:
    """Read auth.json and models.json if they have changed. Blocking."""
    stored = None if ground.auth is None else ground.auth.read()
    file = ground.file
    return stored, file if models_path is None else reload_models_file(models_path, file)


def _build_provider_table(ground: _ProviderConfig, brought: ExtensionModels) -> _ProviderTable:
    """Return the known providers and their credentials; the user's own file has precedence over extensions."""
    file = replace(ground.file, providers={**brought.shapes, **ground.file.providers})
    bare = (
        in_environment(one, ground.environment) for one in (*builtin_providers(), *ground.extra)
    )
    laid, problems = apply_models_file(tuple(bare), file)
    providers = tuple(
        replace(one, oauth=brought.oauth[one.id], keyless=False) if one.id in brought.oauth else one
        for one in laid
    )
    credentials = {
        provider.id: ProviderCredentials(
            provider,
            CredentialSources(
                given=ground.keys.get(provider.id),
                stored=ground.auth,
                written=_written(file, provider.id),
                environment=ground.environment,
                redactor=ground.redactor,
            ),
        )
        for provider in providers
    }
    of_auth = ground.auth.problems if ground.auth is not None else ()
    return _ProviderTable(
        providers=providers,
        credentials=credentials,
        problems=(*ground.file.problems, *problems, *of_auth),
    )


def _written(file: ModelsFile, provider: str) -> WrittenAccess:
    shape = file.providers.get(provider)
    return WrittenAccess() if shape is None else written_access(shape)
