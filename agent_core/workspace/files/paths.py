"""Meaning of a path that a model wrote, and the check of which paths may be used: pure, but for `real_path`."""

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_core.kernel.errors import PathRefused

UNICODE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
NOT_SEEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"  # fmt: skip
JOINING = "\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Other scripts and pictures need them; behind ASCII they are there to deceive."""
HIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f{NOT_SEEN}]|(?:^|[\x00-\x7f])[{JOINING}]")
"""Control, direction and invisible characters: a name with them looks like another one."""
SHELL_EXPANSIONS = re.compile(r"(~[^/]|\$[A-Z_][A-Z0-9_]*(/|$)|\$\{\w+\}|%[A-Z_]+%)")
"""Expressions that a shell would expand; a file of that name is never meant."""
URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]+://|(about|blob|data|javascript|mailto|untitled|urn|vscode):",
    re.IGNORECASE,
)
AM_PM = re.compile(r" (?=[AP]M\b)", re.IGNORECASE)
SHOWN_CHARS = 300
MOST_PATH_BYTES = 4096
"""Longer paths are refused by every system."""


def meanings(path: str, *, root: Path, home: Path) -> tuple[Path, ...]:
    """Return the absolute paths that a model's text can mean, the most literal first; `..` is still in them.

    An existing name has precedence over the usual meaning of Unicode spaces and a leading `@`.

    Args:
        path: The text: absolute, relative to `root`, `~`, `@file`, `file://`.
        root: Folder where relative paths start.
        home: Folder that `~` stands for.

    Raises:
        PathRefused: The text can mean no path at all.
    """
    if "\0" in path or not path.strip():
        message = f"{shown(path)} is no path: name a file inside the workspace"
        raise PathRefused(message)
    if (size := len(path.encode("utf-8", "surrogatepass"))) >= MOST_PATH_BYTES:
        message = f"{shown(path)} is too long for a path ({size} bytes, ENAMETOOLONG); name a file inside the workspace"
        raise PathRefused(message)
    usual = UNICODE_SPACES.sub(" ", path).strip().removeprefix("@")
    if not usual:
        message = f"{shown(path)} is no path: name a file inside the workspace"
        raise PathRefused(message)
    if usual.lower().startswith("file://"):
        return (_from_uri(usual),)
    if usual == "~" or usual.startswith("~/"):
        return (home / usual[2:],)
    return tuple(dict.fromkeys(root / one for one in (path, path.removeprefix("@") or path, usual)))


def means_folder(path: str) -> bool:
    """Return whether a model's words can only mean a folder: they end in `/` or `/.`."""
    return path.strip().endswith(("/", "/."))


def name_variants(path: Path) -> Iterator[Path]:
    """Return other spellings that macOS uses for names: narrow space before AM/PM, NFD, curly apostrophe.

    Args:
        path: The end of a path, from the first name that does not exist: existing names are spelt correctly.
    """
    text = str(path)
    spellings = {text: None}
    for form in ("NFD", "NFC"):
        for change in (_narrow_space, _curly_apostrophe):
            spellings |= dict.fromkeys(change(one) for one in tuple(spellings))
        spellings |= dict.fromkeys(unicodedata.normalize(form, one) for one in tuple(spellings))
    for spelling in spellings:
        if spelling != text:
            yield Path(spelling)


def _narrow_space(text: str) -> str:
    return AM_PM.sub("\u202f", text)


def _curly_apostrophe(text: str) -> str:
    return text.replace("'", "\u2019")


def real_path(path: Path) -> Path:
    """Follow links and `..` as the system does; the end of the path need not exist. Reads the disk."""
    return Path(os.path.realpath(path))


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a real path is one of the roots or below one."""
    return any(path.is_relative_to(root) for root in roots)


def relative_name(path: Path, root: Path) -> str:
    """Return a path as people know it: from a folder on if it is inside of it, else whole."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def refusal(path: str, *, leads_to: Path, roots: Sequence[Path]) -> PathRefused:
    """Make the error for a path that leads outside."""
    where = f" ({leads_to})" if str(leads_to) != path else ""
    allowed = ", ".join(str(root) for root in roots)
    return PathRefused(
        f"{shown(path)} leads outside the workspace{where}: only paths inside {allowed} are allowed.",
        advice=" Use a path inside, or tell the user what is needed from there.",
    )


def check_new_name(path: str, *, made: Path) -> None:
    """Refuse to create a file whose name is surely a mistake or a disguise.

    Args:
        path: The path as the model wrote it.
        made: Path that would be created: the end of the real path that does not exist yet.

    Raises:
        PathRefused: The name is a URI, needs expansion by a shell, or has control or invisible characters.
    """
    why = ""
    if HIDDEN.search(str(made)):
        why = "has control or invisible characters; choose a plain name"
    elif URI.match(path) and not path.lower().startswith("file://"):
        why = "is a URI, not a path; name a file inside the workspace"
    elif SHELL_EXPANSIONS.match(path):
        why = "is not expanded as a shell would do; write the path out"
    if why:
        message = f"{shown(path)} {why}"
        raise PathRefused(message)


def shown(path: str) -> str:
    """Quote a path for a message, shortened; nothing in it can act on a terminal."""
    return repr(path if len(path) <= SHOWN_CHARS else f"{path[:SHOWN_CHARS]}…")


def _from_uri(uri: str) -> Path:
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.netloc not in {"", "localhost"} or not path.startswith("/") or "\0" in path:
        message = f"{shown(uri)} names no file on this machine; write file:///path or a plain path"
        raise PathRefused(message)
    return Path(path)
