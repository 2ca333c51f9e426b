"""Web pages that a user attaches to a prompt, as files of text."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import AttachmentRefused, ToolError
from agent_core.kernel.text import KIB, byte_count, cut_bytes, format_size, one_line
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.tools.web.address import clean_url, host_of
from agent_core.tools.web.values import FIRST_ERROR, WebRequest, about_size, fenced

MOST_BYTES: Final = 128 * KIB
"""Of the text of one page; about 32,000 tokens."""


class AttachedPage(Value, frozen=True, kw_only=True):
    """A page as a file of a prompt."""

    name: str
    """The last part of its path, with its host; the host alone for a front page."""
    text: str
    """Its address, and its text as data."""


async def attached_page(url: str, options: Mapping[str, JsonValue]) -> AttachedPage:
    """Fetch a page that the user named.

    Args:
        url: Its address, as the user wrote it.
        options: Those of the tool `fetch`.

    Raises:
        AttachmentRefused: There is no page, or no text in it.
    """
    await run_in_thread(_import_clients)
    from agent_core.tools.web.page import page_text  # noqa: PLC0415 - few prompts name a page
    from agent_core.tools.web.requests import client_of  # noqa: PLC0415 - few prompts name a page

    try:
        response = await client_of(options, None).send(WebRequest(url=_cleaned(url)))
        text = await run_in_thread(lambda: page_text(response))
    except ToolError as error:
        message = f"The page is not attached. {error}"
        raise AttachmentRefused(message) from error
    if response.status >= FIRST_ERROR:
        status = f"{response.status} {one_line(response.reason)}".rstrip()
        message = f"The page is not attached. {response.url} answered {status}."
        raise AttachmentRefused(message)
    if not text.strip():
        message = f"{response.url} has no text; it may be made by a script in the browser. Copy its text into the prompt."
        raise AttachmentRefused(message)
    part = cut_bytes(text, MOST_BYTES)
    parts = [f"{response.url} ({about_size(response)})", fenced(part)]
    if len(part) < len(text):
        sizes = f"the first {format_size(byte_count(part))} of {format_size(byte_count(text))}"
        parts.append(f"[Cut: {sizes} are above.]")
    return AttachedPage(name=_name(response.url), text="\n".join(parts))


def _import_clients() -> None:
    """Import the libraries that fetch and convert pages: it takes a tenth of a second, too long for the event loop."""
    for name in ("page", "requests"):
        _ = import_module(f"agent_core.tools.web.{name}")


def _cleaned(url: str) -> str:
    try:
        return clean_url(url)
    except ValueError as error:
        message = f"The page {url!r:.200} is not attached: {error}."
        raise AttachmentRefused(message) from None


def _name(url: str) -> str:
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return f"{last} ({host_of(url)})" if last else host_of(url)
