"""Traces of real editors as data: without the paths and processes of the machine that they were recorded on."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.harness.shared import ROOT
from tiller_server.cli.trace.file import TraceMessage, read_trace

TRACES: Final = ROOT / "tests/data/traces"
PROJECT: Final = "/home/me/project"
"""Stands for the folder of the workspace."""
_TEMPORARY: Final = re.compile(r"/tmp/[\w./-]+")  # noqa: S108 - what is looked for
Json = dict[str, Any]


def scrubbed(recorded: Path, *, root: Path) -> str:
    """Give a recording as it may be kept."""
    lines = recorded.read_text("utf-8").replace(str(root), PROJECT).splitlines()
    return "".join(
        f"{json.dumps(_scrubbed(json.loads(one)), ensure_ascii=False)}\n" for one in lines
    )


def placed(trace: Path, *, root: Path, folder: Path) -> Sequence[TraceMessage]:
    """Read a trace as if it had been recorded in a workspace of this machine.

    Args:
        folder: Where a copy may be laid.
    """
    copy = folder / trace.name
    copy.write_text(trace.read_text("utf-8").replace(PROJECT, str(root)), encoding="utf-8")
    return read_trace(copy)


def _scrubbed(line: Json) -> Json:
    if "tiller" in line:
        return {**line, "at": "2026-01-01T00:00:00.000Z", "server": ["tiller", "lsp"]}
    message = line["message"]
    if message.get("method") == "initialize":
        # The server would look for that process, and leave with it.
        message["params"]["processId"] = None
    return json.loads(_TEMPORARY.sub("/tmp/x", json.dumps(line)))  # noqa: S108 - a stand-in
