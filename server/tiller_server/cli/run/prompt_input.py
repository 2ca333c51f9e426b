"""Prompt of a command, read from its arguments, files named with `@`, pictures and standard input. Blocking."""

import os
import re
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import NotText, UsageError
from agent_core.messages import Text, UserContent
from agent_core.messages.values import PDF_TYPE

MOST_BYTES: Final = 262_144
"""A larger file is only pointed at: the model reads of it what it needs."""
STDIN: Final = "-"
PDF_MARK: Final = b"%PDF-"
PATIENCE_S: Final = 3.0
_PATH: Final = re.compile(r"(?!\w+://).*([^/]/|\.\w)")
"""A name that looks like a path; `@dataclass` and `@https://example.org` do not."""
_MENTION: Final = re.compile(r"(?<!\S)@([^\s@]+?)(?=[.,;:!?)]*(?:\s|$))")


def read_prompt(
    arguments: Sequence[str],
    attached: Sequence[Path],
    *,
    root: Path,
    example: str,
    patience_s: float = PATIENCE_S,
) -> tuple[UserContent, ...]:
    """Return what is to be said.

    Args:
        arguments: Those of the command line. `-` stands for standard input, which else follows them if it is a pipe or a
            file; `@FILE` for a file, which alone is the prompt itself.
        attached: Files to be said beside the words.
        root: The workspace, to which an `@name` inside of a longer text belongs.
        example: Told when there is nothing to say.
        patience_s: How long a pipe beside words may be empty.

    Raises:
        UsageError: There is nothing to say, or a file cannot be said.
    """
    given = list(arguments)
    piped = ""
    if STDIN not in given and not sys.stdin.isatty():
        is_alone = not any(word.strip() for word in given)
        piped = _stdin() if is_alone or _is_filled(patience_s) else ""
    match given:
        case [word] if is_file_word(word) and not (attached or piped):
            return _alone(_named(word))
        case _:
            pass
    whole = f"{_joined(given)}\n\n{piped}"
    text = whole.strip()
    # A space before the slash says that it begins no command.
    text = f" {text}" if text.startswith("/") and whole.startswith(" ") else text
    files = [_named(word) for word in given if is_file_word(word)]
    files += [path.expanduser() for path in attached]
    files += mentioned(given, root=root)
    parts = [part for path in dict.fromkeys(files) for part in file_parts(path)]
    if not text and not parts:
        message = f"there is no prompt; give it as an argument or on standard input. {example}"
        raise UsageError(message)
    return (Text(text=text or "See what is attached."), *parts)


def is_file_word(word: str) -> bool:
    """Return whether a word of the command line names a file to be said."""
    return len(word) > 1 and word.startswith("@") and not any(one.isspace() for one in word)


def mentioned(texts: Sequence[str], *, root: Path) -> Iterator[Path]:
    """Return the files and folders of the workspace that a longer text mentions; other names are ignored."""
    return (path for name in _mentions(texts) if _is_file_or_folder(path := root / name))


def missing_notes(texts: Sequence[str], *, root: Path) -> list[str]:
    """Return a sentence for each name in a longer text that looks like a file and is none."""
    names = dict.fromkeys(name for name in _mentions(texts) if _PATH.match(name))
    return [
        f"There is no file {name!r}; @{name} is sent as text."
        for name in names
        if not _exists(root / name)
    ]


def _mentions(texts: Sequence[str]) -> Iterator[str]:
    """Return what stands behind an `@` in a longer text."""
    return (
        found[1] for text in texts if not is_file_word(text) for found in _MENTION.finditer(text)
    )


def file_parts(path: Path) -> tuple[UserContent, ...]:
    """Return a file as the model reads it: its text, its picture, its pages as a PDF, or where it is.

    Raises:
        UsageError: It cannot be read, or is neither text nor a picture that can be shown.
    """
    from tiller_server.lsp.encode.content import fenced  # noqa: PLC0415 - brings the wire along; most prompts name no file

    uri = path.resolve().as_uri()
    if path.is_dir():
        return (Text(text=f"The user points at the folder {uri}; look into it when it matters."),)
    data = _bytes(path)
    if (picture := _picture(path, data)) is not None:
        return picture
    if data.startswith(PDF_MARK):
        return (_pdf(path, data),)
    if len(data) > MOST_BYTES:
        return (Text(text=f"The user points at {uri}; it is large: read of it what matters."),)
    return (Text(text=fenced("resource", uri, _text(path, data))),)


def _pdf(path: Path, data: bytes) -> UserContent:
    from base64 import b64encode  # noqa: PLC0415 - most prompts name no file

    from agent_core.messages import File  # noqa: PLC0415 - see above

    return File(name=path.name, mime=PDF_TYPE, data=b64encode(data).decode("ascii"))


def picture_parts(name: str, data: bytes) -> tuple[UserContent, ...]:
    """Return a picture as the model sees it.

    Raises:
        UsageError: It is no picture, or cannot be shown.
    """
    picture = _picture(Path(name), data)
    if picture is None:
        message = f"{name!r} is no picture that can be shown"
        raise UsageError(message)
    return picture


def _alone(path: Path) -> tuple[UserContent, ...]:
    """Return a file that is the whole prompt."""
    data = _bytes(path)
    if (picture := _picture(path, data)) is not None:
        return picture
    if data.startswith(PDF_MARK):
        return (_pdf(path, data),)
    text = _text(path, data).strip()
    if not text:
        message = f"{str(path)!r} is empty; write the prompt into it"
        raise UsageError(message)
    return (Text(text=text),)


def _named(word: str) -> Path:
    path = Path(word[1:]).expanduser()
    if not path.exists():
        message = (
            f"{word!r} names no file: there is no {str(path)!r}; put the words in quotes if a name is meant, "
            "as in 'ask @someone'"
        )
        raise UsageError(message)
    return path


def _picture(path: Path, data: bytes) -> tuple[UserContent, ...] | None:
    # What the tool `read` shows of a picture is what a person shows of it too.
    from agent_core.tools.builtin.read.image import (  # noqa: PLC0415 - see above
        ImageRules,
        image_result,
    )
    from agent_core.tools.builtin.read.image_header import image_kind  # noqa: PLC0415 - see above
    from agent_core.workspace import FileBytes  # noqa: PLC0415 - see above

    kind = image_kind(data)
    if kind is None:
        return None
    file = FileBytes(path=path, data=data, sha256="")
    try:
        return image_result(str(path), file, kind=kind, rules=ImageRules()).content
    except NotText as error:
        raise UsageError(str(error)) from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{str(path)!r} cannot be read ({error.strerror}); name a file that can"
        raise UsageError(message) from error


def _text(path: Path, data: bytes) -> str:
    if b"\0" in data:
        message = f"{str(path)!r} is neither text nor a picture; name the path without @ for a tool to look at it"
        raise UsageError(message)
    return data.decode("utf-8-sig", "replace")


def _is_file_or_folder(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except OSError:
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _stdin() -> str:
    return _readable(sys.stdin.read()).strip()


def _is_filled(patience_s: float) -> bool:
    """Return whether standard input is a file or a pipe, which words are about; waits for the first byte or the end."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return stat.S_ISREG(mode)
    # A pipe that a parent left open would be waited for for ever.
    if sys.platform == "win32" or select.select([sys.stdin], [], [], patience_s)[0]:
        return True
    why = f"standard input had nothing for {patience_s:g} s and is not used; add - to wait for it"
    _ = sys.stderr.write(f"{why}\n")
    return False


def _joined(arguments: Sequence[str]) -> str:
    """Join words by blanks; standard input stands in lines of its own."""
    blocks: list[str] = []
    for is_stdin, some in groupby(arguments, key=lambda word: word == STDIN):
        blocks.append(_stdin() if is_stdin else _readable(" ".join(some)))
    return "\n\n".join(block for block in blocks if block)


def _readable(text: str) -> str:
    """Return words that files and wires can hold: the shell may have passed them on in another encoding than UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
