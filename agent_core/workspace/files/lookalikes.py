"""File names that look like other names: letters of other scripts, signs that nobody sees, blanks and dots at the end."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.text import shown
from agent_core.workspace.permissions.protected_names import IGNORED
from agent_core.workspace.port import Files

_CYRILLIC: Final[Mapping[str, str]] = dict(
    zip(
        "авекмнорстухѕіјһԁԛԝАВЕКМНОРСТУХЅІЈԌҮЅ",
        "abekmhopctyxsijhdqwABEKMHOPCTYXSIJGYS",
        strict=True,
    )
)
_GREEK: Final[Mapping[str, str]] = dict(
    zip("αινορυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ", "aivopuxABEZHIKMNOPTYXcj", strict=True)
)
_ARMENIAN: Final[Mapping[str, str]] = dict(zip("օոսհցզլ", "onuhgql", strict=True))
_LATIN_LIKE: Final = str.maketrans({**_CYRILLIC, **_GREEK, **_ARMENIAN})
"""Letters that most fonts draw as a Latin one (Unicode TR39, the single letters of its confusables)."""
_ENDS: Final = " ."


async def name_warning(
    path: Path, *, asked: str, roots: Sequence[Path], files: Files
) -> str | None:
    """Return why the name of a file to be written is suspicious; None: it is not.

    Args:
        path: Real, as the workspace resolved it.
        asked: As the call named it, which may be another spelling.
        roots: Real. Folders above a root do not count.
        files: Lists the names beside it.
    """
    root = next((one for one in roots if path.is_relative_to(one)), None)
    names = path.parts if root is None else path.relative_to(root).parts
    reasons: list[str] = []
    for depth, name in enumerate(names):
        reasons += [f"{_quoted(name)} {why}" for why in _oddities(name)]
        if depth == len(names) - 1 or not name.isascii() or name != name.strip():
            folder = path.parents[len(names) - 1 - depth]
            reasons += [
                f"{_quoted(name)} looks like {_quoted(other)}, which is there already"
                for other in await _lookalikes(name, folder, files)
            ]
    for name in asked.replace("\\", "/").split("/"):
        if name not in path.parts and name.strip(_ENDS):
            reasons += [
                f"the call named {_quoted(name)}, which {why}; {_quoted(path.name)} is what it changes"
                for why in _oddities(name)
            ]
    return "; ".join(dict.fromkeys(reasons)) or None


def _oddities(name: str) -> Iterator[str]:
    if name.strip(_ENDS) and name != name.rstrip(_ENDS):
        yield "ends in a blank or a dot"
    if name != name.lstrip():
        yield "begins with a blank"
    if any(_is_unseen(sign) for sign in name):
        yield "holds signs that cannot be seen"
    if any(unicodedata.category(sign) == "Zs" and sign != " " for sign in name):
        yield "holds a blank that is no ordinary one"
    if any(_is_mixed(word) for word in _letter_runs(name)):
        yield "mixes letters of several scripts that look alike"
    elif any(_is_disguised(word) for word in _letter_runs(name)):
        yield "is written with letters of another script that look like Latin ones"


def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in {"Cf", "Cc", "Co", "Cn"} or ord(sign) in IGNORED


def _letter_runs(name: str) -> Iterator[str]:
    """Split a name into runs of letters."""
    word = ""
    for sign in unicodedata.normalize("NFC", name):
        if sign.isalpha():
            word += sign
            continue
        if word:
            yield word
        word = ""
    if word:
        yield word


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN ")


def _is_mixed(word: str) -> bool:
    """Return whether Latin letters stand beside others that look like Latin ones."""
    return any(map(_is_latin, word)) and any(
        not _is_latin(letter) and letter.translate(_LATIN_LIKE) != letter for letter in word
    )


def _is_disguised(word: str) -> bool:
    """Return whether a word could be read as a Latin one, though none of its letters is."""
    plain = unicodedata.normalize("NFKC", word).translate(_LATIN_LIKE)
    return not word.isascii() and plain.isascii()


async def _lookalikes(name: str, folder: Path, files: Files) -> list[str]:
    try:
        entries = await files.list(folder)
    except WorkspaceError:
        return []  # it is not there yet
    like, same = _skeleton(name), unicodedata.normalize("NFC", name)
    return sorted(
        entry.name
        for entry in entries
        if unicodedata.normalize("NFC", entry.name) != same and _skeleton(entry.name) == like
    )[:1]


def _skeleton(name: str) -> str:
    """Return what a name looks like: two that look alike have the same."""
    if name.isascii() and name.isprintable() and name == name.strip():
        return name.rstrip(_ENDS)
    seen = "".join(sign for sign in name if not _is_unseen(sign))
    return unicodedata.normalize("NFKC", seen).translate(_LATIN_LIKE).strip().rstrip(_ENDS)


def _quoted(name: str) -> str:
    """Write a name so that what hides in it is seen."""
    plain = "".join(
        sign if sign.isascii() else f"{sign}<U+{ord(sign):04X}>"
        for sign in shown(name)
        if sign.isascii() or sign.isprintable()
    )
    return repr(plain)
