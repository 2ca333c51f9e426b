"""Rejections of what a run goes on changing: done at its end, also when the process does not live that long."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import FolderBlobStore
from agent_core.changes.values import QueuedRejection, encode_queued, encode_settled, queued_in
from agent_core.events import ChangeCounts, EditRejected, Notice
from agent_core.kernel import SessionId
from agent_core.session.changes.review import ReviewRequest
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript.entries import CustomEntry, Header
from tests.support.harness.clock import FakeClock
from tests.support.workspace.file_tools import ROOT, Desk, desk, does

A = ROOT / "a.py"
TEXT = "a\nb\nc\nd\ne\n"
EDITED = "A\nb\nc\nd\nE\n"
GO_ON = "go_on"


class Machine:
    """A process that dies while a rejection waits for the end of a run."""

    def __init__(self, folder: Path) -> None:
        self.contents = FolderBlobStore(folder / "blobs")
        self.store = JsonlStore(folder / "sessions", FakeClock())
        self.left = b""
        self.file = folder

    async def live(self, wish: Callable[[Desk], ReviewRequest] | None = None) -> str:
        """Let it go on to its end all the same; gives what the file is then. `left` is what a dead one would have left."""
        log = await self.store.create(Header(id=SessionId("s-1"), at_ms=1, cwd=str(ROOT)))
        assert log.location is not None
        self.file = log.location
        opened = OpenedSession(log=log, entries=(), recovery=Recovery())
        async with desk({"a.py": TEXT}, contents=self.contents, opened=opened) as d:
            d.bench.model.add(*does(("write", "a.py", EDITED), ("await", GO_ON)))
            _ = await d.session.prompt("go")
            with anyio.fail_after(5):
                await until(lambda: d.session.changes.counts.unreviewed == 2)
                found = await d.session.changes.at(A)
                assert found is not None
                chosen = wish(d) if wish else ReviewRequest(action="reject", hunk=found.hunks[1].id)
                async with anyio.create_task_group() as group:

                    async def decide() -> None:
                        (end,) = await d.session.changes.resolve((chosen,), note="not e")
                        assert end.status == "done"

                    group.start_soon(decide)
                    await until(lambda: "tiller.review" in kinds(d))
                    assert d.texts()["a.py"] == EDITED
                    self.left = await to_thread.run_sync(self.file.read_bytes)
                    d.user(GO_ON, "")
            _ = await d.bench.idle()
            return d.texts()["a.py"]

    async def reopened(self) -> OpenedSession:
        """Open what the dead process left."""
        await to_thread.run_sync(self.file.write_bytes, self.left)
        return await self.store.open(SessionId("s-1"))


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


def kinds(d: Desk) -> list[str]:
    return [one.custom_type for one in d.session.info.entries if isinstance(one, CustomEntry)]


def notices(d: Desk) -> list[Notice]:
    said = [one for one in d.bench.seen() if isinstance(one, Notice)]
    return [one for one in said if one.text.startswith("You rejected")]


async def test_it_is_done_at_the_end_of_the_run_and_waits_no_more(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert await machine.live() == EDITED.replace("E", "e")
    async with desk(
        {"a.py": EDITED},
        contents=machine.contents,
        opened=await machine.store.open(SessionId("s-1")),
    ) as d:
        await d.session.changes.take_up()
        assert d.texts()["a.py"] == EDITED
        assert notices(d) == []


async def test_it_is_done_by_the_next_process(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    _ = await machine.live()
    async with desk(
        {"a.py": EDITED}, contents=machine.contents, opened=await machine.reopened()
    ) as d:
        await d.session.changes.take_up()
        assert d.texts()["a.py"] == EDITED.replace("E", "e")
        assert d.session.changes.counts == ChangeCounts(
            files=1, additions=1, deletions=1, unreviewed=1
        )
        (told,) = notices(d)
        assert (told.level, "taken back now" in told.text) == ("info", True)
        assert any(isinstance(one, EditRejected) for one in d.bench.seen())
        # Once, whoever comes later.
        d.user("a.py", EDITED)
        await d.session.changes.take_up()
        assert d.texts()["a.py"] == EDITED
        assert "not e" in await d.say()
    async with desk(
        {"a.py": EDITED},
        contents=machine.contents,
        opened=await machine.store.open(SessionId("s-1")),
    ) as later:
        await later.session.changes.take_up()
        assert later.texts()["a.py"] == EDITED


async def test_a_whole_file_waits_as_well(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert await machine.live(lambda _: ReviewRequest(action="reject", file=A)) == TEXT
    async with desk(
        {"a.py": EDITED}, contents=machine.contents, opened=await machine.reopened()
    ) as d:
        await d.session.changes.take_up()
        assert d.texts()["a.py"] == TEXT


@pytest.mark.parametrize("there", [EDITED.replace("E", "mine"), None], ids=["changed", "gone"])
async def test_what_cannot_be_done_any_more_is_told(tmp_path: Path, there: str | None) -> None:
    machine = Machine(tmp_path)
    _ = await machine.live()
    files = {} if there is None else {"a.py": there}
    async with desk(files, contents=machine.contents, opened=await machine.reopened()) as d:
        await d.session.changes.take_up()
        assert d.texts() == files
        (told,) = notices(d)
        assert (told.level, "were not taken back" in told.text) == ("warning", True)


async def test_a_session_file_that_ends_after_any_line_does_what_it_knows(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    _ = await machine.live()
    whole = await to_thread.run_sync(machine.file.read_bytes)
    lines = whole.splitlines(keepends=True)
    done: list[bool] = []
    for end in range(1, len(lines) + 1):
        machine.left = b"".join(lines[:end])
        async with desk(
            {"a.py": EDITED}, contents=machine.contents, opened=await machine.reopened()
        ) as d:
            await d.session.changes.take_up()
            now = d.texts()["a.py"]
            assert now in {EDITED, EDITED.replace("E", "e")}
            done.append(now != EDITED)
    assert any(done)
    assert not done[-1]


QUEUED = QueuedRejection(id="q1", path=A, hunks=("h1", "h2"), whole=True, note="n", at_ms=7)


def test_what_waits_is_read_as_it_was_written() -> None:
    plain = QueuedRejection(id="q2", path=A, hunks=())
    told = [encode_queued(QUEUED), encode_queued(plain)]
    assert queued_in(told) == {"q1": QUEUED, "q2": plain}
    assert queued_in([*told, encode_settled(QUEUED, "done")]) == {"q2": plain}


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"state": "queued"},
        {"state": "queued", "id": 5, "path": "/a", "hunks": []},
        {"state": "queued", "id": "q", "path": 5, "hunks": []},
        {"state": "queued", "id": "q", "path": "/a", "hunks": "h"},
        {"state": "settled", "id": "never"},
        {"state": "later", "id": "q", "path": "/a", "hunks": []},
    ],
)
def test_what_makes_no_sense_does_not_wait(odd: dict) -> None:
    assert queued_in([odd]) == {}


# ------------------------------------------------------------------ what is no text in UTF-8


@pytest.mark.parametrize(
    "data",
    [
        "grün\nblau\n".encode("utf-16"),
        b"\xef\xbb\xbfmarked\n",
        "Grüße aus Köln, schöne Straße, Bücher und Öl für die Tür\n".encode("cp1252") * 8,
        b"\x89PNG\0\xff\xfe\0",
        b"",
    ],
    ids=["utf-16", "a mark", "cp1252", "bytes", "empty"],
)
async def test_a_deleted_file_comes_back_byte_for_byte(data: bytes) -> None:
    async with desk() as d:
        path = ROOT / "deep/odd.txt"
        d.files.put(path, data)
        await d.run(("delete", "deep/odd.txt"))
        assert path not in d.files.contents()
        (end,) = await d.session.changes.resolve((ReviewRequest(action="reject", file=path),))
        assert (end.status, end.why) == ("done", None)
        assert d.files.contents()[path] == data
        assert d.session.changes.counts == ChangeCounts()
