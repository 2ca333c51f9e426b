"""The questions of a session for its callers: pending questions, answers, and asking."""

from collections.abc import Mapping, Sequence

from agent_core.events import Answers, Question, QuestionLine
from agent_core.session.context import SessionContext
from agent_core.session.permissions.permission_prompts import AnswerReceipt


class QuestionView:
    """Questions that only the user can answer."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions that wait, oldest first."""
        return self._parts.questions.pending

    async def ask(
        self,
        questions: Sequence[QuestionLine],
        *,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        """Ask and wait; tools use `ToolContext.ask`, which is withdrawn with their call.

        Args:
            questions: The lines of one form.
            blocking: The asking party does not continue without an answer.
            timeout_s: Time after which the default answers count; None: the timeout of permissions.

        Raises:
            UsageError: The form is not valid; the message contains the reason.
        """
        run = self._parts.publisher.picture.activity.run
        return await self._parts.questions.ask(
            questions, run=run, blocking=blocking, timeout_s=timeout_s
        )

    def answer(
        self, request: str, answers: Mapping[str, object] | None, *, by: str = "user"
    ) -> AnswerReceipt:
        """Answer a question; the first answer wins, and is published to the other clients.

        Args:
            request: The id of the question.
            answers: By the id of the line; None: it is declined. A line that is left out takes its default.
            by: The name of the answering party.

        Raises:
            UsageError: The answers do not fit the question; it still waits.
        """
        return self._parts.questions.answer(request, answers, by=by)

    def give_up(self, request: str) -> None:
        """Answer a question with its defaults, because no client can show it."""
        self._parts.questions.give_up(request)
