"""Reads the lists of paths in settings: places to look in, and what of all that is found is left out or kept."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent_core.kernel.values import Value
from agent_core.workspace.files.ignore_rules import Rules, read_rules

GLOB_SIGNS = "*?["


class PathList(Value, frozen=True, kw_only=True):
    """The parsed form of a list of paths."""

    places: tuple[Path, ...] = ()
    """More folders or files to look in, absolute, in their order."""
    kept: tuple[Path, ...] = ()
    dropped: tuple[Path, ...] = ()
    unwanted: Rules = msgspec.field(default_factory=lambda: Rules(lines=()))
    problems: tuple[str, ...] = ()
    """A sentence for each entry that could not be read."""

    def wants(self, path: Path) -> bool:
        """Return whether something that was found is used: `+path` prevails, then `-path`, then the globs."""
        around = (path, *path.parents)
        if any(one in self.kept for one in around):
            return True
        if any(one in self.dropped for one in around):
            return False
        return not any(self._is_unwanted(one, folder=one != path) for one in around)

    def _is_unwanted(self, path: Path, *, folder: bool) -> bool:
        below_top = path.as_posix().lstrip("/")
        return bool(below_top and self.unwanted.verdict(f"{below_top}/" if folder else below_top))


def read_path_list(entries: Sequence[str], *, home: Path, root: Path) -> PathList:
    """Read a list of settings.

    Args:
        entries: `path`, `+path`, `-path`, `!glob`.
        home: For a leading `~`.
        root: The workspace; paths of an editor or a request are relative to it. Paths of files are absolute already.
    """
    places: list[Path] = []
    signed: dict[str, list[Path]] = {"+": [], "-": []}
    globs: list[str] = []
    problems: list[str] = []
    for entry in entries:
        if entry.startswith("!"):
            globs.append(_from_home(entry[1:], home))
            continue
        sign = entry[:1] if entry[:1] in signed else ""
        path_text = entry.removeprefix(sign).strip()
        if not path_text or "\0" in path_text:
            problems.append(f"{entry!r} names no path; it is left out")
        elif any(glob in path_text for glob in GLOB_SIGNS) and not sign:
            problems.append(f"{entry!r} is a glob: only behind ! does one count; it is left out")
        else:
            path = _normal(root / _from_home(path_text, home))
            signed.get(sign, places).append(path)
    return PathList(
        places=tuple(places),
        kept=tuple(signed["+"]),
        dropped=tuple(signed["-"]),
        unwanted=read_rules("\n".join(globs)),
        problems=tuple(problems),
    )


def _from_home(path_text: str, home: Path) -> str:
    return (
        str(home / path_text[2:])
        if path_text.startswith("~/")
        else str(home)
        if path_text == "~"
        else path_text
    )


def _normal(path: Path) -> Path:
    """Leave `.` and `..` out of a path, without looking whether a link stands before one."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part != "..":
            parts.append(part)
        elif parts:
            _ = parts.pop()
    return Path(path.anchor, *parts)
