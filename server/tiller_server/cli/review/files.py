"""Reads and writes the files of `tiller review`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel.errors import UsageError
from agent_core.kernel.private_file import replace_text
from tiller_server.review.errors import ReviewFileInvalid
from tiller_server.review.findings.baseline import read_baseline, written_baseline
from tiller_server.review.findings.result import Review
from tiller_server.review.outputs import FORMATS

ENDINGS: Final[Mapping[str, str]] = {
    ".md": "md",
    ".json": "json",
    ".sarif": "sarif",
    ".txt": "text",
}
READABLE: Final = 0o644


def read_outputs(said: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """Read `FORMAT=FILE`; without a format the file's ending says it.

    Raises:
        UsageError: Nothing says the format.
    """
    return tuple(_output(one) for one in said)


def _output(said: str) -> tuple[str, Path]:
    name, sign, path = said.partition("=")
    if sign and path and name in FORMATS:
        return name, Path(path)
    by_ending = ENDINGS.get(Path(said).suffix.lower())
    if by_ending is None:
        message = f"--output {said!r} does not say in which format; write it as FORMAT=FILE with one of {', '.join(FORMATS)}"
        raise UsageError(message)
    return by_ending, Path(said)


async def check_folders(paths: Iterable[Path | None]) -> None:
    """Check that the folders of files to write exist.

    Raises:
        ReviewFileInvalid: One of them does not exist.
    """
    for path in paths:
        if path is not None and not await anyio.Path(path).parent.is_dir():
            message = f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}; make it first"
            raise ReviewFileInvalid(message)


async def write_reports(made: Review, outputs: Sequence[tuple[str, Path]]) -> None:
    """Write the review to files.

    Raises:
        ReviewFileInvalid: One cannot be written.
    """
    for name, path in outputs:
        await _write(path, FORMATS[name](made))


async def write_baseline(made: Review, path: Path) -> None:
    """Accept all findings of a review, and keep what was accepted there before.

    Raises:
        ReviewFileInvalid: The file holds something else, or cannot be written.
    """
    there = await anyio.Path(path).exists()
    kept = read_baseline(await content_of(path), name=str(path)) if there else frozenset[str]()
    await _write(path, written_baseline(made.findings, kept=kept))


async def content_of(path: Path) -> bytes:
    """Read a file that was named.

    Raises:
        ReviewFileInvalid: It cannot be read.
    """
    try:
        return await anyio.Path(path).read_bytes()
    except OSError as error:
        message = f"{str(path)!r} cannot be read ({error.strerror})"
        raise ReviewFileInvalid(message) from error


async def _write(path: Path, text: str) -> None:
    write = partial(_replace, path, text)
    try:
        await anyio.to_thread.run_sync(write)
    except OSError as error:
        message = f"{str(path)!r} cannot be written ({error.strerror}); name a file in a folder that exists"
        raise ReviewFileInvalid(message) from error


def _replace(path: Path, text: str) -> None:
    replace_text(path.absolute(), text, mode=READABLE)
