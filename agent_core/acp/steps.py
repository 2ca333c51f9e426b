"""Reports of an external agent about its own work: tool calls and usage."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from agent_core.acp.port import AgentFailed
from agent_core.acp.requests import STEP, images_of_call, text_of_call
from agent_core.kernel import JsonObject, ToolCallId
from agent_core.kernel.json import as_object, as_text
from agent_core.kernel.text import cut_bytes, one_line
from agent_core.messages import Cost, Image, ToolCall, Usage

TITLE_CHARS: Final = 80
OUTPUT_BYTES: Final = 8_192
MOST_RUNNING: Final = 1_000
MOST_USD: Final = 1e6
"""A higher cost is no report."""
ENDED: Final = frozenset({"completed", "failed"})


class AgentStep(Struct, kw_only=True):
    """A tool call that the agent makes by itself."""

    title: str = ""
    kind: str = ""
    status: str = ""
    output: str = ""
    images: tuple[Image, ...] = ()


class AgentSteps:
    """The tool calls of an agent. Each that has ended becomes one call of the tool `agent_step`."""

    def __init__(
        self, on_activity: Callable[[str], None], *, terminal: Callable[[str], str]
    ) -> None:
        """Create it without calls.

        Args:
            on_activity: Called with the title of what the agent does.
            terminal: Returns the output of a terminal by its id.
        """
        self._on_activity = on_activity
        self._terminal = terminal
        self._running: dict[str, AgentStep] = {}
        """By the ids of the agent."""
        self._ended: dict[str, AgentStep] = {}
        """By the ids of the calls that stand for them."""

    def ended(self, call: str) -> AgentStep:
        """Return, once, the step that a call stands for."""
        return self._ended.pop(call, AgentStep())

    def update(self, update: JsonObject, id_: ToolCallId) -> ToolCall | None:
        """Apply an update; return the call for a step that has ended with it.

        Raises:
            AgentFailed: Too many have begun and not ended.
        """
        theirs = as_text(update.get("toolCallId"))
        step = self._running.setdefault(theirs, AgentStep())
        if len(self._running) > MOST_RUNNING:
            message = f"it began more than {MOST_RUNNING} tool calls without ending one"
            raise AgentFailed(message)
        title = one_line(as_text(update.get("title")))[:TITLE_CHARS]
        if title and title != step.title:
            step.title = title
            self._on_activity(title)
        step.kind = as_text(update.get("kind")) or step.kind
        step.status = as_text(update.get("status")) or step.status
        step.output = cut_bytes(text_of_call(update, self._terminal), OUTPUT_BYTES) or step.output
        step.images = images_of_call(update) or step.images
        return self._call(self._running.pop(theirs), id_) if step.status in ENDED else None

    def show(self, image: Image, id_: ToolCallId) -> ToolCall:
        """Return the call for an image in a message of the agent; an answer of a model has no images."""
        step = AgentStep(title="image", kind="other", status="completed", images=(image,))
        return self._call(step, id_)

    def _call(self, step: AgentStep, id_: ToolCallId) -> ToolCall:
        self._ended[id_] = step
        arguments = {"title": step.title, "kind": step.kind, "request": id_}
        return ToolCall(id=id_, name=STEP, arguments=arguments)


class AgentUsage(Struct, kw_only=True):
    """Usage that an agent has reported."""

    usd: float | None = None
    """Cost of its session so far; None: it has reported none."""
    counted_usd: float = 0.0
    """The part that is in answers already."""
    tokens: Usage = Usage()
    """Of prompts that have ended, not in an answer yet."""

    def report_cost(self, update: JsonObject) -> None:
        """Accept a `usage_update`. A cost in another currency is unknown."""
        cost = as_object(update.get("cost"))
        amount = cost.get("amount")
        if not isinstance(amount, int | float) or isinstance(amount, bool):
            return
        if cost.get("currency") == "USD" and 0 <= amount < MOST_USD:
            self.usd = float(amount)

    def report_tokens(self, usage: JsonObject) -> None:
        """Accept the usage in the answer to a prompt."""

        def count(name: str) -> int:
            value = usage.get(name)
            return value if isinstance(value, int) and value is not True and value > 0 else 0

        used = Usage(
            input=count("inputTokens"),
            output=count("outputTokens"),
            cache_read=count("cachedReadTokens"),
            cache_write=count("cachedWriteTokens"),
            reasoning=count("thoughtTokens"),
        )
        self.tokens = self.tokens.plus(used)

    def since_last(self) -> Usage:
        """Return what was used since this was asked before."""
        cost = None
        if self.usd is not None:
            cost = Cost(output=max(self.usd - self.counted_usd, 0.0))
            self.counted_usd = max(self.usd, self.counted_usd)
        tokens, self.tokens = self.tokens, Usage()
        return Usage(
            input=tokens.input,
            output=tokens.output,
            cache_read=tokens.cache_read,
            cache_write=tokens.cache_write,
            reasoning=tokens.reasoning,
            cost=cost,
        )
