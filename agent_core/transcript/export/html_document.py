"""A session as one HTML file that needs nothing else and runs nothing: pure."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.transcript.entries import AnyEntry, Header
from agent_core.transcript.export.answer_html import as_typed, renderer
from agent_core.transcript.export.branches import Branch, branches_of, forks_of
from agent_core.transcript.export.images import data_uri
from agent_core.transcript.export.pieces import (
    SUMMARY,
    UNTITLED,
    USER,
    ExportedEntry,
    ExportPiece,
    ImagePiece,
    MarkdownPiece,
    OutputPiece,
    RemarkPiece,
    ThinkingPiece,
    ToolCallPiece,
    TypedPiece,
    labels_of,
    models_of,
    moment,
    printable,
    shown,
    title_of,
    usage_lines,
    usage_of,
)
from agent_core.transcript.export.style import STYLE

FOLDED_CHARS = 2_000
"""Outputs that are longer begin folded."""
PREVIEW_CHARS = 80
_CLASSES: Mapping[str, str] = {USER: "user", SUMMARY: "summary"}


def html(
    header: Header, entries: Sequence[AnyEntry], leaf: EntryId | None, *, title: str | None = None
) -> str:
    """Return a session with all its branches as an HTML document that is safe against its own content.

    The present branch comes first, with links to the others where they leave it. The document has no script and loads
    nothing from the network: it forbids both itself. Blocks, long for a large session: call it in a worker thread.

    Args:
        header: The session's header.
        entries: All entries in the order of the file, with their bodies.
        leaf: The end of the present branch.
        title: Title of the document; None: the name in the entries.
    """
    name = _line(title or title_of(entries) or UNTITLED)
    views = {one.entry: one for one in map(shown, entries) if one is not None}
    branches = [
        branch
        for branch in branches_of(entries, leaf)
        if any(entry.id in views for entry in branch.entries)
    ]
    page = _Page(
        views=views,
        places={entry: place for place, entry in enumerate(views, start=1)},
        labels=labels_of(entries),
        forks=forks_of(branches),
        answer=renderer(),
    )
    parts = [
        *_opening(name),
        f"<header><h1>{name}</h1>{_facts(header, entries)}</header>",
        *page.index(branches),
        *(part for branch in branches for part in page.section(branch)),
        *_usage(entries),
        "</body></html>\n",
    ]
    return "".join(parts)


class _Page(Value, frozen=True, kw_only=True):
    """Data that the parts of the document share.

    Ids in the document are generated numbers: ids of the entries may contain any text.
    """

    views: Mapping[EntryId, ExportedEntry]
    places: Mapping[EntryId, int]
    labels: Mapping[EntryId, str]
    forks: Mapping[EntryId, Sequence[Branch]]
    answer: Callable[[str], str]

    def index(self, branches: Sequence[Branch]) -> Iterator[str]:
        """Return the list of branches, if there are several."""
        if len(branches) > 1:
            listed = "".join(f"<li>{self._link(branch)}</li>" for branch in branches)
            yield f"<nav><h2>Branches</h2><ul>{listed}</ul></nav>"

    def section(self, branch: Branch) -> Iterator[str]:
        """Return a branch; all but the present one begin folded."""
        if branch.number == 1:
            yield '<main id="branch-1">'
            yield from self._entries(branch)
            yield "</main>"
            return
        name = f"Branch {branch.number}: {self._preview(branch)}"
        yield f'<section id="branch-{branch.number}"><details><summary>{name}</summary>'
        place = None if branch.after is None else self.places.get(branch.after)
        if place is not None:
            yield f'<p class="forks">Goes on from <a href="#entry-{place}">an earlier message</a>.</p>'
        yield from self._entries(branch)
        yield "</details></section>"

    def _entries(self, branch: Branch) -> Iterator[str]:
        before = ""
        for entry in branch.entries:
            view = self.views.get(entry.id)
            if view is not None:
                yield self._entry(view, before=before)
                before = view.speaker or before
            ways = self.forks.get(entry.id)
            if ways:
                yield f'<p class="forks">Other ways on: {"; ".join(map(self._link, ways))}</p>'

    def _entry(self, view: ExportedEntry, *, before: str) -> str:
        label = self.labels.get(view.entry)
        mark = f"<mark>{_line(label)}</mark>" if label else ""
        heading = ""
        if view.speaker and (mark or view.speaker != before):
            parts = [_line(view.speaker), _line(view.model), moment(view.at_ms), mark]
            heading = f"<h2>{' · '.join(word for word in parts if word)}</h2>"
        elif mark:
            heading = f"<h2>{mark}</h2>"
        kind = _CLASSES.get(view.speaker, "other")
        pieces = "".join(self._piece(piece) for piece in view.pieces)
        place = self.places[view.entry]
        return f'<article id="entry-{place}" class="{kind}">{heading}{pieces}</article>'

    def _piece(self, piece: ExportPiece) -> str:
        match piece:
            case TypedPiece():
                return as_typed(piece.text)
            case MarkdownPiece():
                return self.answer(piece.text)
            case ThinkingPiece():
                return f"<details><summary>Thinking</summary>{as_typed(piece.text)}</details>"
            case ToolCallPiece() | OutputPiece():
                return _call(piece) if isinstance(piece, ToolCallPiece) else _output(piece)
            case ImagePiece():
                return _picture(piece)
            case RemarkPiece():
                return f'<p class="remark">{_line(piece.text)}</p>'

    def _link(self, branch: Branch) -> str:
        name = "the present branch" if branch.number == 1 else f"branch {branch.number}"
        return f'<a href="#branch-{branch.number}">{name}</a>: {self._preview(branch)}'

    def _preview(self, branch: Branch) -> str:
        """Return how a branch begins."""
        said = [self.views[entry.id] for entry in branch.entries if entry.id in self.views]
        for view in said:
            for piece in view.pieces:
                if isinstance(piece, TypedPiece | MarkdownPiece):
                    text = " ".join(piece.text[: PREVIEW_CHARS * 4].split())
                    return _line(text[:PREVIEW_CHARS])
        return f"{len(said)} entries"


def _opening(name: str) -> Iterator[str]:
    digest = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="referrer" content="no-referrer">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{name}</title><style>{STYLE}</style></head><body>"


def _facts(header: Header, entries: Sequence[AnyEntry]) -> str:
    facts = [
        ("Session", header.id),
        ("Started", moment(header.at_ms)),
        ("Folder", header.cwd),
        ("Models", ", ".join(models_of(entries))),
        ("Continues", header.parent_session or ""),
    ]
    return _listed([(name, value) for name, value in facts if value])


def _usage(entries: Sequence[AnyEntry]) -> Iterator[str]:
    rows = usage_lines(usage_of(entries))
    if rows:
        yield f"<footer><h2>Usage of all branches</h2>{_listed(rows)}</footer>"


def _listed(rows: Sequence[tuple[str, str]]) -> str:
    inner = "".join(f"<dt>{_line(name)}</dt><dd>{_line(value)}</dd>" for name, value in rows)
    return f"<dl>{inner}</dl>"


def _call(call: ToolCallPiece) -> str:
    parts = [f"<summary>Tool call: <code>{_line(call.name)}</code></summary>"]
    if call.arguments:
        parts.append(_block(call.arguments))
    for name, value in call.long:
        parts.append(f"<p><code>{_line(name)}</code></p>{_block(value)}")
    size = len(call.arguments) + sum(len(value) for _, value in call.long)
    return _folding(parts, size=size)


def _output(output: OutputPiece) -> str:
    parts = [f"<summary>{_line(output.title)}</summary>"]
    if output.command:
        parts.append(_block(f"$ {output.command}"))
    parts.append(
        _block(output.text) if output.text.strip() else '<p class="remark">(no output)</p>'
    )
    return _folding(parts, size=len(output.text), failed=output.failed)


def _folding(parts: Sequence[str], *, size: int, failed: bool = False) -> str:
    state = "" if size > FOLDED_CHARS else " open"
    kind = ' class="failed"' if failed else ""
    return f"<details{kind}{state}>{''.join(parts)}</details>"


def _picture(picture: ImagePiece) -> str:
    uri = data_uri(picture.mime, picture.data)
    if uri is None:
        return f'<p class="remark">(an image of type {_line(picture.mime)} that is not shown)</p>'
    return f'<p><img src="{uri}" alt="image"></p>'


def _block(text: str) -> str:
    # A newline right behind the tag belongs to the tag.
    return f'<pre class="block">\n{escape(printable(text))}</pre>'


def _line(text: str) -> str:
    return escape(" ".join(printable(text).split()))
