"""The people of a session, for extensions: the session's own questions, and events for all that only is shown."""

from agent_core.events import Answers, QuestionLine, UiEvent
from agent_core.extensions.scope import Footing
from agent_core.extensions.ui.view_filter import Shown
from agent_core.kernel.values import Value


class SessionScreen(Value, frozen=True):
    """Asks and shows by way of a session, as it is when it does."""

    footing: Footing

    @property
    def is_attended(self) -> bool:
        """Whether people can be asked."""
        return self.footing.services.is_attended()

    async def ask(self, line: QuestionLine, *, timeout_s: float | None) -> Answers:
        """Ask and wait."""
        return await self.footing.session.questions.ask([line], timeout_s=timeout_s)

    def shows(self, what: Shown) -> bool:
        """Return whether some client shows such a thing."""
        return self.footing.services.shows(what)

    def show(self, event: UiEvent) -> None:
        """Hand a view to the clients."""
        services = self.footing.services
        _ = services.thread.call(lambda: services.show(event))
