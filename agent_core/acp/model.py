"""An external agent in the place of a model: its messages are answers, its requests are calls of tools."""

import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from agent_core.acp.peer import AgentPeer, is_answer, result_in
from agent_core.acp.port import AgentChanges, AgentFailed, AgentLaunch
from agent_core.acp.requests import (
    INVALID_PARAMS,
    OF_TERMINALS,
    READ,
    START,
    TODO_TOOL,
    WRITE,
    AskingAgent,
    OpenRequest,
    Refused,
    answer_to,
    call_for,
    error,
    image_in,
    text_of_block,
    todo_items,
)
from agent_core.acp.steps import AgentStep, AgentSteps, AgentUsage
from agent_core.acp.terminals import AgentTerminals
from agent_core.kernel import Clock, JsonObject, JsonValue, ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.json import as_object, as_text
from agent_core.kernel.text import one_line
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    CustomMessage,
    PartialAnswer,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from agent_core.providers import (
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ThinkingDelta,
)

REASON_CHARS: Final = 80
MOST_CHARS: Final = 2_000_000
"""Text and thoughts of one answer."""
GO_ON: Final = "Go on with the task where it was interrupted, and report."
BEFORE: Final = "[Reported before the interruption]"
AT_LIMIT: Final = (
    "\n\n[The agent stopped at its own limit of requests; the work may be unfinished.]"
)


class AgentOrder(Value, frozen=True, kw_only=True):
    """A task for an external agent, as its session has it."""

    launch: AgentLaunch
    cwd: Path
    """Folder in which the agent works."""
    tools: Sequence[str]
    """Tools of the session."""
    instructions: str
    """Sent before the task."""
    on_activity: Callable[[str], None]
    """Called with the title of what the agent does."""
    changes: AgentChanges


class ExternalAgent:
    """Model of the session of a task that an external agent works on.

    An answer ends where the agent has done something: with one call of a tool for a request of the agent, which the
    session judges and runs like the call of any model, or for a tool that the agent has run itself. The result of the
    call is the answer to the request, and the agent goes on.
    """

    def __init__(
        self, order: AgentOrder, peer: AgentPeer, terminals: AgentTerminals, *, clock: Clock
    ) -> None:
        """Create it; nothing is started before the first request."""
        self.terminals = terminals
        """Commands that run for the agent."""
        self._order = order
        self._peer = peer
        self._clock = clock
        self._start_call: ToolCallId | None = None
        self._count = 0
        self._unsent: list[str] = []
        """Texts for the agent."""
        self._prompt: int | None = None
        """Id of the prompt that the agent works on."""
        self._open: dict[ToolCallId, OpenRequest] = {}
        """Requests of the agent, by the calls that answer them."""
        self._steps = AgentSteps(order.on_activity, terminal=terminals.text)
        self._latest_text = ""
        self._usage = AgentUsage()

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model: nothing is known of what the agent uses."""
        launch = self._order.launch
        model = launch.options.get("model")
        return ModelInfo(
            provider=launch.name,
            id=model if isinstance(model, str) else "acp",
            api="embedded",
            name=launch.name,
            context_window=0,
            max_tokens=0,
        )

    def answer_with(self, call: str, content: str) -> None:
        """Keep the text that the agent asked for, until its request is answered."""
        request = self._open.get(ToolCallId(call))
        if request is not None:
            request.content = content

    def step(self, call: str) -> AgentStep:
        """Return a tool call that the agent has made."""
        return self._steps.ended(call)

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Follow the agent until it has done something or has ended."""
        parts = self._parts(request)
        try:
            yield parts
        finally:
            with anyio.CancelScope(shield=True):
                await parts.aclose()

    async def stop(self) -> None:
        """Cancel what the agent does, and wait a moment for it."""
        self.terminals.stop()
        if self._prompt is not None:
            await self._peer.cancel(self._prompt, [*self._open.values()])

    # ------------------------------------------------------------------ one answer

    async def _parts(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        try:
            async for part in self._followed(request):
                yield part
        except AgentFailed as failure:
            self._prompt = None
            raise self._error(str(failure)) from failure

    async def _followed(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if self._start_call is not None:
            # Before it is started or answered: then it works.
            await self._order.changes.snapshot()
        if (call := await self._prepare(request)) is not None:
            yield self._finished((), call)
            return
        draft, chars = PartialAnswer(), 0
        self._send_prompt()
        while True:
            message = await self._peer.receive()
            if (part := self._part_in(message)) is not None:
                chars += len(part.text)
                if chars > MOST_CHARS:
                    why = f"it wrote more than {MOST_CHARS:,} characters in one answer"
                    raise AgentFailed(why)
                grow = draft.text if isinstance(part, TextDelta) else draft.thinking
                grow(part.text)
                yield part
            elif (call := self._call_in(message)) is not None:
                await self._order.changes.record(run=request.run, call=call.id)
                yield self._finished(draft.content(), call)
                return
            elif is_answer(message, self._prompt):
                self._prompt = None
                stop = self._stop_reason(message, draft)
                if not self._unsent:
                    await self._order.changes.record(run=request.run, call=self._new_id())
                    yield self._finished(draft.content(), None, stop=stop)
                    return
                self._send_prompt()

    def _finished(
        self,
        content: tuple[AssistantContent, ...],
        call: ToolCall | None,
        *,
        stop: StopReason = "stop",
    ) -> StreamFinished:
        facts, text = self.facts, text_of(content)
        if call is None and not text.strip():
            # Its report came before the last thing that it did.
            content = (*content, Text(text=self._latest_text))
        self._latest_text = text if text.strip() else self._latest_text
        return StreamFinished(
            message=AssistantMessage(
                content=content if call is None else (*content, call),
                api=facts.api,
                provider=facts.provider,
                model=facts.id,
                stop_reason=stop if call is None else "tool_use",
                usage=self._usage.since_last(),
                response_id=self._peer.session or None,
                at_ms=self._clock.now_ms(),
            )
        )

    def _error(self, text: str) -> ProviderError:
        name = self._order.launch.name
        message = f"external agent {name!r}: {text}"
        # Not worth another try by itself: the agent would be another process, without what it knew.
        return ProviderError(message, reason="not_found", provider=name)

    def _new_id(self) -> ToolCallId:
        self._count += 1
        return ToolCallId(f"agent-{self._count}")

    # ------------------------------------------------------------------ the beginning

    async def _prepare(self, request: ModelRequest) -> ToolCall | None:
        """Have the agent ready for a prompt; return the call that has to allow it before it is started.

        Raises:
            AgentFailed: It may not be started, or did not start.
        """
        order = self._order
        if self._peer.session:
            self._accept(request)
            return None
        if self._start_call is None:
            self._start_call = self._new_id()
            arguments: dict[str, JsonValue] = {"command": shlex.join(order.launch.argv)}
            if order.launch.needs:
                arguments["needs"] = sorted(order.launch.needs)
            return ToolCall(id=self._start_call, name=START, arguments=arguments)
        _check_started(request, self._start_call)
        reads, writes = READ in order.tools, WRITE in order.tools
        before, unsent = _session_before(request)
        is_stored = await self._peer.open(
            order.cwd, can_read=reads, can_write=writes, before=before
        )
        self._unsent = unsent if is_stored else [order.instructions, *_texts_of(request)]
        return None

    # ------------------------------------------------------------------ the prompt

    def _accept(self, request: ModelRequest) -> None:
        """Answer the agent's requests whose calls have results, and keep what else is for it."""
        for message in _after_last_answer(request):
            if isinstance(message, ToolResultMessage):
                answered = self._open.pop(message.call_id, None)
                if answered is not None:
                    self._peer.send(answer_to(answered, message))
            else:
                self._unsent.append(text_of(message.content))

    def _send_prompt(self) -> None:
        """Send what waits, unless the agent still works on a prompt: the protocol allows one at a time."""
        if self._prompt is not None:
            return
        texts, self._unsent = self._unsent or [GO_ON], []
        blocks: list[JsonValue] = [{"type": "text", "text": text} for text in texts]
        params: JsonObject = {"sessionId": self._peer.session, "prompt": blocks}
        self._prompt = self._peer.request("session/prompt", params)

    def _call_in(self, message: JsonObject) -> ToolCall | None:
        """Return the call for a request of the agent, for a tool that it has run, or for its plan; None: it needs none."""
        update = self._update_in(message)
        match update.get("sessionUpdate"):
            case "agent_message_chunk" if image := image_in(update.get("content")):
                return self._steps.show(image, self._new_id())
            case "tool_call" | "tool_call_update":
                return self._steps.update(update, self._new_id())
            case "plan" if TODO_TOOL in self._order.tools:
                items = todo_items(update.get("entries"))
                return ToolCall(id=self._new_id(), name=TODO_TOOL, arguments={"items": items})
            case _:
                is_request = "method" in message and "id" in message
                return self._request_call(message) if is_request else None

    def _request_call(self, message: JsonObject) -> ToolCall | None:
        """Return the call for a request; None: it is refused, and answered."""
        id_, params = message.get("id"), as_object(message.get("params"))
        method = as_text(message.get("method"))
        order = self._order
        agent = AskingAgent(
            name=order.launch.name,
            cwd=order.cwd,
            tools=order.tools,
            needs=sorted(order.launch.needs),
        )
        call = call_for(method, params, id_=self._new_id(), agent=agent)
        is_of_terminals = method in OF_TERMINALS
        if params.get("sessionId") != self._peer.session and (
            is_of_terminals or isinstance(call, ToolCall)
        ):
            call = Refused(code=INVALID_PARAMS, message="sessionId is of no session here")
        elif is_of_terminals:
            request = OpenRequest(id=id_, method=method, params=params)
            self.terminals.answer(request, self._peer.send)
            return None
        if isinstance(call, Refused):
            self._peer.send(error(id_, call.code, call.message))
            return None
        self._open[call.id] = OpenRequest(id=id_, method=method, params=params)
        return call

    def _part_in(self, message: JsonObject) -> TextDelta | ThinkingDelta | None:
        """Return the text in a message, if it is one of text; keep what it says of the cost."""
        update = self._update_in(message)
        match update.get("sessionUpdate"):
            case "agent_message_chunk" if image_in(update.get("content")) is None:
                text = text_of_block(update.get("content"))
                return TextDelta(text=text) if text else None
            case "agent_thought_chunk":
                text = text_of_block(update.get("content"))
                return ThinkingDelta(text=text) if text else None
            case "usage_update":
                self._usage.report_cost(update)
            case _:
                pass
        return None

    def _update_in(self, message: JsonObject) -> JsonObject:
        """Return the update in a message; empty: it is none, or of another session."""
        params = as_object(message.get("params"))
        is_ours = params.get("sessionId") == self._peer.session
        is_update = message.get("method") == "session/update" and is_ours
        return as_object(params.get("update")) if is_update else {}

    def _stop_reason(self, message: JsonObject, draft: PartialAnswer) -> StopReason:
        """Return how a prompt ended.

        Raises:
            AgentFailed: Not with an answer.
        """
        result = result_in(message, "session/prompt")
        self._usage.report_tokens(as_object(result.get("usage")))
        match result.get("stopReason"):
            case "end_turn":
                return "stop"
            case "max_tokens":
                return "length"
            case "max_turn_requests":
                draft.text(AT_LIMIT)
                return "stop"
            case "refusal":
                failure = "it refused the task"
            case "cancelled":
                failure = "it stopped as if it had been cancelled"
            case other:
                failure = f"it ended its work with an unknown reason: {one_line(str(other))[:REASON_CHARS]!r}"
        raise AgentFailed(failure)


def _after_last_answer(
    request: ModelRequest,
) -> Sequence[ToolResultMessage | UserMessage | CustomMessage]:
    found: list[ToolResultMessage | UserMessage | CustomMessage] = []
    for message in reversed(request.messages):
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage | UserMessage | CustomMessage):
            found.append(message)
    return found[::-1]


def _check_started(request: ModelRequest, call: ToolCallId) -> None:
    """Check that the agent may be started.

    Raises:
        AgentFailed: The call that stands for its start was refused.
    """
    why = "no permission"
    for message in _after_last_answer(request):
        if isinstance(message, ToolResultMessage) and message.call_id == call:
            if not message.is_error:
                return
            why = text_of(message.content)
    message = f"it was not started: {why}"
    raise AgentFailed(message)


def _session_before(request: ModelRequest) -> tuple[str, list[str]]:
    """Return the id of the agent's session that has the conversation so far, and what was not sent to it; empty: there is none."""
    unsent: list[str] = []
    for message in reversed(request.messages):
        match message:
            case AssistantMessage(response_id=str(session)) if session:
                return session, unsent[::-1]
            case UserMessage(content=content) | CustomMessage(content=content):
                unsent.append(text_of(content))
            case _:
                pass
    return "", []


def _texts_of(request: ModelRequest) -> Sequence[str]:
    """Return the conversation for an agent that knows nothing of it."""
    texts: list[str] = []
    for message in request.messages:
        match message:
            case UserMessage(content=content) | CustomMessage(content=content):
                texts.append(text_of(content))
            case AssistantMessage() if message.text.strip():
                texts.append(f"{BEFORE}\n{message.text}")
            case _:
                pass
    return [*texts, GO_ON] if texts and texts[-1].startswith(BEFORE) else texts
