"""Which model the next request goes to, and how hard it thinks."""

from typing import Protocol

from agent_core.events import ThinkingLevel
from agent_core.kernel.errors import ModelUnknown
from agent_core.providers import Model

NO_MODEL = (
    "no model is chosen and none has credentials; set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY …), or add a provider to "
    "models.json and name it as defaultProvider and defaultModel in settings.json"
)


class ModelSource(Protocol):
    """Where models come from."""

    def open(self, ref: str) -> Model:
        """Give the model of that name, ready to be asked.

        Raises:
            ModelUnknown: No such model, or it has no credentials.
        """
        ...


class ModelChoice:
    """The choice in force; it counts from the next request."""

    def __init__(
        self, source: ModelSource, *, model: Model | None, thinking: ThinkingLevel, why_none: str
    ) -> None:
        self._source = source
        self._model = model
        self._why_none = why_none
        self.thinking: ThinkingLevel = thinking

    @property
    def model(self) -> Model | None:
        """The model in force, if there is one."""
        return self._model

    @property
    def ref(self) -> str | None:
        """Its full name."""
        return self._model.facts.ref if self._model else None

    @property
    def context_window(self) -> int:
        """Its context window in tokens; 0 when unknown."""
        return self._model.facts.context_window if self._model else 0

    def required(self) -> Model:
        """Give the model in force.

        Raises:
            ModelUnknown: There is none; the text says what to do.
        """
        if self._model is None:
            raise ModelUnknown(self._why_none or NO_MODEL)
        return self._model

    def choose(self, ref: str) -> Model:
        """Choose by full name.

        Raises:
            ModelUnknown: No such model; the choice stays.
        """
        self._model = self._source.open(ref)
        return self._model
