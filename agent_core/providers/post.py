"""One request to a provider, as a value."""

from collections.abc import Mapping
from dataclasses import field

from agent_core.kernel.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What is sent; its `repr` shows no secret."""

    provider: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What must not show in any error."""
    key_source: str | None = None
    """Where the key comes from, to be told when it is refused."""
    signed: bool = False
    """The signature covers headers and body, so neither may be changed."""
