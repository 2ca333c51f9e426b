"""Random histories of edits by the agent, by its user and by commands: going back loses nothing of the user's.

The oracle knows nothing of changes, hashes or merges. Every keystroke of the user is a code point that occurs nowhere else,
so that it can be looked for; and it takes pictures of the whole folder, to which it compares what is claimed.
"""

import random
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.changes.adapters.disk_detector import DiskChangeDetector
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import CheckpointConflict
from agent_core.session.changes.checkpoints import OnConflict
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import ToolContext, ToolResult, text_result
from agent_core.workspace import NO_NEEDS, FileText, KillReport, ProcessEnd, Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.harness.sizes import at_size
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.fast_folder import fast_folder
from tests.support.workspace.tools import FunctionTool

HISTORIES = at_size(ci=60, campaign=1_000)
STEPS = 14
FIRST_KEYSTROKE = 0x10000
"""Astral, and far from anything that the agent or a command writes."""
BYTES = b"\x00\xfe\xff"
Picture = Mapping[str, bytes]


class Ended:
    """A process that was over before it began to be watched."""

    pid = 4_000_000

    async def read(self) -> bytes:
        return b""

    async def wait(self) -> ProcessEnd:
        return ProcessEnd(exit_code=0)

    async def end(self, *, grace_s: float) -> KillReport:
        return KillReport(pids=(), survivors=())


class Commands:
    """Runs what a history says in the place of a command."""

    def __init__(self, history: "History") -> None:
        self._history = history

    async def start(self, argv, *, cwd, env, stdin=b"", needs=NO_NEEDS) -> Ended:
        await to_thread.run_sync(self._history.command)
        return Ended()

    async def before_start(self) -> str | None:
        return None


@dataclass
class History:
    """One folder, and those who change it."""

    root: Path
    dice: random.Random
    keystrokes: Iterator[int] = field(default_factory=lambda: count(FIRST_KEYSTROKE))
    words: Iterator[int] = field(default_factory=lambda: count(1))
    deleted: set[str] = field(default_factory=set)
    """Keystrokes that the user took away again."""
    touched: list[dict[str, bytes | None]] = field(default_factory=list)
    """By checkpoint: what files held just before the session changed them for the first time since."""

    def picture(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def begin_run(self) -> None:
        self.touched.append({})

    # ------------------------------------------------------------------ the user

    def type(self) -> None:
        """Do something as a person would, in whatever is there."""
        names = sorted(self._texts())
        what = self.dice.choice(["insert"] * 6 + ["erase", "new", "remove", "rename"])
        if what == "new" or not names:
            self._put(f"mine{next(self.words)}.txt", f"{self._key()}\n{self._key()}\n")
            return
        name = self.dice.choice(names)
        text = self._texts()[name]
        match what:
            case "insert":
                at = self.dice.randint(0, len(text))
                self._put(name, text[:at] + self._key() + self.dice.choice(["", "\n"]) + text[at:])
            case "erase" if text:
                at = self.dice.randrange(len(text))
                end = at + self.dice.randint(1, 3)
                self.deleted |= mine(text[at:end])
                self._put(name, text[:at] + text[end:])
            case "remove":
                self.deleted |= mine(text)
                (self.root / name).unlink()
            case _:
                (self.root / name).rename(self.root / f"renamed{next(self.words)}.txt")

    def _key(self) -> str:
        return chr(next(self.keystrokes))

    # ------------------------------------------------------------------ the agent

    async def edit(self, context: ToolContext) -> None:
        """Do something as a tool would: read, then write what was read."""
        names = sorted(self._texts())
        what = self.dice.choice(["write"] * 6 + ["make", "delete", "move"])
        if what == "make" or not names:
            name = f"made/{next(self.words)}.txt"
            await context.files.write(self.root / name, self._line(), base=None)
            return
        name = self.dice.choice(names)
        found = await context.files.read(self.root / name)
        assert isinstance(found, FileText)
        match what:
            case "write":
                await context.files.write(self.root / name, self._edited(found.text), base=found)
            case "delete" if not mine(found.text):
                await context.files.delete(self.root / name, base=found)
            case _:
                target = f"moved/{next(self.words)}.txt"
                await context.files.move(self.root / name, self.root / target)

    def _edited(self, text: str) -> str:
        """Change a line that holds nothing of the user's, or add one."""
        lines = text.splitlines(keepends=True)
        at = self.dice.randint(0, len(lines))
        if at < len(lines) and not mine(lines[at]) and self.dice.random() < 0.6:
            lines[at] = self.dice.choice(["", self._line()])
        else:
            lines.insert(at, self._line())
        return "".join(lines)

    def _line(self) -> str:
        return f"line {next(self.words)}\n"

    # ------------------------------------------------------------------ commands

    def command(self) -> None:
        """Do something as a program would: several files at once, bytes too, and no care for what is in them."""
        before = self.picture()
        for _ in range(self.dice.randint(1, 3)):
            self._program()
        self.touched_since(before)

    def _program(self) -> None:
        picture = self.picture()
        names = sorted(picture)
        what = self.dice.choice(
            ["append", "replace", "bytes", "copy", "move", "rename", "make", "delete"]
        )
        name = self.dice.choice(names) if names else ""
        path = self.root / name
        fresh = f"out/{next(self.words)}.bin"
        if what in {"make", "bytes"} or not names:
            data = BYTES if what == "bytes" else self._line().encode()
            self._put_bytes(fresh, data)
        elif what in {"copy", "move"}:
            self._put_bytes(fresh, picture[name])
            if what == "move":
                path.unlink()
        elif what == "rename":
            (self.root / fresh).parent.mkdir(exist_ok=True)
            path.rename(self.root / fresh)
        elif what == "delete" and not mine(picture[name].decode("utf-8", "replace")):
            path.unlink()
        elif what == "append":
            self._put_bytes(name, picture[name] + self._line().encode())
        else:
            self._put_bytes(name, picture[name].replace(b"line", b"LINE"))

    # ------------------------------------------------------------------ both

    def touched_since(self, before: Picture) -> None:
        """Take note of what the session has just changed."""
        after = self.picture()
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                for run in self.touched:
                    run.setdefault(name, before.get(name))

    def _texts(self) -> dict[str, str]:
        found = {}
        for name, data in self.picture().items():
            if b"\0" not in data:
                found[name] = data.decode()
        return found

    def _put(self, name: str, text: str) -> None:
        self._put_bytes(name, text.encode())

    def _put_bytes(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def mine(text: str) -> set[str]:
    """Give the user's keystrokes in a text."""
    return {char for char in text if ord(char) >= FIRST_KEYSTROKE}


def keystrokes_in(picture: Picture) -> set[str]:
    return {char for data in picture.values() for char in mine(data.decode("utf-8", "replace"))}


@asynccontextmanager
async def scene(seed: int) -> AsyncGenerator[tuple[History, Bench]]:
    with fast_folder() as root:
        history = History(root, random.Random(seed))  # noqa: S311 - not for secrets
        contents = MemoryBlobStore()
        disk = DiskFiles((root,), root)
        lookout = DiskChangeDetector((root,), contents, DiskProcesses(), env={})
        workspace = Workspace(roots=(root,), files=disk, processes=Commands(history), env={})
        place = WorkspaceContext(
            workspace=workspace,
            raw=disk,
            detector=lookout,
            permissions=PermissionState(mode="yolo"),
        )

        async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
            for _ in range(history.dice.randint(1, 4)):
                match history.dice.choice(["edit", "edit", "command", "type"]):
                    case "edit":
                        before = await to_thread.run_sync(history.picture)
                        await history.edit(context)
                        await to_thread.run_sync(history.touched_since, before)
                    case "command":
                        process = await context.processes.start(("x",), cwd=root, env={})
                        _ = await process.end(grace_s=0)
                    case _:
                        await to_thread.run_sync(history.type)
            return text_result("done")

        tool = FunctionTool("work", work, kind="execute")
        async with bench(
            ScriptedModel([]), tools=(tool,), root=root, workspace=place, contents=contents
        ) as b:
            yield history, b


async def run(history: History, b: Bench) -> None:
    """Let the agent work; of a run that changed nothing there is no checkpoint."""
    before = len(b.session.checkpoints.all)
    history.begin_run()
    b.model.add(call("work"), say("done"))
    _ = await b.session.prompt("go")
    _ = await b.idle()
    made = len(b.session.checkpoints.all) - before
    assert made == bool(history.touched[-1])
    if not made:
        del history.touched[-1]


async def go_back(history: History, b: Bench) -> None:
    """Restore something, and hold what became of it against the pictures."""
    checkpoints = b.session.checkpoints
    place = history.dice.randrange(len(checkpoints.all))
    chosen = checkpoints.all[place].checkpoint
    ways: list[OnConflict] = ["skip", "skip", "merge", "overwrite"]
    how = history.dice.choice(ways)
    before = await to_thread.run_sync(history.picture)
    was = history.touched[place]
    history.begin_run()
    try:
        done = await checkpoints.restore(chosen, on_conflict=how)
    except CheckpointConflict:
        assert await to_thread.run_sync(history.picture) == before
        return
    after = await to_thread.run_sync(history.picture)
    held = {name: was.get(name) for name in (_name(history, path) for path in done.restored)}
    await to_thread.run_sync(history.touched_since, before)
    if how == "overwrite":
        # Given up on purpose; whoever goes back to that moment gives it up again.
        history.deleted |= keystrokes_in(before) - keystrokes_in(after)
    else:
        lost = keystrokes_in(before) - keystrokes_in(after) - history.deleted
        assert not lost, f"{len(lost)} keystrokes of the user are gone"
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= held.keys(), "a file was changed that is not said to be restored"
    if how != "merge":
        assert {name: after.get(name) for name in held} == held
    if history.dice.random() < 0.7:
        history.begin_run()
        again = await checkpoints.restore(done.undo)
        await to_thread.run_sync(history.touched_since, after)
        assert not again.skipped
        assert await to_thread.run_sync(history.picture) == before, "a restore of a restore"
        if history.dice.random() < 0.5:
            history.begin_run()
            _ = await checkpoints.restore(again.undo)
            await to_thread.run_sync(history.touched_since, before)
            assert await to_thread.run_sync(history.picture) == after


def _name(history: History, path: Path) -> str:
    return path.relative_to(history.root).as_posix()


async def one_history(seed: int) -> None:
    async with scene(seed) as (history, b):
        for _ in range(STEPS):
            match history.dice.choice(["run", "run", "type", "type", "restore"]):
                case "run":
                    await run(history, b)
                case "type":
                    await to_thread.run_sync(history.type)
                case _ if b.session.checkpoints.all:
                    await go_back(history, b)
                case _:
                    pass


@pytest.mark.timeout(at_size(ci=120, campaign=3_600))
async def test_nothing_of_the_users_is_lost_and_every_restore_can_be_taken_back() -> None:
    for seed in range(HISTORIES):
        try:
            await one_history(seed)
        except Exception as error:
            error.add_note(f"in the history of seed {seed}")
            raise
