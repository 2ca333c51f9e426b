"""What an edit of an open document costs: looking whether it landed, and all of our work in a large one."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from agent_core.workspace import FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.paths import real_path
from bench.kit import Bar, Benchmark, Peer, Plan, Row
from bench.lab import MeasurementFailedError, Workshop
from tests.support.clients.editors import Window, tell
from tests.support.lsp.lsp_behaviours import Json
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk
from tests.support.lsp.lsp_profiles import VSCODE
from tiller_server.lsp.editors.requests import Timing
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

LINES = 1_000
MANY_LINES = 50_000
VERIFY_MS = Bar(of="median", at_most=5)
EDIT_MS = Bar(of="median", at_most=20)


class Ideal:
    """An editor whose own work takes no time: it tells of the edit just as it was asked for."""

    def __init__(self, window: Window, version: int) -> None:
        self._window = window
        self._version = version
        self.answered_s = 0.0
        """When its answer was on its way."""
        self.worked_s = 0.0
        """What it took nevertheless."""

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        """Take one request; the documents of the editor are not kept up."""
        _ = editor
        began = time.perf_counter()
        (step,) = params["edit"]["documentChanges"]
        self._version += 1
        changes = [
            {"range": one["range"], "text": one["newText"]} for one in reversed(step["edits"])
        ]
        told: dict[str, Any] = {
            "textDocument": {"uri": step["textDocument"]["uri"], "version": self._version},
            "contentChanges": changes,
        }
        self.worked_s = time.perf_counter() - began
        tell(self._window.mirror, "textDocument/didChange", told)
        reply({"applied": True})
        self.answered_s = time.perf_counter()


class Bench:
    """A document that is open, and the files of a session."""

    def __init__(self, folder: Path, *, lines: int) -> None:
        self.path = folder / "large.py"
        text = "".join(f"line {number} of a text like any other\n" for number in range(lines))
        self.path.write_text(text, encoding="utf-8")
        self._window = Window(VSCODE, timing=Timing(pause_s=0.0, patience_s=0.0))
        self.editor = self._window.edits = Ideal(self._window, version=1)
        self._files = OverlayFiles(DiskFiles((folder,), folder.parent))
        self._files.attach(self._window.editor)
        uri = self.path.as_uri()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        tell(self._window.mirror, "textDocument/didOpen", {"textDocument": item})
        self._count = lines
        self._edits = 0

    async def edit(self, places: int = 1) -> tuple[float, float]:
        """Change some lines far apart; give the time from the answer on, and the whole of ours, in ms."""
        base = await self._files.read(self.path)
        if not isinstance(base, FileText):
            raise MeasurementFailedError("the document is no text")
        self._edits += 1
        text = base.text
        for part in range(places):
            old = f"line {self._count * (part + 1) // (places + 1)} of a text"
            at = text.index(old)
            text = f"{text[:at]}edit {self._edits} of {text[at:]}"
        began = time.perf_counter()
        written = await self._files.write(self.path, text, base=base)
        ended = time.perf_counter()
        if written.source != "buffer" or written.text is not None:
            message = f"the edit was not verified: {written.note}"
            raise MeasurementFailedError(message)
        return (
            (ended - self.editor.answered_s) * 1000,
            (ended - began - self.editor.worked_s) * 1000,
        )


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Edit a usual document and a large one."""
    _ = shop
    rows: list[Row] = []
    for lines in (LINES, MANY_LINES):
        with tempfile.TemporaryDirectory(prefix="tl-") as folder:
            bench = Bench(real_path(Path(folder)), lines=lines)
            floor = Peer(
                name="reading the file", samples=await _floor(bench.path, plan.rounds * 40)
            )
            for places in (1, 3):
                _ = [await bench.edit(places) for _ in range(5)]
                taken = [await bench.edit(places) for _ in range(plan.rounds * 40)]
                what = (
                    f"an edit of {lines:,} lines in {places} {'place' if places == 1 else 'places'}"
                )
                rows += [
                    Row(
                        what=f"{what}: looking whether it landed",
                        unit="ms",
                        ours=tuple(looked for looked, _ in taken),
                        peer=floor,
                        bar=VERIFY_MS if lines == LINES else None,
                    ),
                    Row(
                        what=f"{what}: our time",
                        unit="ms",
                        ours=tuple(whole for _, whole in taken),
                        peer=floor,
                        bar=EDIT_MS if places == 1 else None,
                    ),
                ]
    return rows


async def _floor(path: Path, times: int) -> tuple[float, ...]:
    """Time the least that tells what a file has: to read it in a thread."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        _ = await asyncio.to_thread(path.read_text, encoding="utf-8")
        took.append((time.perf_counter() - began) * 1000)
    return tuple(took)


BENCHMARK = Benchmark(name="editing", title="Edits of open documents", run=measure)
