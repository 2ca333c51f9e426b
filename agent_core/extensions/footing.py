"""What one loading of an extension stands on: the session, as soon as it is open, and for as long as this loading lasts."""

from agent_core.extensions.life import Life
from agent_core.extensions.ports import Services, Session
from agent_core.kernel.errors import Unsupported

TOO_EARLY = "the session is not open while extensions are loaded; do this in a handler, of session_start for one"


class Footing:
    """The session of an extension, asked for anew at each use."""

    __slots__ = ("_services", "extension", "life")

    def __init__(self, extension: str) -> None:
        self.extension = extension
        self.life = Life(extension)
        self._services: Services | None = None

    def bind(self, services: Services) -> None:
        """Set the session's services."""
        self._services = services

    @property
    def services(self) -> Services:
        """What the session does for extensions.

        Raises:
            ContextStale: The extension was loaded anew, or the session is over.
            Unsupported: The extension is only being loaded.
        """
        self.life.check()
        if self._services is None:
            raise Unsupported(TOO_EARLY)
        return self._services

    @property
    def session(self) -> Session:
        """The session; raises as `services`."""
        return self.services.session
