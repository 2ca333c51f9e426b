"""Access tokens of Google's Application Default Credentials, renewed when they run out."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

import anyio.to_thread

from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.kernel.values import SecretValue, Value

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
NO_LIBRARY = "Application Default Credentials need google-auth; install tiller[vertex], or set GOOGLE_CLOUD_API_KEY"
NO_CREDENTIALS = (
    "there are no Application Default Credentials; run `gcloud auth application-default login`, or set "
    "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_CLOUD_API_KEY"
)


class Ticket(SecretValue, frozen=True, kw_only=True):
    """A token that lets one request in, and what came with it; its `repr` does not show it."""

    hidden: ClassVar = frozenset({"token"})

    token: str
    project: str | None = None
    """The project that the credentials belong to."""
    quota_project: str | None = None
    """The project whose quota is used, when that is another."""


class TicketSource(Protocol):
    """Source of access tokens."""

    async def ticket(self) -> Ticket:
        """Return one that is valid now.

        Raises:
            ProviderError: There is none to be had; the text says what to do.
        """
        ...


class AdcTokens:
    """Source of tokens of the Application Default Credentials. To be shared: each instance loads them for itself."""

    def __init__(self, *, provider: str = "google-vertex") -> None:
        self._provider = provider
        self._found: tuple[Credentials, str | None] | None = None
        # One renewal at a time, in a thread: the library blocks.
        self._lock = threading.Lock()

    async def ticket(self) -> Ticket:
        """Return one that is valid now."""
        return await anyio.to_thread.run_sync(self._ticket, abandon_on_cancel=True)

    def _ticket(self) -> Ticket:
        """Import google-auth: an extra, and a tenth of a second that only those pay who need it."""
        try:
            from google.auth import exceptions  # noqa: PLC0415 - see above
        except ImportError:
            raise self._failure(NO_LIBRARY) from None
        try:
            with self._lock:
                return self._renewed()
        except exceptions.DefaultCredentialsError as error:
            message = f"{NO_CREDENTIALS} ({error})"
            raise self._failure(message) from None
        except exceptions.TransportError as error:
            message = f"Google's token server cannot be reached ({error})"
            raise self._failure(message, reason="network") from None
        except exceptions.GoogleAuthError as error:
            message = f"its credentials were refused ({error}); log in again"
            raise self._failure(message) from None

    def _renewed(self) -> Ticket:
        import google.auth  # noqa: PLC0415 - see _ticket

        if self._found is None:
            self._found = google.auth.default(scopes=[SCOPE], request=_fetched)  # pyright: ignore[reportUnknownMemberType] - untyped
        credentials, project = self._found
        if not credentials.valid:
            credentials.refresh(_fetched)  # pyright: ignore[reportUnknownMemberType] - untyped
        return Ticket(
            token=str(credentials.token),
            project=project,
            quota_project=credentials.quota_project_id,
        )

    def _failure(self, why: str, *, reason: ProviderErrorKind = "auth") -> ProviderError:
        message = f"{self._provider} cannot be asked: {why}"
        return ProviderError(
            message, reason=reason, provider=self._provider, before_first_byte=True
        )


class _Fetched(Value, frozen=True, kw_only=True):
    """An answer in the form that google-auth wants."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _fetched(
    url: str,
    method: str = "GET",
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = 30.0,
    **_options: object,
) -> _Fetched:
    """Fetch for google-auth, which brings no HTTP of its own."""
    import httpx  # noqa: PLC0415 - as in the pool of connections
    from google.auth import exceptions  # noqa: PLC0415 - see AdcTokens._ticket

    try:
        answer = httpx.request(
            method, url, content=body, headers=headers, timeout=timeout, follow_redirects=False
        )
    except httpx.HTTPError as error:
        raise exceptions.TransportError(error) from error
    return _Fetched(status=answer.status_code, headers=answer.headers, data=answer.content)
