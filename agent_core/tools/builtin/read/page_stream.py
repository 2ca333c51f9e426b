"""Reads a page of a large text file in pieces, so that its size costs time but no memory."""

import codecs
import hashlib
import shlex
from pathlib import Path

from agent_core.kernel.errors import NotText
from agent_core.kernel.text import format_size
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.tools.builtin.read.binary_file import about_binary
from agent_core.tools.builtin.read.image_header import SNIFFED_BYTES, image_kind
from agent_core.tools.builtin.read.page import PageScan, ReadPage, RequestedLines
from agent_core.workspace import FileReader, Files
from agent_core.workspace.files.text import MARKS

WHOLE_LIMIT_BYTES = 8 * 1024 * 1024
"""Up to this size a file is read whole, which is quicker; the encoding is guessed only there."""
PIECE_BYTES = 1024 * 1024


class StreamedPage(Value, frozen=True, kw_only=True):
    """A page of a large text file, and what is known of the file."""

    page: ReadPage
    sha256: str
    encoding: str
    bom: bool
    shrank: bool
    """It became shorter while it was read: the figures are those of what was left."""


class LargeImage(Value, frozen=True, kw_only=True):
    """The large file is an image."""

    kind: str
    size: int
    """In bytes."""


async def read_streamed(
    files: Files, path: Path, wanted: RequestedLines, *, said: str
) -> StreamedPage | LargeImage:
    """Read all bytes of a file once and keep a page.

    Args:
        files: Where it lies.
        path: As `Files.resolve` gave it.
        wanted: The lines to keep.
        said: The path as the model wrote it, for messages.

    Raises:
        NotText: It is binary, or in an encoding that a stream does not tell.
        ToolError: It ends before the page.
        WorkspaceError: As `Files.open` raises it.
    """
    async with files.open(path) as reader:
        head = await _head(reader)
        kind = image_kind(head)
        if kind is not None:
            return LargeImage(kind=kind, size=reader.size)
        scan = TextScan(head, wanted, said=said, size=reader.size)
        shrank = await _feed(reader, scan, left=reader.size - len(head))
        return await run_in_thread(lambda: scan.end(shrank=shrank))


async def _head(reader: FileReader) -> bytes:
    head = b""
    while len(head) < SNIFFED_BYTES and (more := await reader.read(SNIFFED_BYTES - len(head))):
        head += more
    return head


async def _feed(reader: FileReader, scan: "TextScan", *, left: int) -> bool:
    """Return the scan what the file held when it was opened; says whether some of that has gone.

    A log that grows meanwhile is read as far as it went then: its end could not be caught up with.
    """
    while left > 0:
        piece = await reader.read(min(PIECE_BYTES, left))
        if not piece:
            return True
        await run_in_thread(scan.add, piece)
        left -= len(piece)
    # Then the last character may have been written by half.
    while scan.is_inside_character and (more := await reader.read(1)):
        scan.add(more)
    return False


class TextScan:
    """Scanner of the bytes of a file: hashes them, checks that they are text, collects a page. CPU work."""

    def __init__(self, head: bytes, wanted: RequestedLines, *, said: str, size: int) -> None:
        """Begin with the first bytes of a file.

        Raises:
            NotText: They are no text.
        """
        self._said = said
        self._size = size
        self._hash = hashlib.sha256(head, usedforsecurity=False)
        self._page = PageScan(wanted)
        mark, self._encoding = next(
            ((mark, name) for mark, name in MARKS if head.startswith(mark)), (b"", "utf-8")
        )
        self._bom = bool(mark)
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._check(head[len(mark) :])

    @property
    def is_inside_character(self) -> bool:
        """Whether the bytes so far end in the middle of a character."""
        return bool(self._decoder.getstate()[0])

    def add(self, piece: bytes) -> None:
        """Add the next bytes.

        Raises:
            NotText: They are no text.
        """
        self._hash.update(piece)
        self._check(piece)

    def end(self, *, shrank: bool) -> StreamedPage:
        """Return the page, when all bytes are there.

        Raises:
            NotText: They end in the middle of a character.
            ToolError: They end before the page.
        """
        try:
            _ = self._decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise self._not_text() from error
        return StreamedPage(
            page=self._page.page(),
            sha256=self._hash.hexdigest(),
            encoding=self._encoding,
            bom=self._bom,
            shrank=shrank,
        )

    def _check(self, piece: bytes) -> None:
        if self._encoding == "utf-8":
            if b"\0" in piece:
                raise NotText(about_binary(self._said, self._size))
            if self.is_inside_character or not piece.isascii():
                _ = self._decoded(piece)
            self._page.add(piece)
            return
        text = self._decoded(piece)
        if "\0" in text:
            raise NotText(about_binary(self._said, self._size))
        self._page.add(text.encode())

    def _decoded(self, piece: bytes) -> str:
        try:
            return self._decoder.decode(piece)
        except UnicodeDecodeError as error:
            raise self._not_text() from error

    def _not_text(self) -> NotText:
        if self._bom:
            return NotText(about_binary(self._said, self._size))
        name, size = shlex.quote(self._said), format_size(self._size)
        why = f"In files over {format_size(WHOLE_LIMIT_BYTES)} no other encoding is guessed: that would take the whole file in memory."
        advice = f"If it is text, use bash with its encoding: `iconv -f latin1 -t utf-8 {name} | sed -n '1,200p'`; `file {name}` may tell what it is."
        return NotText(f"{self._said} is not UTF-8 text ({size}). {why} {advice}")
