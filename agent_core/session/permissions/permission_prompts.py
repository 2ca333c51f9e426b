"""The questions that wait for a person: the first answer wins, silence is a no, a cancelled run withdraws them."""

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol

import anyio
import msgspec
from msgspec import Struct

from agent_core.events import (
    Event,
    PermissionOption,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    RuleInfo,
    ServerSubject,
    TrustSubject,
)
from agent_core.events.codec import permission, value
from agent_core.events.values import SessionState
from agent_core.kernel import Clock, RunId
from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from agent_core.session.history.entries import permission_answered_entry, permission_asked_entry
from agent_core.session.history.recorder import Recorder

MOST_DENIALS: Final = 3  # decision 0021
"""So many refusals end a run: by then the model asks for what nobody wants."""
RESOLVED_KEPT: Final = 256
SETTLE_S: Final = 2.0
"""How long the end of a question may take to be written when its run is cancelled."""
TIMEOUT: Final = "timeout"
CANCELLED: Final = "cancelled"
TOO_MANY: Final = "tooManyDenials"


class PromptPublisher(Protocol):
    """Those who tell what happens, and the session's state."""

    @property
    def state(self) -> SessionState:
        """The session's state."""
        ...

    def publish(self, event: Event) -> object:
        """Publish an event."""
        ...

    def set_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        ...


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


class AnswerReceipt(Value, frozen=True, kw_only=True):
    """Whether an answer came in time, and who was faster."""

    status: Literal["recorded", "alreadyResolved", "expired"]
    by: str | None = None


Remember = Callable[[PermissionDecision], Awaitable[RuleInfo | None]]
"""Adds the rule of an answer; returns the rule as stored."""


class _Waiting(Struct, kw_only=True):
    """A question and the answer to come."""

    request: PermissionRequest
    answer: PermissionDecision | None = None
    answered: anyio.Event = msgspec.field(default_factory=anyio.Event)

    def settle(self, answer: PermissionDecision) -> None:
        """Accept the first answer; ignore later ones."""
        if self.answer is None:
            self.answer = answer
            self.answered.set()


class PermissionPrompts:
    """Asks people. A question and its answer are in the session's file before they are told."""

    def __init__(self, *, clock: Clock, recorder: Recorder, publisher: PromptPublisher) -> None:
        self._clock = clock
        self._recorder = recorder
        self._publisher = publisher
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._resolved: OrderedDict[str, str] = OrderedDict()
        self._denials: Counter[RunId | None] = Counter()

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The questions that wait, oldest first."""
        return tuple(waiting.request for waiting in self._waiting.values())

    async def ask(self, request: PermissionRequest, *, remember: Remember) -> PermissionDecision:
        """Ask and wait. Cancelled, the question is withdrawn and that is told.

        Args:
            request: The question; with `expires_ms` silence becomes the default answer then.
            remember: Called with the answer before it is told, so that its rule is in force by then.
        """
        waiting = _Waiting(request=request)
        _ = await self._recorder.keep(permission_asked_entry(permission(request)))
        # Power may fail while somebody thinks: what was asked must not be forgotten.
        await self._recorder.sync()
        self._waiting[request.request] = waiting
        _ = self._publisher.publish(PermissionRequested(run=request.run, request=request))
        self._publisher.set_state("requiresAction")
        try:
            answered = await self._answer_to(waiting)
        except anyio.get_cancelled_exc_class():
            waiting.settle(PermissionDecision(option=None, by=CANCELLED))
            with anyio.move_on_after(SETTLE_S, shield=True):
                await self._close(waiting, remember)
            raise
        # What was answered is kept, whatever is cancelled from now on.
        with anyio.CancelScope(shield=True):
            await self._close(waiting, remember)
        return answered

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
        waiting = self._waiting.get(request)
        if waiting is None:
            by_whom = self._resolved.get(request)
            if by_whom is None or by_whom == TIMEOUT:
                return AnswerReceipt(status="expired", by=by_whom)
            return AnswerReceipt(status="alreadyResolved", by=by_whom)
        if waiting.answer is not None:
            return AnswerReceipt(status="alreadyResolved", by=waiting.answer.by)
        chosen = waiting.request.option(option)
        if chosen is None:
            option_ids = ", ".join(one.id for one in waiting.request.options)
            message = f"the question has no option {option!r}; there are {option_ids}"
            raise UsageError(message)
        waiting.settle(PermissionDecision(option=chosen, by=by, note=note))
        return AnswerReceipt(status="recorded", by=by)

    def count_denial(self, run: RunId | None) -> None:
        """Count a refusal; the last one of a run withdraws what else it asks."""
        self._denials[run] += 1
        if not self.is_over(run):
            return
        for waiting in self._waiting.values():
            if waiting.request.run == run:
                waiting.settle(PermissionDecision(option=None, by=TOO_MANY))

    def is_over(self, run: RunId | None) -> bool:
        """Return whether a run was refused so often that it must end."""
        return run is not None and self._denials[run] >= MOST_DENIALS

    def end_run(self, run: RunId) -> None:
        """Forget how often a run was refused."""
        _ = self._denials.pop(run, None)

    async def _answer_to(self, waiting: _Waiting) -> PermissionDecision:
        async with anyio.create_task_group() as group:
            if waiting.request.expires_ms is not None:
                group.start_soon(self._expire, waiting)
            await waiting.answered.wait()
            group.cancel_scope.cancel()
        assert waiting.answer is not None, "set before the event"  # noqa: S101 - for the reader and the type checker
        return waiting.answer

    async def _expire(self, waiting: _Waiting) -> None:
        """Make silence a no. The time is measured by the clock that does not jump."""
        request = waiting.request
        await self._clock.sleep(((request.expires_ms or 0) - request.since_ms) / 1000)
        waiting.settle(PermissionDecision(option=request.option(request.default), by=TIMEOUT))

    async def _close(self, waiting: _Waiting, remember: Remember) -> None:
        """Close a permission request: apply the rule of its answer, write the answer, then publish it."""
        request, answer = waiting.request, waiting.answer
        rule: RuleInfo | None = None
        try:
            rule = None if answer is None else await remember(answer)
            option = None if answer is None or answer.option is None else answer.option.id
            by = CANCELLED if answer is None else answer.by
            _ = await self._recorder.keep(
                permission_answered_entry(request.request, option, by=by, rule=value(rule))
            )
        finally:
            _ = self._waiting.pop(request.request, None)
            self._publish_closed(waiting, rule)

    def _publish_closed(self, waiting: _Waiting, rule: RuleInfo | None) -> None:
        request, answer = waiting.request, waiting.answer
        by = CANCELLED if answer is None else answer.by
        option = None if answer is None or answer.option is None else answer.option.id
        self._resolved[request.request] = by
        while len(self._resolved) > RESOLVED_KEPT:
            _ = self._resolved.popitem(last=False)
        is_refusal = answer is not None and not answer.allows and by not in {CANCELLED, TOO_MANY}
        # Only to read a folder, or to do without a server, is no refusal of what the model wants.
        if is_refusal and not isinstance(request.subject, TrustSubject | ServerSubject):
            self.count_denial(request.run)
        _ = self._publisher.publish(
            PermissionResolved(
                run=request.run, request=request.request, option=option, by=by, rule=rule
            )
        )
        if not self._waiting and self._publisher.state == "requiresAction":
            self._publisher.set_state("running")
