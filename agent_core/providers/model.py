"""The port of models: a request in, parts of one answer out."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Literal, Protocol

import msgspec

from agent_core.events import ThinkingLevel
from agent_core.events.values import CallPurpose
from agent_core.kernel import JsonObject, JsonValue, RunId, TurnId
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Message, Usage

WireApi = Literal[
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "azure-openai-responses",
    "google-generative-ai",
    "google-vertex",
    "bedrock-converse-stream",
    "mistral-conversations",
    "ollama-chat",
    "embedded",
]

PDF_APIS: Final[frozenset[WireApi]] = frozenset(
    {
        "anthropic-messages",
        "openai-completions",
        "openai-responses",
        "azure-openai-responses",
        "google-generative-ai",
        "google-vertex",
    }
)
"""Those in whose form a PDF file is sent."""

CacheRetention = Literal["none", "short", "long"]
"""How long a provider keeps what it was sent: nothing is asked for, its usual time, or its longest."""


class Prices(Value, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0
    tiers: "tuple[PriceTier, ...]" = ()
    """For long inputs; the highest that applies counts for the whole request."""


class PriceTier(Value, frozen=True, kw_only=True):
    """Token prices that apply when the input, cached or not, has more than `input_above` tokens."""

    input_above: int
    prices: Prices


class SamplingOptions(Value, frozen=True, kw_only=True):
    """How a model chooses its tokens, as models.json says; None: as the provider does by default."""

    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which an answer ends."""


class ModelInfo(Value, frozen=True, kw_only=True):
    """Facts about a model."""

    provider: str
    id: str
    api: WireApi
    name: str
    context_window: int
    """Tokens; 0 when unknown."""
    max_tokens: int
    """Output limit of one answer, in tokens."""
    prices: Prices | None = None
    """None: unknown."""
    reasoning: bool = False
    images: bool = False
    pdf: bool = False
    """Whether it takes PDF files, where its API does."""
    base_url: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Headers without secrets; headers that the user set are part of the credentials."""
    compat: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """Quirks of this dialect, as models.json gives them."""
    sampling: SamplingOptions = msgspec.field(default_factory=SamplingOptions)

    @property
    def ref(self) -> str:
        """The full name, `provider/id`."""
        return f"{self.provider}/{self.id}"

    @property
    def takes_pdf(self) -> bool:
        """Whether a PDF file of a prompt is sent to it."""
        return self.pdf and self.api in PDF_APIS


class ToolDeclaration(Value, frozen=True, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: JsonObject
    """A JSON Schema of type object."""


class ModelRequest(Value, frozen=True, kw_only=True):
    """One call of a model."""

    system: str
    messages: tuple[Message, ...]
    """As the transcript has them; the adapter's side turns them into what its API accepts."""
    tools: tuple[ToolDeclaration, ...] = ()
    thinking: ThinkingLevel = "off"
    max_tokens: int | None = None
    """None: the model's own limit."""
    session: str | None = None
    """For providers that route or cache by session."""
    cache: CacheRetention = "short"
    """The retention of the model in models.json overrides `short` and `long`, but not `none`."""
    without_thoughts: bool = False
    """Leave out thoughts and signatures, also the model's own: a provider refused them."""
    purpose: CallPurpose = "main"
    """For the ledger, as are `run` and `turn`; no provider is sent them."""
    run: RunId | None = None
    """None: the run that goes on, if there is one."""
    turn: TurnId | None = None


class TextDelta(Value, frozen=True, kw_only=True):
    """More words."""

    text: str


class ThinkingDelta(Value, frozen=True, kw_only=True):
    """More of a thought."""

    text: str


class ToolCallStart(Value, frozen=True, kw_only=True):
    """A tool call begins; its arguments follow."""

    index: int
    """Unique within the answer, in source order, from 0."""
    name: str
    id: str = ""
    """As the provider gave it, when it did so this early; the answer has the authority."""


class ToolCallDelta(Value, frozen=True, kw_only=True):
    """More raw argument text of a call."""

    index: int
    text: str


class UsageUpdate(Value, frozen=True, kw_only=True):
    """Tokens that the provider has counted for this answer so far; replaces what an earlier update reported.

    An answer that is cancelled, breaks off or is refused has no `Answer`, but is paid for all the same.
    """

    usage: Usage
    """With its cost, where the prices are known."""


class StreamFinished(Value, frozen=True, kw_only=True):
    """The whole answer; always the last part of a stream that did not fail."""

    message: AssistantMessage


StreamEvent = (
    TextDelta | ThinkingDelta | ToolCallStart | ToolCallDelta | UsageUpdate | StreamFinished
)
"""Adapters merge what arrives in one network chunk: adjacent deltas of one kind come as one part."""


class Model(Protocol):
    """A model that can be asked."""

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        ...

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation.

        Raises:
            ProviderError: While entering or iterating. A stream that ends without its terminal event is
                an error of reason `protocol`, never a short answer.
        """
        ...


async def whole_answer(model: Model, request: ModelRequest) -> AssistantMessage:
    """Ask a model and return its answer, without its parts.

    Raises:
        ProviderError: The model did not answer, or not to the end.
    """
    async with model.stream(request) as parts:
        async for part in parts:
            if isinstance(part, StreamFinished):
                return part.message
    message = "the answer ended before it was whole"
    raise ProviderError(message, reason="protocol", provider=model.facts.provider)


class CallRecorder(Protocol):
    """Asks a model and records the call."""

    def stream(
        self, model: Model, request: ModelRequest, /
    ) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
        """Ask, as `Model.stream` does.

        Raises:
            BudgetExceeded: A budget does not allow the call.
        """
        ...


class RecordedModel:
    """A model whose calls are recorded, whoever asks it."""

    def __init__(self, model: Model, recorder: Callable[[], CallRecorder]) -> None:
        """Wrap a model.

        Args:
            model: The model.
            recorder: Returns the recorder; called at each request.
        """
        self._model = model
        self._recorder = recorder

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        return self._model.facts

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
        """Ask and record the call."""
        return self._recorder().stream(self._model, request)
