"""Session access of one load of an extension: from the opening of the session until the extension is reloaded."""

from agent_core.extensions.lifetime import Lifetime
from agent_core.extensions.ports import Services, Session
from agent_core.kernel.errors import Unsupported

TOO_EARLY = "the session is not open while extensions are loaded; do this in a handler, of session_start for one"


class ExtensionScope:
    """The session of an extension, asked for anew at each use."""

    __slots__ = ("_services", "extension", "life")

    def __init__(self, extension: str) -> None:
        self.extension = extension
        self.life = Lifetime(extension)
        self._services: Services | None = None

    def bind(self, services: Services) -> None:
        """Set the session's services."""
        self._services = services

    @property
    def services(self) -> Services:
        """Services of the session for extensions.

        Raises:
            ContextStale: The extension was reloaded, or the session is closed.
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
