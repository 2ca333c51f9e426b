"""The walk that takes ripgrep's place lists the same files, whatever ignore files say."""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings, strategies as st
from typing_extensions import override

from agent_core.kernel.errors import FileMissing
from agent_core.tools.builtin.search.ripgrep import is_misread
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, listed_buffers, searched, walk
from agent_core.workspace import DirectoryEntry, Files, FileText, Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.harness.sizes import at_size
from tests.tools.conftest import Bench

RIPGREP = Path(sys.executable).parent / "rg"
NAMES = ("a", "b", "ab", "a.x", "b.x", ".h", "build", "src")
IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")

names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
pieces = st.sampled_from(
    [*NAMES, "*", "?", "**", "*.x", "a*", "*b", "[ab]", "[!a]", "a?", "*a*", "\\a", "b*d"]
)
lines = st.builds(
    lambda negated, tied, body, folder, space: f"{negated}{tied}{body}{folder}{space}",
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(pieces, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", "/**", "/*"]),
    st.sampled_from(["", "", " "]),
)
# A lone `!` is left out: ripgrep takes it for everything, git and the walk for nothing.
ignores = st.lists(st.one_of(lines, st.sampled_from(["", "# a", "\\#", "/", "   "])), max_size=4)
folders = st.one_of(st.just(""), st.lists(names, min_size=1, max_size=2).map("/".join))
globs = st.one_of(st.none(), lines.map(str.strip).filter(lambda glob: glob not in {"", "!"}))


@settings(max_examples=at_size(ci=60, campaign=3_000), deadline=None)
@given(
    files=st.lists(paths, min_size=1, max_size=12),
    rules=st.dictionaries(st.tuples(folders, st.sampled_from(IGNORE_FILES)), ignores, max_size=4),
    below=folders,
    repositories=st.lists(folders, max_size=2),
    glob=globs,
)
async def test_the_walk_lists_what_ripgrep_lists(files, rules, below, repositories, glob) -> None:
    with tempfile.TemporaryDirectory() as made:
        top = _real(made)
        for name in files:
            _put(top / name, "x")
        for (folder, name), content in rules.items():
            _put(top / folder / name, "".join(f"{line}\n" for line in content))
        for folder in repositories:
            _put(top / folder / ".git/HEAD", "")
        folder = top / below
        if not folder.is_dir():
            folder = top
        place = await _place(top, folder, glob)
        listed = [path async for path in walk(place)]
        if not await is_misread(place):
            assert sorted(listed) == sorted(_ripgrep(place))
        assert len(listed) == len(set(listed))
        assert await _as_buffers(place) == set(listed)


async def test_a_folder_that_goes_away_meanwhile_is_passed_over(bench: Bench) -> None:
    top = bench.root
    bench.put("a", "")
    bench.put("gone/b", "")

    class Vanishing(DiskFiles):
        @override
        async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
            if path == top / "gone":
                raise FileMissing(str(path))
            return await super().list(path)

    workspace = replace(bench.workspace, files=Vanishing((top,), top))
    place = await searched(workspace, top)
    assert [path async for path in walk(place)] == ["a"]


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))


async def _place(top: Path, folder: Path, glob: str | None) -> SearchedFolder:
    files = DiskFiles((top,), top)
    workspace = Workspace(roots=(top,), files=files, processes=DiskProcesses(), env={})
    return await searched(workspace, folder, glob=glob)


def _put(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        return  # a name cannot be a file and a folder


def _ripgrep(place: SearchedFolder) -> list[str]:
    outside = () if place.in_repository else ("--no-require-git",)
    glob = () if place.glob is None else (f"--glob={place.glob}",)
    flags = ("--files", "--null", "--no-config", "--hidden", "--no-messages")
    done = subprocess.run(
        (RIPGREP, *flags, *outside, *glob, "--glob=!.git", "./"),
        cwd=place.folder,
        capture_output=True,
        env={"PATH": os.defpath, "HOME": str(place.top)},
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return [path.removeprefix("./") for path in done.stdout.decode().split("\0")[:-1]]


async def _as_buffers(place: SearchedFolder) -> set[str]:
    """Judge every file by itself, as if it were unsaved in an editor."""
    texts = tuple(
        FileText(path=path, text="", source="buffer", sha256="")
        for path in place.folder.rglob("*")
        if path.is_file()
    )

    class Edited(DiskFiles):
        @override
        async def buffers(self, folder: Path) -> tuple[FileText, ...]:
            return texts

    files: Files = Edited((place.top,), place.top)
    workspace = Workspace(roots=(place.top,), files=files, processes=DiskProcesses(), env={})
    return set(await listed_buffers(await searched(workspace, place.folder, glob=place.glob)))
