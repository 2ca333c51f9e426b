"""Authentication of a request: a key and headers, looked up again for each request, and never shown."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

import msgspec

from agent_core.kernel.redaction.pattern_search import is_secret_name, looks_secret
from agent_core.kernel.values import SecretValue


class RequestCredentials(SecretValue, frozen=True, kw_only=True):
    """A key and headers for one request; its `repr` shows neither."""

    hidden: ClassVar = frozenset({"key", "headers"})

    key: str | None = None
    """None: the server asks for none."""
    bearer: bool = False
    """The key goes into `Authorization: Bearer` also where the API has a header of its own."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """These win over what an adapter would send."""
    source: str | None = None
    """Where the key comes from, in words for the user: a variable or file, never the key."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must not show in an error."""
        return tuple(value for value in (self.key, *self.headers.values()) if value)

    @property
    def redacted_values(self) -> tuple[str, ...]:
        """Values that must not be shown anywhere: the key and the secret headers."""
        headers = (
            value
            for name, value in self.headers.items()
            if is_secret_name(name) or looks_secret(value)
        )
        return (*((self.key,) if self.key else ()), *headers)


class Authenticator(Protocol):
    """The way in to one provider."""

    async def credentials(self) -> RequestCredentials:
        """Find the key and headers for a request.

        Raises:
            ProviderError: Of reason `auth`: there is none; the text names what to set.
        """
        ...


def with_headers(base: Mapping[str, str], *overrides: Mapping[str, str]) -> dict[str, str]:
    """Lay headers over one another; their names have no case, and the later win."""
    merged = {name.lower(): value for name, value in base.items()}
    for override in overrides:
        merged.update({name.lower(): value for name, value in override.items()})
    return merged
