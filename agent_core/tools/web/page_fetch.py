"""The work of the tool `fetch`: one page, cut to what a model can take, whole in a file."""

import os
import secrets
from pathlib import Path
from typing import Final, Protocol

from agent_core.kernel import JsonValue
from agent_core.kernel.private_file import make_private_folder
from agent_core.kernel.text import (
    DEFAULT_MAX_BYTES,
    byte_count,
    cut_bytes,
    format_size,
    one_line,
    truncate_head,
)
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.port import ToolContext, ToolResult, error_result, text_result
from agent_core.tools.web.address import Resolve
from agent_core.tools.web.page import page_text
from agent_core.tools.web.requests import client_of
from agent_core.tools.web.values import FIRST_ERROR, WebRequest, WebResponse, about_size, fenced

ERROR_BYTES: Final = 2_048


class PageFetcher(Protocol):
    """The type of `fetch_page`."""

    async def __call__(
        self, url: str, context: ToolContext, *, resolve: Resolve | None
    ) -> ToolResult:
        """Fetch a page and return its text as data."""
        ...


async def fetch_page(url: str, context: ToolContext, *, resolve: Resolve | None) -> ToolResult:
    """Fetch a page and return its text as data.

    Raises:
        ToolError: There is no page, or no text in it.
    """
    response = await client_of(context.options, resolve).send(WebRequest(url=url))
    text = await run_in_thread(lambda: page_text(response))
    details: dict[str, JsonValue] = {
        "url": response.url,
        "status": response.status,
        "type": response.media_type,
        "bytes": len(response.body),
    }
    if response.status >= FIRST_ERROR:
        head = f"{response.url} answered {response.status} {one_line(response.reason)}".rstrip()
        part = cut_bytes(text, ERROR_BYTES)
        return error_result(
            f"{head}.\n{fenced(part)}" if part else f"{head}.",
            details={**details, "happened": f"{head}."},
        )
    return await _result(response, text, details, scratch=context.scratch)


async def _result(
    response: WebResponse, text: str, details: dict[str, JsonValue], *, scratch: str
) -> ToolResult:
    kind = response.media_type or "no type named"
    parts = [f"{response.url} ({kind}, {about_size(response)})"]
    if not text.strip():
        parts.append("The page has no text; it may be made by a script in the browser.")
        return text_result("\n".join(parts), details=details)
    part = truncate_head(cut_bytes(text, DEFAULT_MAX_BYTES)).content
    parts.append(fenced(part))
    if len(part) < len(text):
        kept = await run_in_thread(lambda: _keep(text, scratch))
        shown, whole = format_size(byte_count(part)), format_size(byte_count(text))
        more = f" The whole text is in {kept}: read or grep it." if kept else ""
        parts.append(f"[Cut: the first {shown} of {whole} are above.{more}]")
        details["full_output"] = kept
    return text_result("\n".join(parts), details=details)


def _keep(text: str, folder: str) -> str | None:
    """Write a whole text into a private file and return its path; None: there is no place for it. Blocking."""
    if not folder:
        return None
    path = Path(folder) / f"fetch-{secrets.token_hex(8)}.md"
    try:
        make_private_folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", newline="") as file:
            _ = file.write(text)
    except OSError:
        return None
    return str(path)
