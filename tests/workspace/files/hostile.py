"""The corpus of hostile paths, and the files that it speaks of."""

import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

from tests.support.harness.shared import shared_path

# Protected and secret files are a matter of permission, not of where a path leads.
WHERE_ALLOWED = {"allow": True, "ask": True, "refuse": False}


def all_cases() -> list[dict[str, Any]]:
    """Give the whole corpus; skips the test without it."""
    corpus = shared_path("data", "hostile", "paths.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in corpus.splitlines()]


def hostile_cases() -> list[dict[str, Any]]:
    """Give the cases that make sense here and now; skips the test without the corpus."""
    return [
        case for case in all_cases() if case["platform"] != "win32" and case["expect"] != "race"
    ]


def make_fixture(base: Path) -> None:
    """Make the files, folders, links and pipes, inside of the workspace `ws` and outside."""
    fixture = json.loads(shared_path("data", "hostile", "path_fixture.json").read_text())
    for name in fixture["dirs"]:
        (base / name).mkdir(parents=True, exist_ok=True)
    for name, text in fixture["files"].items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    for name, target in fixture["symlinks"].items():
        (base / name).symlink_to(target.replace("{B}", str(base)))
    for name, target in fixture["hardlinks"].items():
        os.link(base / target, base / name)
    for name in fixture["fifos"]:
        os.mkfifo(base / name)
    for name in fixture["sockets"]:
        _make_socket(base / name)


def _make_socket(path: Path) -> None:
    """Make a socket; its address must be short, so it is made elsewhere and moved."""
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{folder}/s")
        shutil.move(f"{folder}/s", path)


def outside_of_workspace(base: Path) -> dict[str, bytes | None]:
    """Everything that is not in the workspace."""
    return {
        path.relative_to(base).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(base.rglob("*"))
        if "ws" not in path.relative_to(base).parts[:1] and not path.is_symlink()
    }
