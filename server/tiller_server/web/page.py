"""The page and its files, as `npm run web` builds them."""

import gzip
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tiller_server.web.guard import refused

TYPES: Final[Mapping[str, str]] = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
}
NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
LEAST_ZIPPED: Final = 1024
MISSING: Final = (
    "The page has not been built. In a checkout run `npm run web` in vscode-client; "
    "a wheel brings it along.\n"
)


def takes_gzip(request: Request) -> bool:
    """Return whether the browser can read what is compressed."""
    return "gzip" in request.headers.get("accept-encoding", "")


def page(folder: Path) -> Response:
    """Return the page, with a nonce of its own. Blocking."""
    try:
        text = (folder / "index.html").read_text("utf-8")
    except FileNotFoundError:
        return PlainTextResponse(MISSING, status_code=503)
    nonce = secrets.token_urlsafe(18)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'nonce-{nonce}'",
            f"style-src 'self' 'nonce-{nonce}'",
            "font-src 'self'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "manifest-src 'self'",
            "worker-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return Response(
        text.replace("{{nonce}}", nonce),
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": policy},
    )


def asset(folder: Path, name: str, *, zipped: bool) -> Response:
    """Return a file of the page. Blocking.

    Args:
        folder: Folder of the page.
        name: Name of the file.
        zipped: Whether the browser takes gzip.
    """
    kind = TYPES.get(Path(name).suffix)
    if NAME.fullmatch(name) is None or kind is None:
        return refused(404, "there is no such file")
    path = folder / name
    try:
        changed_ns, data = path.stat().st_mtime_ns, path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return refused(404, "there is no such file")
    headers = {"cache-control": "no-cache", "vary": "accept-encoding"}
    if zipped and len(data) >= LEAST_ZIPPED:
        data = _zipped(path, changed_ns)
        headers["content-encoding"] = "gzip"
    return Response(data, media_type=kind, headers=headers)


@lru_cache(maxsize=16)
def _zipped(path: Path, _changed_ns: int) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)
