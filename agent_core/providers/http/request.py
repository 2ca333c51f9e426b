"""One request to a provider, as a value."""

from collections.abc import Mapping
from typing import ClassVar

from agent_core.kernel.values import SecretValue


class HttpRequest(SecretValue, frozen=True, kw_only=True):
    """An HTTP POST request; its `repr` shows no secret."""

    hidden: ClassVar = frozenset({"headers", "body", "secrets"})

    provider: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    secrets: tuple[str, ...] = ()
    """Values that must not be shown in any error."""
    key_source: str | None = None
    """Where the key comes from, to be told when it is refused."""
    signed: bool = False
    """The signature covers headers and body, so neither may be changed."""
