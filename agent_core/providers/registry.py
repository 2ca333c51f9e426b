"""Finds models by name, chooses one, and opens it with the credentials of its provider."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from agent_core.kernel.errors import ConfigError, ModelUnknown
from agent_core.providers.access import Access
from agent_core.providers.catalogue import ProviderFacts, builtin_providers
from agent_core.providers.credentials import Credentials
from agent_core.providers.models_file import ModelsFile, WrittenAccess, laid_over, written_access
from agent_core.providers.port import Api, Model, ModelFacts

Opener = Callable[[ModelFacts, Access], Model]
"""Makes a model of one API, ready to be asked."""

NO_MODEL = (
    "no model can be used: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or add a provider to models.json and name it as "
    "defaultProvider and defaultModel in settings.json"
)
SUGGESTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model to use."""

    model: ModelFacts | None
    fallback_message: str | None = None
    """Set when it is not the one that was wished for, or when there is none: why, for the user."""


class ModelRegistry:
    """The models that are known, and which of them can be used.

    `problems` are what was wrong in the models file; what could be read of it counts.
    """

    def __init__(
        self,
        *,
        openers: Mapping[Api, Opener],
        environment: Mapping[str, str],
        file: ModelsFile | None = None,
        extra: Sequence[ProviderFacts] = (),
    ) -> None:
        file = file or ModelsFile()
        providers, problems = laid_over((*builtin_providers(), *extra), file)
        self._openers = openers
        self._providers = {provider.id: provider for provider in providers}
        self._credentials = {
            provider.id: Credentials(
                provider,
                written=_written(file, provider.id),
                environment=environment,
            )
            for provider in providers
        }
        self.problems: tuple[ConfigError, ...] = (*file.problems, *problems)

    def providers(self) -> tuple[ProviderFacts, ...]:
        """List the providers, the known ones first."""
        return tuple(self._providers.values())

    def models(self) -> tuple[ModelFacts, ...]:
        """List every model."""
        return tuple(model for provider in self._providers.values() for model in provider.models)

    def auth(self, provider: str) -> Literal["ok", "missing"]:
        """Tell whether a provider can be asked."""
        found = self._credentials.get(provider)
        return "ok" if found is not None and found.what_to_set() is None else "missing"

    def secret_variables(self) -> frozenset[str]:
        """Name every variable of the environment that may hold a key of some provider."""
        return frozenset[str]().union(*(one.variables() for one in self._credentials.values()))

    def find(self, ref: str) -> ModelFacts:
        """Find a model by `provider/id`, or by its id alone when no other provider has it.

        Raises:
            ModelUnknown: There is none; the text suggests the nearest names.
        """
        everything = self.models()
        for model in everything:
            if model.ref == ref:
                return model
        same_id = [model for model in everything if model.id == ref]
        if len(same_id) == 1:
            return same_id[0]
        names = [model.ref for model in everything]
        near = get_close_matches(ref, names, n=SUGGESTIONS, cutoff=0.5) or [
            model.ref for model in same_id
        ]
        hint = f"did you mean {' or '.join(near)}?" if near else "add it to models.json"
        message = f"no model is called {ref!r}; {hint}"
        raise ModelUnknown(message)

    def usable(self, ref: str) -> ModelFacts:
        """Find a model that can be asked.

        Raises:
            ModelUnknown: There is none of that name, or its provider has no key; the text says what to set.
        """
        model = self.find(ref)
        if model.api not in self._openers:
            message = f"{model.ref} speaks {model.api!r}, which is not supported yet"
            raise ModelUnknown(message)
        missing = self._credentials[model.provider].what_to_set()
        if missing is not None:
            message = f"{model.ref} has no key; {missing}"
            raise ModelUnknown(message)
        return model

    def choose(
        self, *, request: str | None = None, session: str | None = None, settings: str | None = None
    ) -> Choice:
        """Choose: what the request names, else the session, else the settings, else whatever has a key.

        Raises:
            ModelUnknown: The request names a model that cannot be used.
        """
        if request is not None:
            return Choice(model=self.usable(request))
        troubles: list[str] = []
        for whose, ref in (("the session's model", session), ("the default model", settings)):
            if ref is None:
                continue
            try:
                model = self.usable(ref)
            except ModelUnknown as error:
                troubles.append(f"{whose} cannot be used: {error}")
                continue
            return Choice(model=model, fallback_message=_told(troubles, model))
        model = self._first_with_key()
        if model is None:
            return Choice(model=None, fallback_message="; ".join((*troubles, NO_MODEL)))
        return Choice(model=model, fallback_message=_told(troubles, model))

    def open(self, ref: str | ModelFacts) -> Model:
        """Give a model ready to be asked.

        Raises:
            ModelUnknown: No such model, or it has no credentials.
        """
        model = self.usable(ref if isinstance(ref, str) else ref.ref)
        access = self._credentials[model.provider].for_model(model.id)
        return self._openers[model.api](model, access)

    def _first_with_key(self) -> ModelFacts | None:
        """A server that asks for no key is used only when it is named, and so is the embedded model."""
        for provider in self._providers.values():
            usable = not provider.keyless and self.auth(provider.id) == "ok"
            for model in provider.models if usable else ():
                if model.api != "embedded" and model.api in self._openers:
                    return model
        return None


def _written(file: ModelsFile, provider: str) -> WrittenAccess:
    shape = file.providers.get(provider)
    return WrittenAccess() if shape is None else written_access(shape)


def _told(troubles: Sequence[str], model: ModelFacts) -> str | None:
    return f"{'; '.join(troubles)}; using {model.ref}" if troubles else None
