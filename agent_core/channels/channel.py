"""The ports between a front end and a session: the questions for its user, and where the answers go."""

from collections.abc import Mapping
from typing import Final, Protocol, final

from agent_core.events import Event, EventSubscription, PermissionRequest, Question
from agent_core.kernel.values import Value


class PermissionChoice(Value, frozen=True, kw_only=True):
    """Answer of a user to a permission request."""

    option: str
    """Id of one of its options."""
    note: str | None = None
    """Note for the model."""


@final
class Unanswered:
    """Result of asking a user who did not answer; another channel, or the end of its time, answers the request."""


UNANSWERED: Final = Unanswered()
QuestionReply = Mapping[str, object] | Unanswered | None
"""Answers by the ids of the lines; None: the user declined."""


class Channel(Protocol):
    """A front end as a session sees it. Its user reads the events of the session and is asked by these methods."""

    @property
    def name(self) -> str:
        """Name under which its answers are recorded and shown to the other channels."""
        ...

    async def ask_permission(self, request: PermissionRequest) -> PermissionChoice | Unanswered:
        """Ask for a permission; cancelled when the request was answered elsewhere, expired or withdrawn."""
        ...

    async def ask_question(self, question: Question) -> QuestionReply:
        """Ask a question; cancelled when it was answered elsewhere, expired or withdrawn."""
        ...

    def show_answered(self, by: str) -> None:
        """Show that a permission request was answered, expired or was withdrawn elsewhere.

        Args:
            by: Name of the other channel, `timeout` or `cancelled`.
        """
        ...


class PermissionAnswers(Protocol):
    """Receiver of the answers to permission requests."""

    def answer(self, request: str, option: str, *, note: str | None, by: str) -> object:
        """Answer a request; the first answer counts.

        Raises:
            TillerError: It has no such option.
        """
        ...


class QuestionAnswers(Protocol):
    """Receiver of the answers to questions."""

    def answer(self, request: str, answers: Mapping[str, object] | None, *, by: str) -> object:
        """Answer a question; the first answer counts. None: the user declined.

        Raises:
            TillerError: The answers do not fit.
        """
        ...


class ChannelSession(Protocol):
    """A session that asks its users: of this process, or of a daemon."""

    @property
    def permissions(self) -> PermissionAnswers:
        """Receiver of the answers to permission requests."""
        ...

    @property
    def questions(self) -> QuestionAnswers:
        """Receiver of the answers to questions."""
        ...

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False
    ) -> EventSubscription:
        """Open a reader of its events, or `only` of some types; with `partials` it shows arguments as they grow. The caller closes it."""
        ...
