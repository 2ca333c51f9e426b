"""Permission prompts: shown, answered by people and hooks, listed to clients."""

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Final, Generic, Literal, Protocol, TypeVar

import anyio
from typing_extensions import override

from agent_core.events import (
    Event,
    PermissionOption,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionRequested,
    QuestionResolved,
    RuleInfo,
    ServerSubject,
    TrustSubject,
)
from agent_core.events.codec import permission, value
from agent_core.events.values import SessionState
from agent_core.hooks import GoOn, HookInput, Hooks, PromptClosed, PromptShown
from agent_core.kernel import Clock, RunId
from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from agent_core.session.history.entries import permission_answered_entry, permission_asked_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.snapshot import SnapshotBuilder

RESOLVED_KEPT: Final = 256
SETTLE_S: Final = 2.0
"""How long the end of a request may take to be written when its run is cancelled."""
TIMEOUT: Final = "timeout"
CANCELLED: Final = "cancelled"


class AnswerReceipt(Value, frozen=True, kw_only=True):
    """Whether an answer came in time, and who was faster."""

    status: Literal["recorded", "alreadyResolved", "expired"]
    by: str | None = None


class PromptAnswer(Protocol):
    """The answer to a request."""

    @property
    def by(self) -> str:
        """Name of the answering party."""
        ...


RequestT = TypeVar("RequestT", bound=PermissionRequest | Question)
AnswerT = TypeVar("AnswerT", bound=PromptAnswer)


class _Pending(Generic[RequestT, AnswerT]):
    """A request and the answer to come."""

    def __init__(self, request: RequestT) -> None:
        self.request = request
        self.answer: AnswerT | None = None
        self.answered = anyio.Event()

    def settle(self, answer: AnswerT) -> AnswerT:
        """Accept the first answer, ignore later ones; return the one that counts."""
        if self.answer is None:
            self.answer = answer
            self.answered.set()
        return self.answer


class PendingPrompts(Generic[RequestT, AnswerT]):
    """The requests of one kind that wait, and who answered the last ones that do not wait any more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, _Pending[RequestT, AnswerT]] = {}
        self._resolved: OrderedDict[str, str] = OrderedDict()

    @property
    def requests(self) -> tuple[RequestT, ...]:
        """The requests that wait, oldest first."""
        return tuple(pending.request for pending in self._waiting.values())

    def open(self, request: RequestT) -> None:
        """Add a request; it can be answered from now on."""
        self._waiting[request.request] = _Pending(request)

    def unanswered(self, request: str) -> RequestT | AnswerReceipt:
        """Return a request without an answer, or the receipt of an answer that comes too late for it."""
        pending = self._waiting.get(request)
        if pending is None:
            by = self._resolved.get(request)
            is_late = by is None or by == TIMEOUT
            return AnswerReceipt(status="expired" if is_late else "alreadyResolved", by=by)
        if pending.answer is not None:
            return AnswerReceipt(status="alreadyResolved", by=pending.answer.by)
        return pending.request

    def settle(self, request: str, answer: AnswerT) -> AnswerReceipt:
        """Answer a request that waits; an earlier answer to it, and an unknown id, stay as they are."""
        if (pending := self._waiting.get(request)) is not None:
            _ = pending.settle(answer)
        return AnswerReceipt(status="recorded", by=answer.by)

    async def wait(
        self,
        request: RequestT,
        *,
        silence: AnswerT,
        withdrawn: AnswerT,
        close: Callable[[AnswerT], Awaitable[None]],
    ) -> AnswerT:
        """Wait for the answer to an open request, and close it. Cancellation withdraws the request.

        Args:
            request: The request.
            silence: The answer when it expires.
            withdrawn: The answer when the caller is cancelled.
            close: Writes and publishes the answer, and calls `remove`.
        """
        pending = self._waiting[request.request]
        try:
            async with anyio.create_task_group() as group:
                if request.expires_ms is not None:
                    group.start_soon(self._expire, pending, request.expires_ms, silence)
                await pending.answered.wait()
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(SETTLE_S, shield=True):
                await close(pending.settle(withdrawn))
            raise
        answer = pending.settle(silence)
        # What was answered is kept, whatever is cancelled from now on.
        with anyio.CancelScope(shield=True):
            await close(answer)
        return answer

    def remove(self, request: RequestT, *, by: str) -> None:
        """Remove a request; late answers to it learn whose answer counted."""
        _ = self._waiting.pop(request.request, None)
        self._resolved[request.request] = by
        while len(self._resolved) > RESOLVED_KEPT:
            _ = self._resolved.popitem(last=False)

    async def _expire(
        self, pending: _Pending[RequestT, AnswerT], expires_ms: int, silence: AnswerT
    ) -> None:
        """Answer for a silent person. The time is measured by the clock that does not jump."""
        await self._clock.sleep((expires_ms - pending.request.since_ms) / 1000)
        _ = pending.settle(silence)


StartHook = Callable[[Callable[[], Coroutine[object, None, None]]], None]
"""Begins something that nobody waits for."""


class SessionPublisher(Protocol):
    """Those who tell what happens, and the session's state."""

    @property
    def state(self) -> SessionState:
        """The session's state."""
        ...

    @property
    def snapshot(self) -> SnapshotBuilder:
        """Present state of the session."""
        ...

    @property
    def awaits_user(self) -> Callable[[], bool]:
        """Function that returns whether a person must answer before the session can continue."""
        ...

    def publish(self, event: Event) -> object:
        """Publish an event."""
        ...

    def set_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        ...


class PromptHooks:
    """Publisher that also calls hooks for the permission requests and questions among its events."""

    def __init__(self, publisher: SessionPublisher, hooks: Hooks, start: StartHook) -> None:
        self._publisher = publisher
        self._hooks = hooks
        self._start = start
        self._shown: dict[str, tuple[str, str]] = {}
        """Kind and title of what is asked, by the request."""
        self._turn = anyio.Lock()

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self._publisher.state

    @property
    def snapshot(self) -> SnapshotBuilder:
        """Present state of the session."""
        return self._publisher.snapshot

    @property
    def awaits_user(self) -> Callable[[], bool]:
        """Function that returns whether a person must answer before the session can continue."""
        return self._publisher.awaits_user

    def publish(self, event: Event) -> object:
        """Publish an event; call hooks when it opens or closes a permission request or a question."""
        result = self._publisher.publish(event)
        match event:
            case PermissionRequested(request=asked):
                self._show(asked.request, "permission", asked.title)
            case QuestionRequested(request=question):
                self._show(question.request, "question", question.questions[0].text)
            case PermissionResolved(request=request) | QuestionResolved(request=request):
                shown = self._shown.pop(request, None)
                if shown is not None:
                    self._call_hooks(PromptClosed(kind=shown[0], title=shown[1]))
            case _:
                pass
        return result

    def set_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        self._publisher.set_state(state)

    def _show(self, request: str, kind: str, title: str) -> None:
        if self._hooks.listens(PromptShown) or self._hooks.listens(PromptClosed):
            self._shown[request] = (kind, title)
            self._call_hooks(PromptShown(kind=kind, title=title))

    def _call_hooks(self, value: HookInput[GoOn]) -> None:
        async def tell() -> None:
            async with self._turn:
                _ = await self._hooks.ask(value)

        self._start(tell)


MOST_DENIALS: Final = 3  # decision 0021
"""So many refusals end a run: by then the model asks for what nobody wants."""
TOO_MANY: Final = "tooManyDenials"


class PermissionDecision(Value, frozen=True, kw_only=True):
    """Result of a question."""

    option: PermissionOption | None
    """The chosen option; None: no answer, because the run was cancelled or is over."""
    by: str
    note: str | None = None

    @property
    def allows(self) -> bool:
        """Whether somebody said yes."""
        return self.option is not None and self.option.kind.startswith("allow")


Remember = Callable[[PermissionDecision], Awaitable[RuleInfo | None]]
"""Adds the rule of an answer; returns the rule as stored."""


class PermissionPrompts:
    """Asks people. A question and its answer are in the session's file before they are told."""

    def __init__(self, *, clock: Clock, recorder: Recorder, publisher: SessionPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher
        self._prompts: PendingPrompts[PermissionRequest, PermissionDecision] = PendingPrompts(clock)
        self._denials: Counter[RunId | None] = Counter()

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The questions that wait, oldest first."""
        return self._prompts.requests

    async def ask(self, request: PermissionRequest, *, remember: Remember) -> PermissionDecision:
        """Ask and wait. Cancelled, the question is withdrawn and that is told.

        Args:
            request: The question; with `expires_ms` silence becomes the default answer then.
            remember: Called with the answer before it is told, so that its rule is in force by then.
        """
        _ = await self._recorder.keep(permission_asked_entry(permission(request)))
        # Power may fail while somebody thinks: what was asked must not be forgotten.
        await self._recorder.sync()
        self._prompts.open(request)
        _ = self._publisher.publish(PermissionRequested(run=request.run, request=request))
        self._publisher.set_state("requiresAction")
        return await self._prompts.wait(
            request,
            silence=PermissionDecision(option=request.option(request.default), by=TIMEOUT),
            withdrawn=PermissionDecision(option=None, by=CANCELLED),
            close=partial(self._close, request, remember),
        )

    def answer(
        self, request: str, option: str, *, note: str | None = None, by: str
    ) -> AnswerReceipt:
        """Answer a question; the first answer wins.

        Args:
            request: The id of the question.
            option: The id of one of its options.
            note: A note for the model.
            by: The name of the answering party.

        Raises:
            UsageError: The question has no such option; it still waits.
        """
        asked = self._prompts.unanswered(request)
        if isinstance(asked, AnswerReceipt):
            return asked
        chosen = asked.option(option)
        if chosen is None:
            option_ids = ", ".join(one.id for one in asked.options)
            message = f"the question has no option {option!r}; there are {option_ids}"
            raise UsageError(message)
        return self._prompts.settle(request, PermissionDecision(option=chosen, by=by, note=note))

    def count_denial(self, run: RunId | None) -> None:
        """Count a refusal; the last one of a run withdraws what else it asks."""
        self._denials[run] += 1
        if not self.is_over(run):
            return
        for request in self.pending:
            if request.run == run:
                _ = self._prompts.settle(
                    request.request, PermissionDecision(option=None, by=TOO_MANY)
                )

    def is_over(self, run: RunId | None) -> bool:
        """Return whether a run was refused so often that it must end."""
        return run is not None and self._denials[run] >= MOST_DENIALS

    def end_run(self, run: RunId) -> None:
        """Forget how often a run was refused."""
        _ = self._denials.pop(run, None)

    async def _close(
        self, request: PermissionRequest, remember: Remember, answer: PermissionDecision
    ) -> None:
        """Close a permission request: apply the rule of its answer, write the answer, then publish it."""
        option = None if answer.option is None else answer.option.id
        rule: RuleInfo | None = None
        try:
            rule = await remember(answer)
            _ = await self._recorder.keep(
                permission_answered_entry(request.request, option, by=answer.by, rule=value(rule))
            )
        finally:
            self._prompts.remove(request, by=answer.by)
            is_refusal = not answer.allows and answer.by not in {CANCELLED, TOO_MANY}
            # Only to read a folder, or to do without a server, is no refusal of what the model wants.
            if is_refusal and not isinstance(request.subject, TrustSubject | ServerSubject):
                self.count_denial(request.run)
            _ = self._publisher.publish(
                PermissionResolved(
                    run=request.run, request=request.request, option=option, by=answer.by, rule=rule
                )
            )
            if not self.pending and self._publisher.state == "requiresAction":
                self._publisher.set_state(state_without_prompts(self._publisher))


def state_without_prompts(publisher: SessionPublisher) -> SessionState:
    """Return the state of a session when nobody is asked."""
    now = publisher.snapshot.activity
    if now.run is not None:
        return "running"
    return "idle" if now.compaction is None else "compacting"


class TaskPrompts(PermissionPrompts):
    """Asks the user of the session that gave a task. Refusals are counted for the task's own run."""

    def __init__(
        self,
        outer: PermissionPrompts,
        *,
        shown_as: Callable[[PermissionRequest], PermissionRequest],
        clock: Clock,
        recorder: Recorder,
        publisher: SessionPublisher,
    ) -> None:
        """Create it.

        Args:
            outer: The prompts of that session.
            shown_as: Returns a request as it is shown there: naming the task.
            clock: Time.
            recorder: Writes entries of the task's own session.
            publisher: Publishes events of the task's own session.
        """
        super().__init__(clock=clock, recorder=recorder, publisher=publisher)
        self._outer = outer
        self._shown_as = shown_as

    @override
    async def ask(self, request: PermissionRequest, *, remember: Remember) -> PermissionDecision:
        """Ask there and wait. Cancelled, the question is withdrawn there."""
        answer = await self._outer.ask(self._shown_as(request), remember=remember)
        if not answer.allows:
            self.count_denial(request.run)
        return answer
