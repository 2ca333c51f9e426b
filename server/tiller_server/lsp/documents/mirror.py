"""The documents that one editor has open, as its notifications tell; stdlib only, for it is needed at once."""

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from lsprotocol import types
from msgspec.structs import replace

from agent_core.kernel.values import Value
from tiller_server.lsp.documents.positions import LineIndex, PositionEncoding
from tiller_server.lsp.documents.uris import path_of

ENCODINGS: Final[Mapping[str, PositionEncoding]] = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "utf-32": "utf-32",
}

MAX_CONTENT_CHANGES: Final = 32
"""Of more changes that are told at once nobody asks in which order they came."""
_ANY: Final = ""
"""Stands for every document; no URI is empty."""
_HALF: Final = re.compile("[\ud800-\udfff]")

_log = logging.getLogger(__name__)


class Document(Value, frozen=True, kw_only=True, eq=False, dict=True):
    """An open document as the editor has it now. Each change makes a new one."""

    uri: str
    path: Path | None
    """As the URI spells it, links not followed; None when it is no file."""
    language: str
    lines: LineIndex
    version: int | None
    """The editor's own count, which may start anywhere and begin again when the document is opened again. None: it gives
    none."""
    epoch: int
    """Counts what this editor has opened: with it a version means one text."""
    revision: int
    """Counts all changes in this editor, and goes up whatever versions do."""
    touched_at: float
    """When it was opened, changed or looked at last, in seconds of the mirror's clock."""
    changed_at: float = -math.inf
    """When it was changed last; opening is no change."""
    is_counted: bool = True
    """Every version so far was greater than the one before."""
    taken: int | None = None
    """Up to this version changes are in the text already, although they were not told yet."""
    content_changes: Sequence[types.TextDocumentContentChangeEvent] = ()
    """The changes that made it of the one before, where several were told at once, but not very many."""

    @property
    def text(self) -> str:
        """The whole text, line ends as the editor has them."""
        return self.lines.text

    @cached_property
    def sha256(self) -> str:
        """The hash of the text in UTF-8, in hex; made when it is first asked for."""
        return hash_of(self.text)


DocumentListener: TypeAlias = Callable[[Document | None], None]


def passed(before: Document, after: Document) -> Sequence[LineIndex]:
    """Return the texts that a document had from one state to the next, both included, as far as that is known."""
    texts = [before.lines]
    for change in after.content_changes[:-1]:
        texts.append(_followed(LineIndex(texts[-1].text, before.lines.encoding), [change]))
    return [*texts, after.lines]


def hash_of(text: str) -> str:
    """Return the hash of a text in UTF-8, in hex."""
    return sha256(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


class Mirror:
    """Mirrors one editor's documents. Never raises on a notification of an editor: an invalid one is logged."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing open.

        Args:
            clock: Seconds that only go forward, the same for all mirrors.
        """
        self.clock = clock
        self._encoding: PositionEncoding = "utf-16"
        self._open: dict[str, Document] = {}
        self._listeners: dict[str, list[DocumentListener]] = {}
        self._epoch = 0
        self._revision = 0
        self.notebooks: Final[set[str]] = set()
        """URIs of the notebooks that are open."""

    @property
    def encoding(self) -> PositionEncoding:
        """The units in which this editor counts."""
        return self._encoding

    def use_encoding(self, encoding: str) -> None:
        """Set the negotiated position encoding; an unknown one is replaced by LSP's own default, UTF-16."""
        if encoding not in ENCODINGS:
            _log.error("The position encoding %r is unknown; utf-16 is used.", encoding)
        self._encoding = ENCODINGS.get(encoding, "utf-16")

    # ------------------------------------------------------------------ what the editor tells

    def did_open(self, params: types.DidOpenTextDocumentParams, *, version: int | None) -> None:
        """Record an opened document; one that is open already starts anew.

        Args:
            params: As they were sent, except for the version, which may be larger than they can hold.
            version: None: the editor sends none.
        """
        item = params.text_document
        self._epoch += 1
        self._keep(
            Document(
                uri=item.uri,
                path=_path_of(item.uri),
                language=str(item.language_id),
                lines=LineIndex(_mended(item.text), self._encoding),
                version=version,
                is_counted=version is not None,
                epoch=self._epoch,
                revision=self._next_revision(),
                touched_at=self.clock(),
            )
        )

    def did_change(self, params: types.DidChangeTextDocumentParams, *, version: int | None) -> None:
        """Follow the changes, each of which refers to the text after the one before; `version` as in `did_open`."""
        uri = params.text_document.uri
        before = self._open.get(uri)
        if before is None:
            _log.warning("A change of %r was ignored: it is not open.", uri)
            return
        if before.taken is not None and version is not None and version <= before.taken:
            return
        is_counted = _is_after(version, before.version)
        if before.is_counted and not is_counted:
            _log.info("The version of %r went from %s to %s.", uri, before.version, version)
        now = self.clock()
        self._keep(
            replace(
                before,
                lines=_followed(before.lines, params.content_changes),
                version=version,
                is_counted=before.is_counted and is_counted,
                revision=self._next_revision(),
                touched_at=now,
                changed_at=now,
                taken=None,
                content_changes=params.content_changes
                if 1 < len(params.content_changes) <= MAX_CONTENT_CHANGES
                else (),
            )
        )

    def take(self, uri: str, text: str, *, version: int) -> None:
        """Store the text that an editor returned on request; changes up to that version may still arrive: it has them.

        Without versions that count up, those changes cannot be identified: there the text stays as it is.
        """
        before = self._open.get(uri)
        if before is None or text == before.text or not before.is_counted:
            return
        if before.version is None or version < before.version:
            return
        _log.warning("The text of %r was not told in time; what the editor gave is taken.", uri)
        now = self.clock()
        self._keep(
            replace(
                before,
                lines=LineIndex(_mended(text), self._encoding),
                version=version,
                revision=self._next_revision(),
                changed_at=now,
                taken=version,
                content_changes=(),
            )
        )

    def focused(self, uri: str) -> None:
        """Record that the user looks at a document now: of several editors this one has it."""
        document = self._open.get(uri)
        if document is not None:
            self._open[uri] = replace(document, touched_at=self.clock())

    def did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """Record a save, and store its text if the editor sends it; the disk's content is read from the disk."""
        uri = params.text_document.uri
        document = self._open.get(uri)
        if document is None:
            _log.warning("A save of %r was ignored: it is not open.", uri)
            return
        if params.text is not None and params.text != document.text:
            _log.error("The text of %r had drifted; what was saved is taken.", uri)
            lines = LineIndex(_mended(params.text), self._encoding)
            document = replace(document, lines=lines, revision=self._next_revision())
            self._keep(document)
        # Told once more with the same revision: whoever watches sees that it was saved.
        self._tell(uri, document)

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document: from now on its truth is the disk."""
        uri = params.text_document.uri
        if self._open.pop(uri, None) is None:
            _log.warning("A close of %r was ignored: it is not open.", uri)
            return
        self._tell(uri, None)

    # ------------------------------------------------------------------ what others ask

    def get(self, uri: str) -> Document | None:
        """Return a document as it is now."""
        return self._open.get(uri)

    def documents(self) -> tuple[Document, ...]:
        """Return all that are open."""
        return tuple(self._open.values())

    @contextmanager
    def watch(self, uri: str, listener: DocumentListener) -> Generator[None]:
        """Call a function with every new state of a document, and with the same state when it was saved; with None when it is closed.

        It is called while the notification is taken in, so no state is missed. It must not raise.
        """
        self._listeners.setdefault(uri, []).append(listener)
        try:
            yield
        finally:
            left = self._listeners[uri]
            left.remove(listener)
            if not left:
                del self._listeners[uri]

    @contextmanager
    def watch_all(self, listener: DocumentListener) -> Generator[None]:
        """Call a function as `watch` does, for whatever document."""
        with self.watch(_ANY, listener):
            yield

    async def changed(self, uri: str, *, after: int | None, timeout_s: float) -> Document | None:
        """Wait until a document has another revision; give it as it is then, also when the time is up.

        Args:
            uri: The document.
            after: The revision that is known; None: it is closed, and may be opened again.
            timeout_s: The longest wait.
        """
        news = asyncio.Event()
        with self.watch(uri, lambda _: news.set()):
            try:
                async with asyncio.timeout(timeout_s):
                    while _revision(self.get(uri)) == after:
                        news.clear()
                        await news.wait()
            except TimeoutError:
                pass
        return self.get(uri)

    def _keep(self, document: Document) -> None:
        self._open[document.uri] = document
        self._tell(document.uri, document)

    def _tell(self, uri: str, document: Document | None) -> None:
        for listener in (*self._listeners.get(uri, ()), *self._listeners.get(_ANY, ())):
            listener(document)

    def _next_revision(self) -> int:
        self._revision += 1
        return self._revision


def _is_after(version: int | None, before: int | None) -> bool:
    return version is not None and before is not None and version > before


def _revision(document: Document | None) -> int | None:
    return None if document is None else document.revision


def _path_of(uri: str) -> Path | None:
    try:
        path = path_of(uri)
    except ValueError as error:
        _log.warning("The URI %r cannot be read: %s.", uri, error)
        return None
    return path if path is not None and path.is_absolute() and "\0" not in str(path) else None


def _followed(
    lines: LineIndex, changes: Sequence[types.TextDocumentContentChangeEvent]
) -> LineIndex:
    if len(changes) > 1 and (places := _descending(lines, changes)):
        return _spliced_at_once(lines, places)
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = _offsets(lines, change.range)
            lines = _checked(lines.spliced(start, end, change.text), change.text)
        else:
            lines = LineIndex(_mended(change.text), lines.encoding)
    return lines


def _descending(
    lines: LineIndex, changes: Sequence[types.TextDocumentContentChangeEvent]
) -> list[tuple[int, int, str]]:
    """Return the changes by offset if each ends before the one ahead of it begins: then none moves the place of another."""
    found: list[tuple[int, int, str]] = []
    for change in changes:
        if not isinstance(change, types.TextDocumentContentChangePartial):
            return []
        start, end = _offsets(lines, change.range)
        if found and end >= found[-1][0]:
            return []
        found.append((start, end, change.text))
    return found


def _spliced_at_once(lines: LineIndex, places: Sequence[tuple[int, int, str]]) -> LineIndex:
    """Replace thousands of places, as a rename does, in the time of one."""
    parts: list[str] = []
    first = done = len(lines.text)
    for first, end, text in places:
        parts += (lines.text[end:done], text)
        done = first
    tail = "".join(reversed(parts))
    return _checked(lines.spliced(first, len(lines.text), tail), tail)


def _offsets(lines: LineIndex, place: types.Range) -> tuple[int, int]:
    start = lines.offset(place.start.line, place.start.character)
    end = lines.offset(place.end.line, place.end.character)
    return min(start, end), max(start, end)


def _checked(lines: LineIndex, added: str) -> LineIndex:
    """Join halves of a character that came in two changes."""
    return LineIndex(_mended(lines.text), lines.encoding) if _has_halves(added) else lines


def _mended(text: str) -> str:
    if not _has_halves(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _has_halves(text: str) -> bool:
    """Return whether a text has lone surrogates, which JSON can say and UTF-8 cannot."""
    return not text.isascii() and _HALF.search(text) is not None
