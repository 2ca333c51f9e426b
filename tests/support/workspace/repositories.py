"""Git repositories that tests make, with the real Git."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

WHO = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """A repository with files, on the branch `main`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        """Run Git, which must succeed, and give what it says."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.root), **WHO},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def read(self, name: str) -> str:
        """Read a file."""
        return (self.root / name).read_bytes().decode()

    def commit(self, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
        """Write files and commit all that lies there; gives the hash."""
        for name, text in (files or {}).items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head()

    def replace(self, name: str, old: str, new: str) -> None:
        """Change a text in a file; it must be there once."""
        text = self.read(name)
        assert text.count(old) == 1, (name, old)
        self.write(name, text.replace(old, new))

    def line_of(self, name: str, text: str) -> int:
        """Give the number of the only line that holds a text."""
        found = [
            number
            for number, line in enumerate(self.read(name).split("\n"), start=1)
            if text in line
        ]
        assert len(found) == 1, (name, text, found)
        return found[0]

    def head(self) -> str:
        """Give the commit that is checked out."""
        return self.git("rev-parse", "HEAD")
