"""How the web front end is started, and its limits."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Final

from agent_core.kernel.values import SecretValue, Value
from agent_core.resources.paths import AppPaths
from tiller_server.web.methods import Role

PAGE: Final = Path(__file__).parent / "page"


class WebLimits(Value, frozen=True, kw_only=True):
    """Limits of one browser."""

    head_s: float = 10.0
    """Time for the head of a request to arrive."""
    body_s: float = 30.0
    """Time for its body."""
    send_s: float = 30.0
    """Time for a browser to take what is sent; then its connection is dropped."""
    heartbeat_s: float = 15.0
    """Silence of a stream after which it is sent a comment."""
    max_ahead: int = 512 << 10
    """Bytes that wait for one browser before it no longer shares the subscription of the others."""
    max_buffered: int = 8 << 20
    """Bytes that wait for one browser; with more its stream ends, and it comes back with the last id that it has."""
    max_streams: int = 32
    max_sessions: int = 32
    """Sessions of one stream."""
    max_login_bytes: int = 4096
    max_request_bytes: int = (8 << 20) + (64 << 10)
    """The largest prompt, and what is around it."""
    max_blob_bytes: int = 32 << 20
    """The largest attachment; for images the limit is lower."""
    blob_s: float = 120.0
    """Time for an attachment to arrive."""


class WebOptions(SecretValue, frozen=True, kw_only=True):
    """How a server is started."""

    hidden: ClassVar = frozenset({"env"})

    role: Role
    root: Path
    """The workspace."""
    token_file: Callable[[int], Path]
    """Returns the file for the token of scripts, by port, in a folder that belongs to the user alone."""
    paths: AppPaths
    """Where the sessions and the tasks are stored."""
    env: Mapping[str, str]
    """Environment with the credentials of a bucket of attachments."""
    page: Path = PAGE
    """Folder of the built page."""
    limits: WebLimits = WebLimits()
