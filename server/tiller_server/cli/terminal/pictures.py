"""Pictures of the clipboard and of pasted paths, for the prompt that is being typed. Blocking."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.programs import find_outside_program

READERS: Final = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
    ("osascript", "-e", "the clipboard as «class PNGf»"),
)
"""Programs that write the picture of the clipboard; the last one is on every Mac and writes it in hexadecimal digits."""
READ_S: Final = 3.0
MOST_BYTES: Final = 32 << 20
MOST_PATH: Final = 4_096
_HEX: Final = re.compile(rb"\xc2\xabdata PNGf([0-9A-F]+)\xc2\xbb")


class PastedPicture(Value, frozen=True, kw_only=True):
    """A picture that belongs to a prompt."""

    name: str
    data: bytes


ReadPicture = Callable[[], PastedPicture]
"""Returns the picture of the clipboard, or raises a UsageError that says why there is none."""


def clipboard_picture(env: Mapping[str, str], root: Path) -> PastedPicture:
    """Return the picture of the clipboard as PNG.

    Args:
        env: Environment, with the PATH and the display of the clipboard.
        root: The workspace, in which no program is looked for.

    Raises:
        UsageError: There is none, or no program that can read the clipboard.
    """
    found = False
    for name, *arguments in READERS:
        program = find_outside_program(name, env_path=env.get("PATH", os.defpath), roots=(root,))
        if program is None:
            continue
        found = True
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program
                [program, *arguments], capture_output=True, env=env, timeout=READ_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        written = _HEX.search(done.stdout)
        data = bytes.fromhex(written[1].decode()) if written else done.stdout
        if done.returncode == 0 and _is_picture(data):
            return PastedPicture(name="clipboard.png", data=data)
    if not found:
        message = (
            "the clipboard cannot be read: install wl-clipboard or xclip, or attach a file with @"
        )
        raise UsageError(message)
    message = "the clipboard holds no picture; to paste text, use the key of your terminal"
    raise UsageError(message)


def pasted_picture(text: str) -> PastedPicture | None:
    """Return the picture whose path was pasted, as terminals do for a file that is dropped on them; None: it is none."""
    path = _path(text.strip())
    try:
        if path is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    return PastedPicture(name=path.name, data=data) if _is_picture(data) else None


def _is_picture(data: bytes) -> bool:
    from agent_core.tools.builtin.read.image_header import image_kind  # noqa: PLC0415 - seldom needed

    return image_kind(data) is not None


def _path(text: str) -> Path | None:
    """Return the absolute path that a text is: quoted, escaped, plain, or as a URL; None: it is none."""
    if not text or len(text) > MOST_PATH or "\n" in text:
        return None
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    path = Path(text).expanduser()
    if path.is_absolute():
        if path.exists():
            return path
    elif text[0] not in "'\"":
        return None
    try:
        parts = shlex.split(text)
    except ValueError:
        return None
    path = Path(parts[0]).expanduser() if len(parts) == 1 else Path()
    return path if path.is_absolute() else None
