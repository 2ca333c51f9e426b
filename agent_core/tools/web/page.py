"""Web pages as text for a model: HTML as Markdown, other text as it is."""

import codecs
import re
from typing import Final

from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import for_model
from agent_core.tools.web.values import WebResponse, about_size

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
TEXT_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/yaml", "application/toml",
     "application/x-yaml", "application/x-sh", "application/graphql", "application/x-ndjson", "image/svg+xml"}
)  # fmt: skip
TEXT_ENDS: Final = ("+json", "+xml", "+yaml")
SNIFFED_BYTES: Final = 4_096
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-z0-9_.:-]{2,40})", re.IGNORECASE
)


def page_text(response: WebResponse) -> str:
    """Return the text of a response. Takes seconds for a large page: not for the loop's thread.

    Raises:
        ToolError: It is not text.
    """
    kind = response.media_type
    head = response.body[:SNIFFED_BYTES]
    is_html = kind in HTML or (not kind and head.lstrip()[:1] == b"<")
    is_text = is_html or kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(TEXT_ENDS)
    if (kind and not is_text) or b"\0" in head.replace(b"\xff\xfe", b"")[:1]:
        message = f"{response.url} is {kind or 'binary data'} ({about_size(response)}), which cannot be read as text."
        raise ToolError(message)
    text = _decoded(response)
    if not kind and "\0" in text:
        message = (
            f"{response.url} is binary data ({about_size(response)}), which cannot be read as text."
        )
        raise ToolError(message)
    return for_model(_markdown(text, response.url) if is_html else text)


def _decoded(response: WebResponse) -> str:
    found = _META_CHARSET.search(response.body[:SNIFFED_BYTES])
    named = response.charset or (None if found is None else found[1].decode("ascii"))
    if response.body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        named = "utf-16"
    try:
        return response.body.decode(named or "utf-8", "replace").removeprefix("\ufeff")
    except LookupError:
        return response.body.decode("utf-8", "replace").removeprefix("\ufeff")


def _markdown(html: str, url: str) -> str:
    from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415 - 4 MiB, in the thread of the first page

    options = ConversionOptions(
        extract_metadata=False,
        inline_data_media="alt_text_only",
        base_url=url,
        bullets="-",
    )
    made = convert(html, options).content or ""
    return made.strip()
