"""Reads an HTML document as a browser would and says what in it is not on the list of harmless things."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

from typing_extensions import override

# fmt: off
ELEMENTS = frozenset({
    "a", "article", "blockquote", "body", "br", "code", "dd", "del", "details", "div", "dl",
    "dt", "em", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html",
    "img", "li", "main", "mark", "meta", "nav", "ol", "p", "pre", "s", "section", "strong",
    "style", "summary", "table", "tbody", "td", "th", "thead", "title", "tr", "ul",
})
# fmt: on
ATTRIBUTES = {
    "": {"class", "id"},
    "a": {"href", "rel", "title"},
    "details": {"open"},
    "html": {"lang"},
    "img": {"alt", "src"},
    "meta": {"charset", "content", "http-equiv", "name"},
    "ol": {"start"},
}
SCHEMES = {"http", "https", "mailto"}
VOID = {"br", "hr", "img", "meta"}
PICTURES = ("data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,")


@dataclass
class Page:
    """A document, read."""

    faults: list[str] = field(default_factory=list)
    text: str = ""
    title: str = ""
    metas: list[dict[str, str | None]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)


def read_page(document: str) -> Page:
    """Read a document; `faults` is empty when nothing in it can do harm and every element is closed."""
    document.encode("utf-8")
    reader = _Reader()
    reader.feed(document)
    reader.close()
    page = reader.page
    page.faults.extend(f"<{name}> is never closed" for name in reader.open)
    if len(page.styles) != 1:
        page.faults.append(f"{len(page.styles)} style elements")
    if len(set(page.ids)) != len(page.ids):
        page.faults.append("an id is there twice")
    inside = {link[1:] for link in page.links if link.startswith("#")}
    page.faults.extend(f"no place {name!r}" for name in inside - set(page.ids))
    return page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[str] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS:
            self.page.faults.append(f"element <{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES.get(tag, set()) | ATTRIBUTES[""]:
                self.page.faults.append(f"attribute {name}={value!r} of <{tag}>")
            self._attribute(tag, name, value or "")
        if tag == "meta":
            self.page.metas.append(dict(attrs))
        if tag == "style":
            self.page.styles.append("")
        if tag not in VOID:
            self.open.append(tag)

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.page.faults.append(f"</{tag}> closes something else")

    @override
    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.page.styles[-1] += data
        elif self.open and self.open[-1] == "title":
            self.page.title += data
        else:
            self.page.text += data

    @override
    def handle_comment(self, data: str) -> None:
        self.page.faults.append(f"comment {data!r}")

    @override
    def unknown_decl(self, data: str) -> None:
        self.page.faults.append(f"declaration {data!r}")

    @override
    def handle_decl(self, decl: str) -> None:
        if decl != "DOCTYPE html":
            self.page.faults.append(f"declaration {decl!r}")

    @override
    def handle_pi(self, data: str) -> None:
        self.page.faults.append(f"processing instruction {data!r}")

    def _attribute(self, tag: str, name: str, value: str) -> None:
        page = self.page
        if name == "id":
            page.ids.append(value)
        elif name == "href":
            page.links.append(value)
            scheme = urlsplit(value.strip()).scheme
            if not value.startswith("#") and scheme.lower() not in SCHEMES:
                page.faults.append(f"a link to {value!r}")
        elif name == "src":
            page.pictures.append(value)
            if not value.startswith(PICTURES):
                page.faults.append(f"a picture from {value!r:.100}")
        elif tag == "meta" and name == "http-equiv" and value != "Content-Security-Policy":
            page.faults.append(f"meta {value!r}")
