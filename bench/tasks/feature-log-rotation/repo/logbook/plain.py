"""A log in one file."""

from pathlib import Path


class PlainLog:
    """Appends lines to a file."""

    def __init__(self, path):
        self._path = Path(path)

    def write(self, line):
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(f"{line}\n")
