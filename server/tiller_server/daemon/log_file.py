"""The daemon's log: for its user's eyes, and never larger than two files."""

import io
import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from typing_extensions import override

MAX_BYTES: Final = 2 * 1024 * 1024
OWN: Final = 0o600
FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OwnLog(RotatingFileHandler):
    """Writes to a file that nobody else may read, and begins a new one when it has grown."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8")
        self.setFormatter(logging.Formatter(FORMAT))

    @override
    def _open(self) -> io.TextIOWrapper:
        # Not by the umask: tools inherit it.
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, OWN)
        os.fchmod(fd, OWN)
        return os.fdopen(fd, "a", encoding="utf-8", errors="replace")


def log_to(path: Path, *, level: str) -> None:
    """Write all of this process's log there from now on. Blocking."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    root.addHandler(OwnLog(path))
    root.setLevel(level.upper())
    # At lower levels it writes down whole messages, and a dozen lines for every client.
    logging.getLogger("pygls").setLevel(max(logging.WARNING, root.level))
