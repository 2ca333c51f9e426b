"""Selection of the model and of its thinking level, and the hooks that are told."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol, TypeAlias

from agent_core.events import ThinkingLevel
from agent_core.hooks import Hooks, ModelSelected, ThinkingSelected
from agent_core.hooks.catalogue import ModelSelectionSource
from agent_core.kernel.errors import FilesUnsupported, ImagesUnsupported, ModelUnknown
from agent_core.kernel.values import Value
from agent_core.messages import File, Image, Text, UserContent
from agent_core.providers import Model, ModelInfo
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.catalog.catalogue import ModelScope, Named, next_of
from agent_core.providers.messages.request_options import clamp, supported
from agent_core.providers.model import CallRecorder, RecordedModel
from agent_core.session.history.entries import EntryFactory, model_entry, thinking_entry

NO_MODEL = (
    "no model is chosen and none has credentials; set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY …), or choose a model of a "
    "server on this machine (Ollama, LM Studio, llama.cpp, vLLM)"
)
Choosable: TypeAlias = Literal["model", "thinking"]
CycleDirection: TypeAlias = Literal["forward", "backward"]
Servers: TypeAlias = Literal["keep", "find"]
STEPS: Mapping[CycleDirection, Literal[1, -1]] = {"forward": 1, "backward": -1}


class ModelResolver(Protocol):
    """Where models come from."""

    def resolve(self, ref: str, /) -> Named:
        """Find a model as people name one, with a thinking level behind a colon if they like.

        Raises:
            ModelUnknown: No such model.
        """
        ...

    def scope(self, patterns: Sequence[str], /) -> ModelScope:
        """Return the models to cycle through; without patterns all that have a key."""
        ...

    def models(self) -> tuple[ModelInfo, ...]:
        """List every model, also those that cannot be asked."""
        ...

    def states(self) -> Mapping[str, ProviderState]:
        """Return the providers by id, and whether they can be asked."""
        ...

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked."""
        ...

    async def refresh(self, *, servers: Servers = "keep") -> bool:
        """Read again which models there are and what opens them; return whether models were described anew."""
        ...

    def open(self, facts: ModelInfo, /) -> Model:
        """Return that model, ready to be asked.

        Raises:
            ModelUnknown: It has no credentials.
        """
        ...


class ModelSelection:  # noqa: PLR0904 - models are opened here alone, so that every call is recorded
    """The choice in force; it counts from the next request. Every model of a session is opened here.

    `thinking` is the level wished for. It stays when the model has no such level: each request then takes the nearest
    that the model has.
    """

    def __init__(
        self,
        source: ModelResolver,
        *,
        model: Model | None,
        thinking: ThinkingLevel,
        why_none: str,
        look_again: Callable[[], Model | None] = lambda: None,
        scoped: Sequence[str] = (),
        unwritten: Container[Choosable] = (),
        recorder: Callable[[], CallRecorder] | None = None,
    ) -> None:
        """Create the choice.

        Args:
            source: The source of other models.
            model: The model in force; None: there is none.
            thinking: The level in force.
            why_none: The reason why there is no model, for the user.
            look_again: Chooses again while there is none: a provider may have received an API key since.
            scoped: Patterns of the models to cycle through; empty: all that have a key.
            unwritten: The parts of the choice that are not in the session's file yet and must be written.
            recorder: Returns the recorder of the calls; None: they are not recorded.
        """
        self._source = source
        self._recorder = recorder
        self._model = None if model is None else self._recorded(model)
        self._why_none = why_none
        self._look_again = look_again
        self._scoped = tuple(scoped)
        self.thinking: ThinkingLevel = thinking
        self._unwritten: Container[Choosable] = unwritten

    def take_unwritten(self) -> tuple[EntryFactory, ...]:
        """Return, once, the entries of the choice that must be in the session file before the first message."""
        unwritten, self._unwritten = self._unwritten, ()
        drafts: list[EntryFactory] = []
        if "model" in unwritten and self._model is not None:
            drafts.append(model_entry(self._model.facts.provider, self._model.facts.id))
        if "thinking" in unwritten:
            drafts.append(thinking_entry(self.thinking))
        return tuple(drafts)

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
        """Return the model in force.

        Raises:
            ModelUnknown: There is none; the text says what to do.
        """
        if self._model is None:
            self._model = self._found()
        if self._model is None:
            raise ModelUnknown(self._why_none or NO_MODEL)
        return self._model

    def open(self, ref: str) -> Model:
        """Return a model by name, ready to be asked; the choice stays.

        Raises:
            ModelUnknown: There is no such model, or it has no credentials.
        """
        return self._recorded(self._source.open(self._source.resolve(ref).model))

    def find(self, ref: str) -> ModelInfo | None:
        """Return the description of a model by name; None: there is no such model."""
        try:
            return self._source.resolve(ref).model
        except ModelUnknown:
            return None

    def _recorded(self, model: Model) -> Model:
        return model if self._recorder is None else RecordedModel(model, self._recorder)

    def _found(self) -> Model | None:
        model = self._look_again()
        return None if model is None else self._recorded(model)

    def all_models(self) -> tuple[ModelInfo, ...]:
        """List every model, also those that cannot be asked."""
        return self._source.models()

    def providers(self) -> Mapping[str, ProviderState]:
        """Return the providers by id, and whether they can be asked."""
        return self._source.states()

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked."""
        return self._source.available()

    async def refresh(self, *, servers: Servers = "keep") -> None:
        """Record what the user has written or logged in to since; where there is no model, look for one.

        The model in force is opened anew when its description may have changed: its address or its key.

        Args:
            servers: `find` asks the model servers of this machine what they have.
        """
        changed = await self._source.refresh(servers=servers)
        if self._model is None:
            self._model = self._found()
        elif changed:
            # One that is not there any more fails at the next request, which says so.
            with suppress(ModelUnknown):
                self._model = self.open(self._model.facts.ref)

    def scoped(self) -> ModelScope:
        """Return the models that `cycle` goes through."""
        return self._source.scope(self._scoped)

    def choose(self, ref: str) -> Model:
        """Choose by name, and the thinking level with it when the name says one.

        Raises:
            ModelUnknown: No such model; the choice stays.
        """
        return self._take(self._source.resolve(ref))

    def take_up(self, ref: str) -> bool:
        """Choose a model that was in force before, by its full name; False: it cannot be used now, and the choice stays."""
        facts = next((one for one in self._source.available() if one.ref == ref), None)
        if facts is None:
            return False
        try:
            self._model = self._recorded(self._source.open(facts))
        except ModelUnknown:
            return False
        return True

    def cycle(self, direction: CycleDirection) -> Model | None:
        """Choose the scoped model after or before this one; None: there is no other.

        Raises:
            ModelUnknown: It has no credentials any more; the choice stays.
        """
        following = next_of(self.scoped().models, current=self.ref, direction=STEPS[direction])
        return None if following is None else self._take(following)

    def cycle_thinking(self) -> ThinkingLevel | None:
        """Choose the next stronger level that the model has, after the strongest the weakest; None: there is no other."""
        if self._model is None:
            return None
        facts = self._model.facts
        levels = supported(facts)
        if len(levels) == 1:
            return None
        at = levels.index(clamp(self.thinking, facts))
        self.thinking = levels[(at + 1) % len(levels)]
        return self.thinking

    def _take(self, named: Named) -> Model:
        model = self._recorded(self._source.open(named.model))
        self._model = model
        if named.thinking is not None:
            self.thinking = named.thinking
        return model


def sees(models: ModelSelection, content: Sequence[UserContent]) -> bool:
    """Return whether the model in force is sent all of what the user says; without a model nobody knows yet."""
    facts = None if models.model is None else models.model.facts
    return facts is None or all(is_sent(part, facts) for part in content)


def is_sent(part: UserContent, facts: ModelInfo) -> bool:
    """Return whether a model is sent a part of a message."""
    match part:
        case Text():
            return True
        case Image():
            return facts.images
        case File():
            return part.is_text or facts.takes_pdf


def check_sent(models: ModelSelection, content: Sequence[UserContent]) -> None:
    """Check that the model in force will see what the user sends.

    Raises:
        ImagesUnsupported: There are images, which would be left out of the request.
        FilesUnsupported: There are PDF files, which would be.
    """
    if sees(models, content):
        return
    what, why, remedy = why_unsent(models, content)
    if what == "images":
        message = f"Images are not sent to {models.ref}: {why}. Remove the images, or {remedy}."
        raise ImagesUnsupported(message)
    message = f"PDF files are not sent to {models.ref}: {why}. Remove the files, or {remedy}."
    raise FilesUnsupported(message)


def why_unsent(
    models: ModelSelection, content: Iterable[UserContent]
) -> tuple[Literal["images", "PDF files"], str, str]:
    """Return which parts of content the model in force is not sent, why, and what changes that."""
    if sees(models, [part for part in content if isinstance(part, Image)]):
        return (
            "PDF files",
            "it takes none",
            'choose a model that takes them, or give it "input": ["text", "image", "pdf"] in models.json',
        )
    if any(one.images for one in models.all_models() if one.ref == models.ref):
        return "images", "the setting images.blockImages holds them back", "turn it off"
    return (
        "images",
        "it takes text alone",
        'choose a model that takes images, or give it "input": ["text", "image"] in models.json',
    )


class SelectedModel(Value, frozen=True, kw_only=True):
    """A choice, at one moment."""

    model: str | None
    thinking: ThinkingLevel

    @classmethod
    def of(cls, models: ModelSelection) -> "SelectedModel":
        """Return the choice in force."""
        return cls(model=models.ref, thinking=models.thinking)


async def notify_model_change(
    hooks: Hooks, before: SelectedModel, now: SelectedModel, *, source: ModelSelectionSource
) -> None:
    """Call the hooks for a changed model and a changed thinking level; none for what is the same as before."""
    if now.model is not None and now.model != before.model:
        _ = await hooks.ask(ModelSelected(model=now.model, previous=before.model, source=source))
    if now.thinking != before.thinking:
        _ = await hooks.ask(ThinkingSelected(level=now.thinking, previous=before.thinking))
