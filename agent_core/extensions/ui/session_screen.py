"""The people of a session, for extensions: the session's own questions, and events for all that only is shown."""

from agent_core.events import Answers, QuestionLine, UiEvent
from agent_core.extensions.scope import ExtensionScope
from agent_core.extensions.ui.view_filter import ViewKind
from agent_core.kernel.values import Value


class SessionScreen(Value, frozen=True):
    """Asks and shows by way of a session, as it is when it does."""

    scope: ExtensionScope

    @property
    def is_attended(self) -> bool:
        """Whether people can be asked."""
        return self.scope.services.is_attended()

    async def ask(self, line: QuestionLine, *, timeout_s: float | None) -> Answers:
        """Ask and wait."""
        return await self.scope.session.questions.ask([line], timeout_s=timeout_s)

    def shows(self, what: ViewKind) -> bool:
        """Return whether some client shows such a thing."""
        return self.scope.services.shows(what)

    def show(self, event: UiEvent) -> None:
        """Hand a view to the clients."""
        services = self.scope.services
        _ = services.thread.call(lambda: services.show(event))
