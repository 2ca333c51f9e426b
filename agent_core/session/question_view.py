"""The questions of a session as its callers see them: what is asked, how to answer, and how to ask."""

from collections.abc import Mapping, Sequence

from agent_core.events import Answers, Question, QuestionLine
from agent_core.session.desk import AnswerReceipt
from agent_core.session.parts import Parts


class QuestionView:
    """What people are asked because nobody else can know it."""

    def __init__(self, parts: Parts) -> None:
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
            blocking: Whoever asks goes no further without an answer.
            timeout_s: After how long silence is the answer; None: as for permissions.

        Raises:
            UsageError: It is no question that can be asked; the text says why.
        """
        run = self._parts.voice.picture.activity.run
        return await self._parts.questions.ask(
            questions, run=run, blocking=blocking, timeout_s=timeout_s
        )

    def answer(
        self, request: str, answers: Mapping[str, object] | None, *, by: str = "user"
    ) -> AnswerReceipt:
        """Answer a question; the first answer wins, and says so to the others.

        Args:
            request: The id of the question.
            answers: By the id of the line; None: it is declined. A line that is left out takes its default.
            by: Who answers.

        Raises:
            UsageError: The answers do not fit the question; it still waits.
        """
        return self._parts.questions.answer(request, answers, by=by)

    def give_up(self, request: str) -> None:
        """Answer a question with its defaults, because no client can show it."""
        self._parts.questions.give_up(request)
