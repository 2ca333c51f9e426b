"""Whatever is done in whatever order, every adapter gives the same answers and ends with the same files."""

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace import FileBytes, Files, FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.harness.sizes import at_size
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.rooted_workspace import Mount, RootedFiles
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

NAMES = ("a", "b", "d", "d/a", "d/e", "d/e/a", "../out")
Kind: TypeAlias = Literal["read", "stat", "list", "open", "create", "change", "delete", "move"]
Step: TypeAlias = tuple[Kind, str, str]

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["read", "stat", "list", "open", "create", "create", "change", "delete", "move", "move"]
        ),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=25,
)


class Hand:
    """Does the steps with one adapter, and remembers what it read."""

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root
        self._known: dict[str, FileText | FileBytes] = {}

    async def do(self, steps: Sequence[Step]) -> list[object]:
        return [await self._told(step) for step in steps]

    async def _told(self, step: Step) -> object:
        try:
            kind, name, other = step
            return await self._look(kind, name) or await self._change(kind, name, other)
        except WorkspaceError as error:
            words = str(error).replace(str(self._root), "ROOT")
            return type(error).__name__, words.replace(str(self._root.parent), "ABOVE")

    async def _look(self, kind: Kind, name: str) -> object:
        files, path = self._files, self._path(name)
        match kind:
            case "read":
                self._known[name] = await files.read(path)
                return replace(self._known[name], path=Path(name))
            case "stat":
                found = await files.stat(path)
                return found.kind, found.size if found.kind == "file" else 0
            case "list":
                return sorted(await files.list(path), key=lambda entry: entry.name)
            case "open":
                async with files.open(path) as reader:
                    return await reader.read(4), await reader.read(4), reader.size
            case _:
                return None

    async def _change(self, kind: Kind, name: str, other: str) -> object:
        files, path, base = self._files, self._path(name), self._known.get(name)
        if kind == "create":
            written = await files.write(path, f"text of {name}", base=None)
            return written.sha256, written.created
        if kind == "move":
            return await files.move(path, self._path(other))
        if kind == "change" and isinstance(base, FileText):
            return (await files.write(path, f"{base.text}, {other}", base=base)).sha256
        if kind == "delete" and base is not None:
            return await files.delete(path, base=base)
        return None

    def _path(self, name: str) -> Path:
        return Path(os.path.normpath(self._root / name))


@pytest.mark.timeout(180)
@settings(max_examples=at_size(ci=40, campaign=1000))
@given(steps=steps)
def test_every_adapter_answers_alike(steps: Sequence[Step]) -> None:
    with ExitStack() as stack:
        outer = [
            Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory())))
            for _ in range(3)
        ]
        inner = Path("/box/workspace")
        hands = [
            Hand(MemoryFiles((inner,), inner), inner),
            Hand(DiskFiles((outer[0],), outer[0]), outer[0]),
            Hand(OverlayFiles(DiskFiles((outer[1],), outer[1])), outer[1]),
            Hand(RootedFiles(Mount(inner, outer[2]), inner), inner),
        ]
        # What everything comes to in the end is looked at too.
        last: list[Step] = [("list", name, "") for name in (".", "d", "d/e")]
        memory, *others = [anyio.run(hand.do, (*steps, *last)) for hand in hands]
    for told in others:
        assert told == memory
