"""Where the user is in one editor, for commands that do not say it."""

from collections.abc import Callable
from pathlib import Path

from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.plain.task_prompts import TaskLocation


class LastLocation:
    """Knows the document that was opened, changed or asked about last, and the lines that were meant there."""

    def __init__(
        self, mirror: Mirror, *, is_ours: Callable[[str], bool], root: Callable[[], Path | None]
    ) -> None:
        """Begin with what the editor told so far.

        Args:
            mirror: The editor's documents.
            is_ours: Tells our own documents by their URI; they are never meant.
            root: Gives the first folder of the workspace; names are relative to it.
        """
        self._mirror = mirror
        self._is_ours = is_ours
        self._root = root
        self._seen: tuple[str, int, tuple[int, int]] | None = None

    def record(self, uri: str, lines0: tuple[int, int]) -> None:
        """Record what the editor asked about: the cursor is there."""
        self._mirror.focused(uri)
        document = self._mirror.get(uri)
        if document is not None:
            self._seen = (uri, document.revision, lines0)

    def latest(self) -> TaskLocation | None:
        """Return where the user was last; None: no file is open. The lines are known while nothing changed since."""
        newest = max(self._documents(), key=lambda one: one.touched_at, default=None)
        if newest is None:
            return None
        return self.place(newest.uri, self._lines0(newest))

    def place(self, uri: str, lines0: tuple[int, int] | None = None) -> TaskLocation | None:
        """Return a place in a document, open or not; None: it is no file."""
        document = self._mirror.get(uri)
        path = None if document is None else document.path
        if path is None:
            path = path_of(uri)
        if path is None:
            return None
        return TaskLocation(uri=uri, name=self._name(path), lines0=lines0)

    def files(self) -> list[str]:
        """Return the URIs of the files that are open."""
        return [one.uri for one in self._documents()]

    def _documents(self) -> list[Document]:
        return [
            one
            for one in self._mirror.documents()
            if one.path is not None and not self._is_ours(one.uri)
        ]

    def _lines0(self, document: Document) -> tuple[int, int] | None:
        if self._seen is None:
            return None
        uri, revision, lines0 = self._seen
        return lines0 if (uri, revision) == (document.uri, document.revision) else None

    def _name(self, path: Path) -> str:
        # Of further folders the whole path is given: a bare name would be looked for in the first.
        root = self._root()
        return (
            path.relative_to(root).as_posix() if root and path.is_relative_to(root) else str(path)
        )
