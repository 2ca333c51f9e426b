"""Change sets as patches that `git apply` takes: texts, files that are none, new, deleted and renamed ones."""

import hashlib
import zlib
from base64 import b85encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_core.changes.hunks import FileReview, base_text
from agent_core.changes.values import BlobStore, FileVersion, Op, stored_bytes
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.workspace.diff.unified_diff import text_rows
from agent_core.workspace.files.text import encode_text

MODE: Final = "100644"
"""File mode in the patch; existing files keep their mode."""
BINARY_ROW: Final = 52
"""Bytes in a row of a binary patch."""
_ESCAPES: Final[Mapping[int, str]] = {
    7: "a",
    8: "b",
    9: "t",
    10: "n",
    11: "v",
    12: "f",
    13: "r",
    34: '"',
    92: "\\",
}
_PRINTED: Final = range(0x20, 0x7F)


class FilePatch(Value, frozen=True, kw_only=True):
    """One file of a patch."""

    name: str
    """Below the root, with slashes."""
    old_name: str
    op: Op
    old: bytes | None = None
    """None: not there, or nobody knows it."""
    new: bytes | None = None
    is_text: bool = True


class UnpatchableFile(Value, frozen=True, kw_only=True):
    """A file that no patch can show."""

    name: str
    why: str


async def file_patch(
    file: FileReview, *, root: Path, contents: BlobStore
) -> FilePatch | UnpatchableFile:
    """Make the patch of one file: of what the agent changed in it and still stands, nothing of the user's."""
    name, old_name = _name(file.path, root), _name(file.origin or file.path, root)
    if name is None or old_name is None:
        return UnpatchableFile(name=str(file.path), why="it is not in the folder of the session")
    if file.text is not None and (file.hunks or file.whole is not None):
        base = await run_in_thread(_base_of, file)
        old = None if file.first is None else _bytes(base, file.first)
        new = None if file.last is None else _bytes(file.text, file.last)
        return FilePatch(name=name, old_name=old_name, op=file.op, old=old, new=new)
    old = await _kept(file.first, contents)
    new = await _kept(file.last, contents)
    if (old is None) is not (file.first is None) or (new is None) is not (file.last is None):
        return UnpatchableFile(
            name=name, why="an older version was not kept, for its size or because the disk refused"
        )
    return FilePatch(name=name, old_name=old_name, op=file.op, old=old, new=new, is_text=False)


def git_patch(patches: Iterable[FilePatch | UnpatchableFile]) -> str:
    """Return the patch of several files. Files that it cannot hold are listed before it, in text that git ignores."""
    left_out: list[str] = []
    parts: list[str] = []
    for one in patches:
        if isinstance(one, UnpatchableFile):
            left_out.append(f"Not in this patch: {quoted(one.name)}: {one.why}\n")
        else:
            parts.append("".join(_rows(one)))
    return "".join([*left_out, *parts])


def quoted(name: str) -> str:
    """Write a name as git does: in quotes when a line could not hold it as it is."""
    data = name.encode("utf-8", "surrogateescape")
    shown = "".join(
        f"\\{_ESCAPES[one]}"
        if one in _ESCAPES
        else (chr(one) if one in _PRINTED else f"\\{one:03o}")
        for one in data
    )
    return name if shown == name else f'"{shown}"'


# ------------------------------------------------------------------ both sides


def _base_of(file: FileReview) -> str:
    return base_text(file) or ""


async def _kept(version: FileVersion | None, contents: BlobStore) -> bytes | None:
    return None if version is None else await stored_bytes(version, contents)


def _bytes(text: str, version: FileVersion) -> bytes:
    try:
        return encode_text(text, encoding=version.encoding, bom=version.bom)
    except (ValueError, LookupError):
        return text.encode("utf-8", "surrogatepass")


def _name(path: Path, root: Path) -> str | None:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


# ------------------------------------------------------------------ rows


def _rows(one: FilePatch) -> Iterator[str]:
    old_name, new_name = quoted(f"a/{one.old_name}"), quoted(f"b/{one.name}")
    if one.op in {"add", "delete"}:
        old_name = quoted(f"a/{one.name}")
    is_same = one.old == one.new
    if is_same and one.op == "modify":
        return
    yield f"diff --git {old_name} {new_name}\n"
    if one.op == "add":
        yield f"new file mode {MODE}\n"
    elif one.op == "delete":
        yield f"deleted file mode {MODE}\n"
    elif one.op == "move":
        yield f"rename from {quoted(one.old_name)}\nrename to {quoted(one.name)}\n"
    if is_same and one.op == "move":
        return
    old, new = one.old or b"", one.new or b""
    yield f"index {_object(one.old)}..{_object(one.new)}{_mode(one)}\n"
    if not one.is_text or b"\0" in old or b"\0" in new:
        yield from _binary(old, new)
        return
    if old != new:
        yield "--- /dev/null\n" if one.op == "add" else f"--- {_ended(old_name)}\n"
        yield "+++ /dev/null\n" if one.op == "delete" else f"+++ {_ended(new_name)}\n"
        yield from text_rows(_decoded(old), _decoded(new))


def _mode(one: FilePatch) -> str:
    return "" if one.op in {"add", "delete"} else f" {MODE}"


def _ended(name: str) -> str:
    """Return where a name with a space ends, as git does."""
    return f"{name}\t" if " " in name and not name.startswith('"') else name


def _object(data: bytes | None) -> str:
    if data is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _binary(old: bytes, new: bytes) -> Iterator[str]:
    yield "GIT binary patch\n"
    for data in (new, old):
        yield f"literal {len(data)}\n"
        packed = zlib.compress(data)
        for at in range(0, len(packed), BINARY_ROW):
            row = packed[at : at + BINARY_ROW]
            size = chr(ord("A") + len(row) - 1) if len(row) <= 26 else chr(ord("a") + len(row) - 27)  # noqa: PLR2004 - letters
            yield f"{size}{b85encode(row, pad=True).decode('ascii')}\n"
        yield "\n"
