"""The questions about what is meant: the first answer wins, silence is the default, a cancelled run withdraws them."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import anyio
import msgspec
from msgspec import Struct

from agent_core.events import (
    Answers,
    Question,
    QuestionLine,
    QuestionRequested,
    QuestionResolved,
)
from agent_core.events.codec import permission, value
from agent_core.events.values import SessionState
from agent_core.kernel import Clock, RunId, SessionId, uuid7
from agent_core.session.history.entries import question_answered_entry, question_asked_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.permissions.permission_prompts import (
    CANCELLED,
    RESOLVED_KEPT,
    SETTLE_S,
    TIMEOUT,
    AnswerReceipt,
)
from agent_core.session.permissions.prompt_hooks import SessionPublisher
from agent_core.session.permissions.question_forms import check_form, defaults, fitting
from agent_core.session.permissions.state import PermissionState
from agent_core.tools.port import AskUser

POLICY: Final = "policy"
UNSHOWN: Final = "unshown"


class _Waiting(Struct, kw_only=True):
    """A question and the answer to come."""

    question: Question
    answer: Answers | None = None
    answered: anyio.Event = msgspec.field(default_factory=anyio.Event)

    def settle(self, answer: Answers) -> None:
        """Accept the first answer; ignore later ones."""
        if self.answer is None:
            self.answer = answer
            self.answered.set()


class QuestionPrompts:
    """Asks people what is meant. A question and its answer are in the session's file before they are told."""

    def __init__(
        self,
        *,
        session: SessionId,
        clock: Clock,
        recorder: Recorder,
        publisher: SessionPublisher,
        permissions: PermissionState,
    ) -> None:
        self._session = session
        self._clock = clock
        self._recorder = recorder
        self._publisher = publisher
        self._permissions = permissions
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._resolved: OrderedDict[str, str] = OrderedDict()

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions that wait, oldest first."""
        return tuple(waiting.question for waiting in self._waiting.values())

    @property
    def holds_up(self) -> bool:
        """Whether something does not go on before it is answered."""
        return any(waiting.question.blocking for waiting in self._waiting.values())

    def asks_for(self, run: RunId | None) -> AskUser:
        """Return what asks on behalf of a run."""
        return partial(self.ask, run=run)

    async def ask(
        self,
        questions: Sequence[QuestionLine],
        *,
        run: RunId | None = None,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        """Ask and wait. On cancellation the question is withdrawn and the withdrawal is published.

        Args:
            questions: The lines of one form.
            run: The run that asks.
            blocking: The asking party does not continue without an answer.
            timeout_s: Time after which the default answers count; None: the timeout of permissions.

        Raises:
            UsageError: The form is not valid; the message contains the reason.
        """
        lines = check_form(questions)
        if self._permissions.fallback != "ask":
            return Answers(answers=defaults(lines), by=POLICY)
        wait_s = self._permissions.timeout_s if timeout_s is None else timeout_s
        now_ms = self._clock.now_ms()
        question = Question(
            request=uuid7(now_ms),
            session=self._session,
            run=run,
            questions=lines,
            blocking=blocking,
            since_ms=now_ms,
            expires_ms=now_ms + round(wait_s * 1000),
        )
        return await self._put(_Waiting(question=question))

    def answer(
        self, request: str, answers: Mapping[str, object] | None, *, by: str
    ) -> AnswerReceipt:
        """Answer a question; the first answer wins.

        Args:
            request: The id of the question.
            answers: By the id of the line; None: it is declined.
            by: The name of the answering party.

        Raises:
            UsageError: The answers do not fit the question; it still waits.
        """
        waiting = self._waiting.get(request)
        if waiting is None:
            by_whom = self._resolved.get(request)
            if by_whom is None or by_whom == TIMEOUT:
                return AnswerReceipt(status="expired", by=by_whom)
            return AnswerReceipt(status="alreadyResolved", by=by_whom)
        if waiting.answer is not None:
            return AnswerReceipt(status="alreadyResolved", by=waiting.answer.by)
        found = None if answers is None else fitting(waiting.question.questions, answers)
        waiting.settle(Answers(answers=found, by=by))
        return AnswerReceipt(status="recorded", by=by)

    def give_up(self, request: str) -> None:
        """Answer a question with its defaults, because no client can show it. An unknown id changes nothing."""
        waiting = self._waiting.get(request)
        if waiting is not None:
            waiting.settle(Answers(answers=defaults(waiting.question.questions), by=UNSHOWN))

    async def _put(self, waiting: _Waiting) -> Answers:
        question = waiting.question
        _ = await self._recorder.keep(question_asked_entry(permission(question)))
        self._waiting[question.request] = waiting
        _ = self._publisher.publish(QuestionRequested(run=question.run, request=question))
        if question.blocking:
            self._publisher.set_state("requiresAction")
        try:
            answer = await self._answer_to(waiting)
        except anyio.get_cancelled_exc_class():
            waiting.settle(Answers(answers=None, by=CANCELLED))
            with anyio.move_on_after(SETTLE_S, shield=True):
                await self._close(waiting)
            raise
        # What was answered is kept, whatever is cancelled from now on.
        with anyio.CancelScope(shield=True):
            await self._close(waiting)
        return answer

    async def _answer_to(self, waiting: _Waiting) -> Answers:
        async with anyio.create_task_group() as group:
            group.start_soon(self._expire, waiting)
            await waiting.answered.wait()
            group.cancel_scope.cancel()
        assert waiting.answer is not None, "set before the event"  # noqa: S101 - for the reader and the type checker
        return waiting.answer

    async def _expire(self, waiting: _Waiting) -> None:
        question = waiting.question
        await self._clock.sleep(((question.expires_ms or 0) - question.since_ms) / 1000)
        waiting.settle(Answers(answers=defaults(question.questions), by=TIMEOUT))

    async def _close(self, waiting: _Waiting) -> None:
        """Close a question: write its answer, then publish it."""
        question = waiting.question
        answer = waiting.answer or Answers(answers=None, by=CANCELLED)
        try:
            _ = await self._recorder.keep(
                question_answered_entry(question.request, value(answer.answers), by=answer.by)
            )
        finally:
            _ = self._waiting.pop(question.request, None)
            self._resolved[question.request] = answer.by
            while len(self._resolved) > RESOLVED_KEPT:
                _ = self._resolved.popitem(last=False)
            _ = self._publisher.publish(
                QuestionResolved(
                    run=question.run,
                    request=question.request,
                    by=answer.by,
                    answers=answer.answers,
                )
            )
            held_up = question.blocking and self._publisher.state == "requiresAction"
            if held_up and not self._publisher.awaits_user():
                self._publisher.set_state(self._state_without())

    def _state_without(self) -> SessionState:
        """Return what goes on when nobody is asked."""
        now = self._publisher.picture.activity
        if now.run is not None:
            return "running"
        return "idle" if now.compaction is None else "compacting"
