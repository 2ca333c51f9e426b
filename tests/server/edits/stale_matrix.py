"""A user and an agent in one document, an editor between them, and a witness who knows who typed what."""

import asyncio
import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    StaleText,
    ToolError,
    WorkspaceError,
)
from agent_core.tools import Tool, ToolContext
from agent_core.tools.builtin.edit.tool import edit_tool
from agent_core.tools.builtin.read.tool import read_tool
from agent_core.tools.builtin.write import write_tool
from agent_core.workspace import FileText, Workspace, WriteResult
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.server.edits.slow_windows import Numbering, SlowWindow, Unreliable, Versions
from tests.server.edits.witness import SHOWN, Told, Witness, has_lines, marks
from tests.support.harness.clock import FakeClock
from tests.support.lsp.lsp_behaviours import EditBehaviour
from tests.support.lsp.lsp_profiles import Profile
from tests.support.lsp.lsp_text import Lines
from tests.support.workspace.memory_files import MemoryFiles
from tiller_server.lsp.documents.mirror import Document, passed
from tiller_server.lsp.editors.requests import Timing
from tiller_server.lsp.edits.write_report import TYPED
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

ROOT = Path("/no/such/ws")
PATH = ROOT / "a.py"
URI = PATH.as_uri()
AT_REST_S = 60.0


class Story:
    """One run: a user, an agent, an editor."""

    def __init__(
        self,
        profile: Profile,
        chosen: random.Random,
        *,
        edits: EditBehaviour,
        versions: Versions,
        numbering: Numbering = "counted",
        gathers: float = 0.3,
    ) -> None:
        """Set the scene; `gathers` is how likely the editor tells of several changes at once."""
        self.chosen = chosen
        self.witness = Witness(allows_twice=versions != "checked")
        self._before: Document | None = None
        self._fresh = _fresh(chosen)
        self._end = chosen.choice(["\n", "\n", "\r\n"])
        self.disk = MemoryFiles((ROOT,), ROOT, files={PATH: b""})
        slow = chosen.choice([0.001, 0.02, 0.2])
        loop = asyncio.get_running_loop()
        offered = profile.capabilities.get("general", {}).get("positionEncodings", ["utf-16"])
        self.window = SlowWindow(
            profile,
            delay_s=lambda: chosen.uniform(0, slow),
            gathers=chosen.random() < gathers,
            gives_versions=numbering != "none",
            edits=Unreliable(edits, chosen, versions=versions),
            timing=Timing(),
            encoding=chosen.choice(offered),
            clock=loop.time,
        )
        self.desk = self.window.desk
        self.desk.sync_kind = chosen.choice([1, 2, 2])
        if numbering == "odd":
            steps = [0, 1, 1, 1, 1, 1 << 40]
            self.desk.next_version = lambda version: version + chosen.choice(steps)
        self._first_version = 0 if profile.name == "Neovim" else chosen.choice([1, 1, 7])
        self.files = OverlayFiles(self.disk)
        self.files.attach(self.window.editor)

    # ------------------------------------------------------------------ what there is

    @property
    def saved(self) -> str:
        """What the disk has."""
        return self.disk.contents()[PATH].decode()

    @property
    def text(self) -> str:
        """What the user has: the document, or when it is closed the file."""
        document = self.desk.documents.get(URI)
        return self.saved if document is None else document.text

    async def play(self) -> None:
        """Tell the story to its end, and judge it."""
        text = "".join(self._words(9) + self._end for _ in range(self.chosen.randint(0, 14)))
        self.disk.put(PATH, text.encode())
        self.witness.users = marks(text)
        self._open()
        await asyncio.sleep(1)
        with self.window.mirror.watch(URI, self._see):
            async with asyncio.TaskGroup() as group:
                user = group.create_task(self._user())
                agents = [
                    group.create_task(self._agent()) for _ in range(self.chosen.choice([1, 1, 2]))
                ]
                _ = user, agents
            await asyncio.sleep(AT_REST_S)
        document = self.window.mirror.get(URI)
        assert document is None or document.text == self.text
        self.witness.judge(self.text, saved=self.saved)

    def _see(self, document: Document | None) -> None:
        before, self._before = self._before, document
        states = [] if document is None else passed(before or document, document)
        self.witness.seen += [one.text for one in states] or [self.saved]

    # ------------------------------------------------------------------ the user

    async def _user(self) -> None:
        for _ in range(self.chosen.randint(1, 12)):
            await asyncio.sleep(self.chosen.choice([0.05, 0.3, 1, 3]) * self.chosen.random())
            match self.chosen.random():
                case luck if luck < 0.72 and URI in self.desk.documents:
                    await self._types()
                case luck if luck < 0.86 and URI in self.desk.documents:
                    self._does(lambda: self._puts(*self._stretch(self.text, 12), ""))
                case luck if luck < 0.92 and URI in self.desk.documents:
                    self._does(self._save)
                case luck if luck < 0.96 and URI in self.desk.documents:
                    self._does(lambda: self.desk.close(URI))
                    self.witness.user_discarded(self.text)
                case _:
                    self._does(self._reload)
                    self.witness.user_discarded(self.text)

    async def _types(self) -> None:
        at, _ = self._stretch(self.text, 0)
        for _ in range(self.chosen.randint(1, 15)):
            if URI not in self.desk.documents:
                return
            # The agent's edits move the cursor; somewhere near is near enough.
            at = _outside_end(self.text, min(at, len(self.text)))
            char = self.chosen.choice([self._end, " ", *(next(self._fresh) for _ in range(6))])
            self._does(lambda: self._puts(at, at, char))  # noqa: B023 - called at once
            at += len(char)
            await asyncio.sleep(self.chosen.uniform(0.02, 0.3))

    def _does(self, what: Callable[[], object]) -> None:
        before = self.text
        what()
        self.witness.user_made(before, self.text)

    def _puts(self, start: int, end: int, text: str) -> None:
        place = Lines(self.text, self.desk.encoding).range(start, end)
        self.desk.change(URI, [{"range": place, "newText": text}])

    def _save(self) -> None:
        self.witness.user_saved(self.saved, self.text)
        self.disk.put(PATH, self.text.encode())
        self.desk.documents[URI].dirty = False
        self.window._later_notify("textDocument/didSave", {"textDocument": {"uri": URI}})

    def _reload(self) -> None:
        if URI in self.desk.documents:
            self.desk.close(URI)
        self._open()

    def _open(self) -> None:
        _ = self.desk.open(URI, self.saved, version=self._first_version)

    # ------------------------------------------------------------------ the agent

    async def _agent(self) -> None:
        model = ToolContext(
            call=ToolCallId("call"),
            workspace=Workspace(roots=(ROOT,), files=self.files, processes=DiskProcesses(), env={}),
            clock=FakeClock(),
            output=lambda _: None,
            scratch=str(ROOT),
        )
        works = self.chosen.choice(
            [self._with_files, self._with_files, lambda: self._with_tools(model)]
        )
        for _ in range(self.chosen.randint(1, 4)):
            await asyncio.sleep(self.chosen.uniform(0, 2))
            await works()

    async def _with_files(self) -> None:
        base = await self.files.read(PATH)
        assert isinstance(base, FileText)
        wanted = self._edited(base.text)
        await self._thinks()
        await self._writes(base, wanted)

    async def _thinks(self) -> None:
        await asyncio.sleep(self.chosen.choice([0, 0, 0.2, 2]) * self.chosen.random())

    async def _with_tools(self, model: ToolContext) -> None:
        """Do what a model does: read at times, then edit or write what was read."""
        if model.seen.get(PATH) is None or self.chosen.random() < 0.5:
            _ = await read_tool().check({"path": str(PATH)}).run(model)
        await self._thinks()
        known = model.seen.get(PATH)
        assert known is not None
        start, end = self._stretch(known, 8)
        new = self._words(4)
        if start < end and known.count(known[start:end]) == 1 and self.chosen.random() < 0.6:
            block: dict[str, JsonValue] = {"oldText": known[start:end], "newText": new}
            arguments: JsonObject = {"path": str(PATH), "edits": [block]}
            told = self._hopes(known[start:end], new)
            await self._calls(model, edit_tool(), arguments, told)
        else:
            wanted = self._edited(known)
            told = self._hopes(known, wanted)
            await self._calls(model, write_tool(), {"path": str(PATH), "content": wanted}, told)

    async def _calls(
        self, model: ToolContext, tool: Tool, arguments: JsonObject, told: Told
    ) -> None:
        try:
            result = await tool.check(arguments).run(model)
        except EditUnverified as error:
            told.outcome, told.words = "unsure", str(error)
        except (ToolError, StaleText, EditRefused) as error:
            told.outcome, told.words = "nothing", str(error)
        else:
            told.outcome, told.words = "written", repr(result.content)
            assert isinstance(result.details, dict)
            told.on_disk = result.details["source"] == "disk"
            told.takes -= marks(told.words)

    def _hopes(self, before: str, after: str) -> Told:
        takes = marks(before) - marks(after)
        told = Told(brings=marks(after) - marks(before), takes=takes, may_take=set(takes))
        self.witness.told.append(told)
        return told

    async def _writes(self, base: FileText, wanted: str) -> None:
        told = self._hopes(base.text, wanted)
        try:
            written = await self.files.write(PATH, wanted, base=base)
        except EditUnverified as error:
            told.outcome, told.words = "unsure", str(error)
        except (StaleText, EditRefused) as error:
            told.outcome, told.words = "nothing", str(error)
        except WorkspaceError as error:
            raise AssertionError(repr(error)) from error
        else:
            told.outcome, told.words = "written", repr(written)
            told.on_disk = written.source == "disk"
            # What the user has put back is told.
            told.takes -= marks(written.note or "")
            self._check(written, wanted)
        self.witness.check_words(told.words if told.outcome != "written" else "")

    def _check(self, written: WriteResult, wanted: str) -> None:
        now = wanted if written.text is None else written.text
        assert sha256(now.encode()).hexdigest() == written.sha256
        assert written.changed_by_user == (now != wanted)
        if written.source == "buffer":
            assert now in self.witness.seen or now == wanted
        if written.note is not None and TYPED in written.note:
            shown = SHOWN.findall(written.note)
            assert "…" in written.note or has_lines(now, [(int(at), line) for at, line in shown])

    def _edited(self, text: str) -> str:
        for _ in range(self.chosen.choice([1, 1, 2, 3])):
            start, end = self._stretch(text, self.chosen.choice([0, 3, 12]))
            words = self.chosen.choice(
                ["", self._words(3), self._words(6) + self._end, self._end + self._words(4)]
            )
            text = text[:start] + words + text[end:]
        return text

    # ------------------------------------------------------------------ chance

    def _words(self, most: int) -> str:
        return "".join(
            " " if self.chosen.random() < 0.2 else next(self._fresh)
            for _ in range(self.chosen.randint(0, most))
        )

    def _stretch(self, text: str, most: int) -> tuple[int, int]:
        start = self.chosen.randint(0, len(text))
        end = min(len(text), start + self.chosen.randint(0, most))
        return _outside_end(text, start), _outside_end(text, end)


def _outside_end(text: str, at: int) -> int:
    return at + 1 if at and text[at - 1 : at + 1] == "\r\n" else at


def _fresh(chosen: random.Random) -> Iterator[str]:
    """Give characters that nobody has typed: letters, signs and some beyond the basic plane."""
    pools = [count(0x4E00), count(0x2800), count(0x20000), count(0xF0000)]
    while True:
        yield chr(next(chosen.choice(pools)))
