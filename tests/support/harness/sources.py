"""Lists the files of the repository, and the Python among them parsed, for tests of the architecture."""

import ast
import gc
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.harness.shared import ROOT

PRODUCT = ("agent_core", "server")
CODE = (*PRODUCT, "tests", "bench")
SAMPLE = ROOT / "server" / "tiller_server" / "cli" / "sample"
"""A project to be repaired, shipped as it is: not part of the code."""
TASKS = ROOT / "bench" / "tasks"
"""Projects of the tasks of evaluations: not part of the code either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One Python file: where it is, relative to the root, and what it says."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """The name by which the file is imported."""
        parts = self.path.removesuffix(".py").removeprefix("server/").split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Return every Python file below the named folders of the root, in order of path."""
    with _uncollected():
        return tuple(
            _read(path)
            for folder in folders
            for path in sorted((ROOT / folder).rglob("*.py"))
            if not path.is_relative_to(SAMPLE) and not path.is_relative_to(TASKS)
        )


@contextmanager
def _uncollected() -> Generator[None]:
    """Spare the collector what the block makes: millions of nodes, which are freed without it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@cache
def repository_files() -> tuple[Path, ...]:
    """Return what belongs to the repository: tracked files, and new ones that nothing ignores."""
    git = shutil.which("git")
    if git is not None and (ROOT / ".git").exists():
        listing = subprocess.run(
            [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        names = sorted(filter(None, listing.stdout.split("\0")))
        return tuple(path for path in (ROOT / name for name in names) if path.is_file())
    return tuple(sorted(_walk(ROOT)))


def text_files() -> Iterator[tuple[str, str]]:
    """Yield path and text of the repository's files, without those that are not text."""
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" not in content:
            yield path.relative_to(ROOT).as_posix(), content.decode(errors="replace")


@cache
def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path=path.relative_to(ROOT).as_posix(), text=text, tree=ast.parse(text))


def _walk(folder: Path) -> Iterator[Path]:
    made = {"__pycache__", "build", "dist", "bench-results"}
    for path in folder.iterdir():
        if path.is_dir() and path.name not in made and (path.name == ".ci" or path.name[0] != "."):
            yield from _walk(path)
        elif path.is_file():
            yield path


def forget() -> None:
    """Give the memory of what was parsed back: some hundred megabytes."""
    sources.cache_clear()
    _read.cache_clear()
