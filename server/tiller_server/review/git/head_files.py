"""Files of the head as the checks need them, and a folder with them for tools."""

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.workspace.git.client import Git
from tiller_server.review.findings.verification import NewSide, is_utf8, lines_of
from tiller_server.review.git.change_set import ReviewChangeSet
from tiller_server.review.git.revisions import Revisions
from tiller_server.review.rules import read_blob

MOST_BYTES: Final = 4 << 20
"""A larger file is not read as a whole."""


class HeadFiles:
    """The texts of the head, each read once."""

    def __init__(self, revisions: Revisions, change: ReviewChangeSet) -> None:
        self._git = revisions.git
        self._head = revisions.head.sha
        self._change = change
        self._read: dict[str, NewSide | None] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the change that the head has."""
        return tuple(file.path for file in self._change.files if file.status != "deleted")

    @property
    def deleted(self) -> frozenset[str]:
        """The files that the change takes away, as far as they are looked at."""
        return frozenset(file.path for file in self._change.files if file.status == "deleted")

    async def side(self, path: str) -> NewSide | None:
        """Return a file; None when the head has no such text file."""
        if path not in self._read:
            self._read[path] = await self._load(path)
        return self._read[path]

    async def lines_of(self, paths: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the lines of files, by path."""
        sides = [await self.side(path) for path in sorted(paths)]
        return {side.path: side.lines for side in sides if side is not None}

    async def _load(self, path: str) -> NewSide | None:
        file = self._change.file(path)
        name = f"{self._head}:{path}" if file is None else file.new_blob
        content = await read_blob(self._git, name)
        if content is None or len(content) > MOST_BYTES:
            return None
        hunks = () if file is None else file.hunks()
        lines = await anyio.to_thread.run_sync(lines_of, content)
        return NewSide(path=path, lines=lines, hunks=hunks, is_text=is_utf8(content))


@asynccontextmanager
async def head_folder(revisions: Revisions, *, scratch: Path) -> AsyncGenerator[Path]:
    """Return a folder with the files of the head: the repository itself when they lie there, else a copy.

    The copy is written from an index of its own, so that neither the repository nor its list of work trees changes, and
    no hook runs.

    Raises:
        GitFailed: The files cannot be written.
    """
    if revisions.checked_out:
        yield revisions.root
        return
    folder = scratch / "head"
    await write_tree(revisions.git, revisions.head.sha, folder=folder, index=scratch / "head-index")
    yield folder


async def write_tree(git: Git, tree: str, *, folder: Path, index: Path) -> None:
    """Write the files of a commit or tree into a folder.

    Raises:
        GitFailed: They cannot be written.
    """
    await anyio.Path(folder).mkdir(parents=True)
    own = git.knowing(GIT_INDEX_FILE=str(index))
    _ = await own.output("read-tree", tree)
    _ = await own.output("checkout-index", "--all", "--force", f"--prefix={folder}/")
