"""Which attached editor has a file open, and how its text stands to the disk."""

import math
import os
import time
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import anyio
from anyio import to_thread

from agent_core.kernel.errors import AccessRefused, FileMissing, FileTooLarge, WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace import DirectoryEntry, FileBytes, Files, FileText, WriteResult
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.editor import Editor

OverlayState: TypeAlias = Literal["clean", "ours", "outdated", "dirty"]
"""
`clean`: buffer and disk are the same. `ours`: they differ only by edits of ours that are not saved yet.
`outdated`: nothing in the buffer is unsaved, but the disk has changed since. `dirty`: anything else.
"""


OPENING_S: Final = 2.0
"""How long an editor may take to tell of a document that it opened."""
LOOK_S: Final = 0.02
REMEMBERED_S: Final = 0.05
"""How long it is remembered where the paths of documents lead."""


class Overlay(Value, frozen=True, kw_only=True):
    """A file that is open in an editor."""

    editor: Editor
    document: Document
    disk: FileText | FileBytes | None
    """File on the disk below the document; None when there is none that can be read."""
    state: OverlayState
    rivals: tuple[str, ...] = ()
    """Names of the editors that have unsaved text of the same file, when there are several."""


class PulledFiles(Protocol):
    """Clients without document sync, whose documents are read when they are needed."""

    def attach(self, attached: Editor) -> None:
        """Register a client."""
        ...

    def detach(self, attached: Editor) -> None:
        """Forget a client."""
        ...

    async def create(self, path: Path, text: str) -> WriteResult | None:
        """Write a file that is not there yet; None: no client does that, and nothing was done."""
        ...

    async def refresh(self, path: Path) -> None:
        """Read a file."""
        ...

    async def refresh_unsaved(self, folder: Path) -> None:
        """Read again what was unsaved at or below a folder."""
        ...


def _anything(found: Overlay | None) -> None:
    _ = found


class Overlays:
    """The attached editors."""

    def __init__(self, disk: Files) -> None:
        self._disk = disk
        self._editors: list[Editor] = []
        self._reals: Mapping[Path, str] = {}
        self._looked_at = -math.inf
        self._check: Callable[[Overlay | None], None] = _anything
        self.pulled: PulledFiles | None = None
        """Clients without document sync; None: none is attached."""

    @property
    def editors(self) -> tuple[Editor, ...]:
        """The editors that are attached."""
        return tuple(self._editors)

    def attach(self, editor: Editor) -> None:
        """Register an editor; its documents are the truth for their files from now on."""
        if editor not in self._editors:
            self._editors.append(editor)

    def detach(self, editor: Editor) -> None:
        """Forget an editor."""
        if editor in self._editors:
            self._editors.remove(editor)

    async def find(self, path: Path) -> Overlay | None:
        """Return the buffer that counts for a file: one with unsaved text, else the one touched last.

        Raises:
            WorkspaceError: It is open, but the workspace must not use it.
        """
        await self._pull(path)
        found = await self._found(path, await self._real_paths(max_age_s=0.0))
        self._check(found)
        return found

    @contextmanager
    def checking(self, check: Callable[[Overlay | None], None]) -> Generator[None]:
        """Apply `check` to every result of `find` while the block lasts; `find` raises the errors of `check`."""
        self._check = check
        try:
            yield
        finally:
            self._check = _anything

    async def find_to_read(self, path: Path, *, pulls: bool = True) -> Overlay | None:
        """Return what `find` does; where links lead is looked up at times only, for a search reads thousands of files.

        Args:
            path: The file.
            pulls: Ask clients without document sync; False: use the text of the last answer.

        Raises:
            WorkspaceError: It is open, but the workspace must not use it.
        """
        if pulls:
            await self._pull(path)
        return await self._found(path, await self._real_paths(max_age_s=REMEMBERED_S))

    async def open_closed(self, path: Path) -> None:
        """Have a file opened that nobody has open, in the first editor whose user wants that; wait until it is."""
        if not any(one.capabilities.opens_closed for one in self._editors):
            return
        if await self.find(path) is not None or not await self.show(path):
            return
        with anyio.move_on_after(OPENING_S):
            while await self.find(path) is None:  # noqa: ASYNC110 - by which URI it opens it is the editor's affair
                await anyio.sleep(LOOK_S)

    async def show(self, path: Path) -> bool:
        """Ask for a file to be opened in the first editor whose user wants that; tell whether one did."""
        editor = next((one for one in self._editors if one.capabilities.opens_closed), None)
        return editor is not None and await editor.requests.show(path)

    async def unsaved_below(self, folder: Path) -> Mapping[Path, Overlay]:
        """Return the buffers at or below a real path whose text the disk does not have, by real path."""
        if self.pulled is not None:
            await self.pulled.refresh_unsaved(folder)
        found: dict[Path, Overlay] = {}
        for path, spelt in (await self._below(folder)).items():
            try:
                buffer = await self._judged(path, spelt)
            except WorkspaceError:
                continue  # its name means a folder or a device on the disk
            if buffer is not None and buffer.state in {"ours", "dirty"}:
                found[path] = buffer
        return found

    async def names_in(self, folder: Path) -> Sequence[DirectoryEntry]:
        """Return what a folder has of open documents, whether or not it has it on the disk too."""
        if self.pulled is not None:
            await self.pulled.refresh_unsaved(folder)
        entries: dict[str, DirectoryEntry] = {}
        for path, spelt in (await self._below(folder)).items():
            name, *rest = path.relative_to(folder).parts or ("",)
            if rest:
                entries[name] = DirectoryEntry(name=name, kind="folder", size=0)
            elif name and (documents := self._documents(spelt)):
                text = max(documents, key=lambda one: one[1].touched_at)[1].text
                size = len(text.encode("utf-8", "surrogatepass"))
                entries[name] = DirectoryEntry(name=name, kind="file", size=size)
        return tuple(entries.values())

    async def _pull(self, path: Path) -> None:
        if self.pulled is None or any(
            document.path == path
            for editor in self._editors
            if not editor.capabilities.is_pulled
            for document in editor.mirror.documents()
        ):
            return
        await self.pulled.refresh(path)

    async def _judged(self, path: Path, spelt: Collection[Path]) -> Overlay | None:
        disk = await self._content(path)
        # Looked up only now, because reading takes time; from here on nothing waits.
        found = [
            Overlay(
                editor=editor, document=document, disk=disk, state=_state(editor, document, disk)
            )
            for editor, document in self._documents(spelt)
        ]
        # What an editor reports by itself is newer than any answer.
        synced = [one for one in found if not one.editor.capabilities.is_pulled]
        return _chosen(synced or found)

    async def _content(self, path: Path) -> FileText | FileBytes | None:
        try:
            return await self._disk.read(path)
        except (FileMissing, FileTooLarge, AccessRefused):
            return None

    async def _found(self, path: Path, reals: Mapping[Path, str]) -> Overlay | None:
        if not reals:
            return None
        same = {spelt for spelt, real in reals.items() if spelt == path or real == str(path)}
        # Where upper and lower case are one, only the system can tell.
        low = str(path).casefold()
        alike = [spelt for spelt, real in reals.items() if real.casefold() == low]
        if len(alike) > len(same):
            same |= await to_thread.run_sync(_same_files, path, alike)
        return await self._judged(path, same) if same else None

    async def _below(self, folder: Path) -> Mapping[Path, AbstractSet[Path]]:
        """Return the spellings of the open files at or below a folder, by their real paths."""
        found: dict[Path, set[Path]] = {}
        at, below = str(folder), f"{str(folder).removesuffix(os.sep)}{os.sep}"
        for spelt, real in (await self._real_paths(max_age_s=REMEMBERED_S)).items():
            if real == at or real.startswith(below):
                found.setdefault(Path(real), set()).add(spelt)
        return found

    async def _real_paths(self, *, max_age_s: float) -> Mapping[Path, str]:
        """Return what the paths of all open documents really mean."""
        spelt = self._spelt()
        if not spelt:
            return {}
        now = time.monotonic()
        if now - self._looked_at < max_age_s and spelt == self._reals.keys():
            return self._reals
        reals = await to_thread.run_sync(_real_paths, spelt)
        self._reals, self._looked_at = reals, now
        return reals

    def _spelt(self) -> AbstractSet[Path]:
        return {
            document.path
            for editor in self._editors
            for document in editor.mirror.documents()
            if document.path is not None
        }

    def _documents(self, spelt: Collection[Path]) -> list[tuple[Editor, Document]]:
        return [
            (editor, document)
            for editor in self._editors
            for document in editor.mirror.documents()
            if document.path in spelt
        ]


def is_as_on_disk(buffer: Overlay) -> bool:
    """Return whether a reader gets the file on the disk: the document is outdated, or pulled and the same."""
    # Most files that a client gives on request are not open in it: nothing about them is unsaved.
    is_same = buffer.editor.capabilities.is_pulled and buffer.state == "clean"
    return buffer.state == "outdated" or is_same


def text_of(path: Path, buffer: Overlay) -> FileText:
    """Return a document's text as it is read."""
    document = buffer.document
    disk_text = buffer.disk if isinstance(buffer.disk, FileText) else None
    return FileText(
        path=path,
        text=document.text,
        source="buffer",
        sha256=document.sha256,
        encoding=disk_text.encoding if disk_text else "utf-8",
        bom=disk_text.bom if disk_text else False,
        version=document.version,
        dirty=buffer.state != "clean",
    )


def _real_paths(spelt: Iterable[Path]) -> Mapping[Path, str]:
    """Follow links as the system does. Reads the disk."""
    return {one: _real_path(one) for one in spelt}


def _real_path(spelt: Path) -> str:
    try:
        return os.path.realpath(spelt)
    except (OSError, ValueError):
        return str(spelt)


def _same_files(path: Path, spelt: Iterable[Path]) -> set[Path]:
    """Return those of some paths that name the file of a real path. Reads the disk."""
    return {one for one in spelt if _is_same(path, one)}


def _is_same(path: Path, spelt: Path) -> bool:
    try:
        return path.samefile(spelt)
    except (OSError, ValueError):
        return False


def _state(editor: Editor, document: Document, disk: FileText | FileBytes | None) -> OverlayState:
    notes = editor.notes_of(document)
    if isinstance(disk, FileText):
        if disk.text == document.text:
            notes.on_disk = document.sha256
            return "clean"
        if notes.on_disk == document.sha256:
            return "outdated"
    below = None if disk is None else disk.sha256
    return "ours" if (notes.ours, notes.ours_over) == (document.sha256, below) else "dirty"


def _chosen(found: Sequence[Overlay]) -> Overlay | None:
    unsaved = [one for one in found if one.state in {"ours", "dirty"}]
    best = max(unsaved or found, key=lambda one: one.document.touched_at, default=None)
    if best is None:
        return None
    # Also with the same text: an edit of one would part them, and the last to save would win.
    rivals = [one.editor.name for one in unsaved if one.editor is not best.editor]
    if not rivals:
        return best
    return Overlay(
        editor=best.editor,
        document=best.document,
        disk=best.disk,
        state=best.state,
        rivals=(best.editor.name, *rivals),
    )
