"""What a program asks of the system, as strace tells it: the calls that touch files below one folder, in order."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

CALLS = (
    *("open", "openat", "creat", "close"),
    *("write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile", "copy_file_range"),
    *("ftruncate", "truncate", "fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"),
    *("link", "linkat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
)  # fmt: skip
LIMIT_S = 60.0

_LINE = re.compile(r"(?P<thread>\d+) +(?P<rest>.*)")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_FD_PATH = re.compile(r"^\d+<(?P<path>/[^>]*)>")
_QUOTED = re.compile(r'"(?P<path>/[^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCall:
    """A call that succeeded, or did not."""

    name: str
    path: Path
    """The (first) file it is about."""
    result: int
    """What it gave back: bytes written, for one; -1 when it failed."""
    arguments: str

    @property
    def makes(self) -> bool:
        """Whether it is an `open` that may make a file."""
        return "O_CREAT" in self.arguments

    @property
    def writes(self) -> bool:
        """Whether it is an `open` for writing."""
        return "O_WRONLY" in self.arguments or "O_RDWR" in self.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What a program asked of the system, and what it said."""

    calls: tuple[SystemCall, ...]
    out: str


def traced(
    command: Sequence[str], *, below: Path, log: Path, env: Mapping[str, str], cwd: Path
) -> "Traced":
    """Run a program to its good end and give its calls on files below a folder; skips where strace is missing.

    Args:
        log: A file to write the trace into.
    """
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: `make e2e-setup` with CI=true installs it")
    watch = [strace, "-f", "-y", "-s", "8", "-e", f"trace={','.join(CALLS)}", "-o", str(log)]
    ended = subprocess.run(
        [*watch, *command],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    if b"ptrace" in ended.stderr or b"PTRACE" in ended.stderr:
        pytest.skip(f"this system lets nobody be traced: {ended.stderr.decode()[:200]}")
    assert ended.returncode == 0, ended.stderr.decode()
    calls = _below(_calls(log.read_text("utf-8", "replace")), below)
    return Traced(calls=tuple(calls), out=ended.stdout.decode())


def _below(calls: Sequence[SystemCall], folder: Path) -> list[SystemCall]:
    return [call for call in calls if call.path == folder or folder in call.path.parents]


def _calls(trace: str) -> list[SystemCall]:
    """Read a trace; a call that another thread's call came between counts where it ended."""
    begun: dict[str, str] = {}
    found: list[SystemCall] = []
    for line in trace.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        thread, rest = match["thread"], match["rest"]
        if rest.endswith(_UNFINISHED):
            begun[thread] = rest.removesuffix(_UNFINISHED)
            continue
        resumed = _RESUMED.match(rest)
        if resumed:
            rest = begun.pop(thread, "") + rest[resumed.end() :]
        call = _call(rest)
        if call is not None:
            found.append(call)
    return found


def _call(text: str) -> SystemCall | None:
    match = _CALL.match(text)
    if match is None:
        return None
    arguments = match["arguments"]
    path = _FD_PATH.match(arguments) or _QUOTED.search(arguments)
    if path is None:
        return None
    return SystemCall(
        name=match["name"],
        path=Path(path["path"]),
        result=int(match["result"]),
        arguments=arguments,
    )
