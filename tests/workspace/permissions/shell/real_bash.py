"""Runs command lines in a real bash with stand-ins for programs that write down how they were called.

As a program: real_bash.py FOLDER runs the lines of FOLDER/lines.json and leaves FOLDER/calls.json.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

Argv = tuple[str, ...]
STATUSES = (0, 1)
"""With both, every command of a list of `&&` and `||` has its turn."""
STUB = '#!/bin/sh\nprintf \'%s\\0\' "$(($#+1))" "${0##*/}" "$@" >>"$CALLS"\nexit "$STATUS"\n'
"""One `printf` of a few words is one write, so calls that run side by side do not mix."""
NOT_FOUND = '() { printf \'%s\\0\' "$#" "$@" >>"$CALLS"; return "$STATUS"; }'
LIMIT_S = 10.0


def calls_in_bash(
    lines: Sequence[str], *, programs: Sequence[str], folder: Path
) -> list[list[list[Argv]]]:
    """Give for each line, and each of `STATUSES` that all its programs end with, the calls in their order.

    Contained by bubblewrap where it is there.
    """
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in programs:
        (stubs / name).write_text(STUB, encoding="utf-8")
        (stubs / name).chmod(0o755)
    (folder / "lines.json").write_text(json.dumps(list(lines)), encoding="utf-8")
    subprocess.run([*_contained(folder), sys.executable, __file__, str(folder)], check=True)
    calls = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
    return [[[tuple(argv) for argv in run] for run in line] for line in calls]


def _contained(folder: Path) -> list[str]:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return []
    argv = [
        *(
            bwrap,
            "--die-with-parent",
            "--unshare-user",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
        ),
        *(
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--bind",
            str(folder),
            str(folder),
        ),
    ]
    works = subprocess.run([*argv, "true"], check=False, capture_output=True).returncode == 0
    return [*argv, "--"] if works else []


def _run_all(folder: Path) -> None:
    lines = json.loads((folder / "lines.json").read_text(encoding="utf-8"))
    here = folder / "here"
    here.mkdir()
    calls = [[_run(line, status, folder) for status in STATUSES] for line in lines]
    (folder / "calls.json").write_text(json.dumps(calls), encoding="utf-8")


def _run(line: str, status: int, folder: Path) -> list[list[str]]:
    record = folder / "calls"
    record.write_bytes(b"")
    subprocess.run(
        [shutil.which("bash") or "bash", "--norc", "--noprofile", "-c", line],
        cwd=folder / "here",
        env={
            "PATH": str(folder / "stubs"),
            "CALLS": str(record),
            "STATUS": str(status),
            "LC_ALL": "C.UTF-8",
            "BASH_FUNC_command_not_found_handle%%": NOT_FOUND,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=LIMIT_S,
    )
    return list(_calls(os.fsdecode(record.read_bytes()).split("\0")[:-1]))


def _calls(fields: Sequence[str]) -> list[list[str]]:
    calls: list[list[str]] = []
    at = 0
    while at < len(fields):
        size = int(fields[at])
        calls.append(list(fields[at + 1 : at + 1 + size]))
        at += 1 + size
    return calls


if __name__ == "__main__":
    _run_all(Path(sys.argv[1]))
