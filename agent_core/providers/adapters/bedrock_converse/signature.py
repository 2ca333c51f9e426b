"""Signs requests to Amazon with the credentials that its own tools would use."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread

from agent_core.kernel.errors import ProviderError

if TYPE_CHECKING:
    from botocore.session import Session

SERVICE = "bedrock"
NO_CREDENTIALS = (
    "there are no AWS credentials; set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or AWS_PROFILE"
)


class Signer(Protocol):
    """Makes a request one that Amazon lets in."""

    async def region(self, profile: str | None) -> str | None:
        """Return the region that a profile names."""
        ...

    async def signed(
        self, url: str, body: bytes, *, headers: Mapping[str, str], region: str, profile: str | None
    ) -> Mapping[str, str]:
        """Return the headers to send: those given, and the signature.

        Raises:
            ProviderError: Of reason `auth`: there are no credentials; the text says what to set.
        """
        ...


class AwsSigner:
    """Signs with what the environment, the profile files, SSO or the machine's role give.

    Credentials are looked for once per profile; those that expire are renewed when they are used.
    """

    def __init__(self, *, provider: str = "amazon-bedrock") -> None:
        self._provider = provider
        self._sessions: dict[str | None, Session] = {}
        # Requests are signed in threads, and a session is not made to be shared while it starts.
        self._lock = threading.Lock()

    async def region(self, profile: str | None) -> str | None:
        """Return the region that a profile names."""
        return await anyio.to_thread.run_sync(self._region, profile, abandon_on_cancel=True)

    async def signed(
        self, url: str, body: bytes, *, headers: Mapping[str, str], region: str, profile: str | None
    ) -> Mapping[str, str]:
        """Return the headers to send: those given, and the signature."""

        def sign() -> Mapping[str, str]:
            return self._signed(url, body, headers=headers, region=region, profile=profile)

        return await anyio.to_thread.run_sync(sign, abandon_on_cancel=True)

    def _region(self, profile: str | None) -> str | None:
        with self._lock:
            session = self._session(profile)
            from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - see _session

            try:
                value: object = session.get_config_variable("region")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
            except BotoCoreError as error:
                raise self._refusal(str(error)) from None
        return value if isinstance(value, str) else None

    def _signed(
        self, url: str, body: bytes, *, headers: Mapping[str, str], region: str, profile: str | None
    ) -> Mapping[str, str]:
        with self._lock:
            session = self._session(profile)
            from botocore.auth import SigV4Auth  # noqa: PLC0415 - see _session
            from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - see _session
            from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - see _session

            try:
                credentials = session.get_credentials()  # pyright: ignore[reportUnknownVariableType] - untyped
                if credentials is None:
                    raise self._refusal(NO_CREDENTIALS)
                frozen = credentials.get_frozen_credentials()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
            except BotoCoreError as error:
                raise self._refusal(str(error)) from None
        request = AWSRequest(method="POST", url=url, data=body, headers=dict(headers))
        SigV4Auth(frozen, SERVICE, region).add_auth(request)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - untyped
        return {str(name): str(value) for name, value in request.headers.items()}

    def _session(self, profile: str | None) -> "Session":
        """Import botocore: a fifth of a second and an extra, which only those pay who sign."""
        try:
            from botocore.session import Session  # noqa: PLC0415 - see above
        except ImportError:
            message = (
                "signing needs botocore; install tiller[bedrock], or set AWS_BEARER_TOKEN_BEDROCK"
            )
            raise self._refusal(message) from None
        found = self._sessions.get(profile)
        if found is None:
            found = self._sessions[profile] = Session(profile=profile)
        return found

    def _refusal(self, why: str) -> ProviderError:
        message = f"{self._provider} cannot be asked: {why}"
        return ProviderError(
            message, reason="auth", provider=self._provider, before_first_byte=True
        )
