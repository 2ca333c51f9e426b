"""Asks Git, without a shell and without anything that the repository could make it start."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.records import dataclass
from agent_core.kernel.visible import one_line
from server.review.errors import GitFailed, NotARepository

HARMLESS: Final = (
    "--no-pager",
    "--literal-pathspecs",
    # Each of these names a program that Git would start.
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "filter.lfs.smudge="),
    *("-c", "filter.lfs.process="),
    *("-c", "filter.lfs.required=false"),
    *("-c", "core.quotePath=false"),
)
INHERITED: Final = ("GIT_CONFIG_", "GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH", "GIT_SSL_")
"""How variables of Git begin that stay; the others could lead to another repository."""
ERROR_CHARS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnswer:
    """What Git said."""

    code: int
    output: bytes
    errors: str
    """On one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git in one folder."""

    folder: Path
    env: Mapping[str, str]
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables for Git itself, as `GIT_INDEX_FILE`."""

    def knowing(self, **variables: str) -> "Git":
        """Give the same with more variables."""
        return replace(self, extra={**self.extra, **variables})

    def at(self, folder: Path) -> "Git":
        """Give the same in another folder."""
        return replace(self, folder=folder)

    async def ask(self, *arguments: str, stdin: bytes | None = None) -> GitAnswer:
        """Run a command of Git and give all that it said, whatever its exit code.

        Raises:
            NotARepository: There is no Git, or no such folder.
        """
        try:
            done = await anyio.run_process(
                ["git", *HARMLESS, *arguments],
                input=stdin,
                stdin=None if stdin is not None else subprocess.DEVNULL,
                check=False,
                cwd=self.folder,
                env=self._environment(),
            )
        except FileNotFoundError as error:
            missing = "the folder" if error.filename == str(self.folder) else "git"
            message = f"{missing} was not found ({error.filename!r}); a review needs a Git repository and Git itself"
            raise NotARepository(message) from error
        except OSError as error:
            message = f"git cannot be started in {str(self.folder)!r} ({error.strerror})"
            raise NotARepository(message) from error
        errors = one_line(done.stderr.decode("utf-8", "replace"))[:ERROR_CHARS]
        return GitAnswer(code=done.returncode, output=done.stdout, errors=errors)

    async def output(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """Run a command that must succeed.

        Raises:
            GitFailed: It did not; the text has Git's own words.
        """
        answer = await self.ask(*arguments, stdin=stdin)
        if answer.code:
            what = " ".join(arguments[:2])
            message = f"git {what} failed with exit code {answer.code}: {answer.errors}"
            raise GitFailed(message)
        return answer.output

    async def text(self, *arguments: str) -> str:
        """Run a command that must succeed, and give its output as one text without the last line feed."""
        return os.fsdecode(await self.output(*arguments)).removesuffix("\n")

    def _environment(self) -> dict[str, str]:
        plain = {
            name: value
            for name, value in self.env.items()
            if not name.startswith("GIT_") or name.startswith(INHERITED)
        }
        return {
            **plain,
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            **self.extra,
        }
