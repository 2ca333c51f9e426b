"""Conversion of a model's Markdown into HTML without active content: pure.

Two layers of defence. The parser escapes HTML in the source; a sanitizer then reduces the output to a short list of
elements. Without those libraries (the extra `export`) the source itself is shown.
"""

import functools
from collections.abc import Callable, Mapping
from html import escape

from agent_core.transcript.export.pieces import printable

SCHEMES = frozenset({"http", "https", "mailto"})
"""Where a link may lead."""
ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "a": frozenset({"href", "title"}),
    "ol": frozenset({"start"}),
}
ELEMENTS = frozenset(
    [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
RENDERED_CHARS = 100_000
"""Longer answers are shown as they are: rendering is slow, and a person reads no such thing formatted."""


def renderer() -> Callable[[str], str]:
    """Return what turns an answer into HTML that is safe to put into a document."""
    try:
        import nh3  # noqa: PLC0415 - an extra, and not needed to start
        from markdown_it import MarkdownIt  # noqa: PLC0415 - the same
    except ImportError:
        return as_typed
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # A picture in an answer lies elsewhere and would tell its server who reads: the link remains.
    parser.disable("image")
    clean = functools.partial(
        nh3.clean,
        tags=set(ELEMENTS),
        attributes={name: set(allowed) for name, allowed in ATTRIBUTES.items()},
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer",
        attribute_filter=_kept,
    )

    def render(text: str) -> str:
        if len(text) > RENDERED_CHARS:
            return as_typed(text)
        rendered = str(parser.render(printable(text)))  # pyright: ignore[reportAny] - the parser's renderers may give anything
        return f'<div class="prose">{clean(rendered)}</div>'

    return render


def _kept(element: str, attribute: str, value: str) -> str | None:
    """Drop a link that leads nowhere outside: relative to the file, it would name the reader's own disk."""
    is_link = (element, attribute) == ("a", "href")
    scheme = value.partition(":")[0].lower()
    return None if is_link and scheme not in SCHEMES else value


def as_typed(text: str) -> str:
    """Return a text as HTML that shows it just as it is."""
    # A newline right behind the tag belongs to the tag.
    return f'<pre class="typed">\n{escape(printable(text))}</pre>'
