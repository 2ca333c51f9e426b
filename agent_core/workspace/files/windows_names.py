"""Which paths mean something else on Windows than they say: pure."""

import re
from pathlib import PureWindowsPath

RESERVED = re.compile(
    r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9\u00b9\u00b2\u00b3])", re.IGNORECASE
)
"""Names of devices, in every folder and with every ending."""


def windows_refusal(path: str) -> str | None:
    """Return why a path must not be used on Windows; None: it may.

    Args:
        path: A model's words.
    """
    meant = PureWindowsPath(path)
    if meant.drive.startswith("\\\\"):
        return "names a device or another machine"
    if meant.drive and not meant.root:
        return "depends on the folder in which a drive is just now"
    depth = 0
    for name in meant.parts[1:] if meant.anchor else meant.parts:
        depth += -1 if name == ".." else 1
        if depth < 0 and not meant.anchor:
            return "leads outside the workspace"
        if why := _about(name):
            return why
    return None


def _about(name: str) -> str | None:
    if ":" in name:
        return "names a hidden stream of a file"
    if RESERVED.fullmatch(name.split(".", 1)[0].rstrip(" ")):
        return "is the name of a device on Windows"
    if name not in {".", ".."} and name != name.rstrip(". "):
        return "ends in a dot or space, which Windows drops"
    return None
