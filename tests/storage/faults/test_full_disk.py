"""Whole sessions on a disk that is full, read-only, forbidden, gone or in other hands: told once, and nothing lost."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from agent_core.events import ErrorRaised, Notice, RunEnded
from agent_core.kernel import Clock, SessionId, SystemClock
from agent_core.kernel.errors import SessionLocked, StorageUnavailable
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import AnyEntry
from tests.storage.faults import appender
from tests.storage.faults.small_disk import SmallDisk, small_disk
from tests.support.harness.clock import FakeClock
from tests.support.harness.sizes import at_size
from tests.support.session.entries import chain, entry, header, user
from tests.support.session.scripted_model import ScriptedModel, Turn, say
from tests.support.session.session_files import checked_entries, read_entries, said
from tests.support.session.sessions import Bench, bench

BIG = "big " * 30_000
LONG = "lost? " * 2_000
SESSION = SessionId("s-1")
NO_ROOM = r"_s-1\.jsonl'.*No space left on device \(ENOSPC\); free some disk space, then try again"
WALKS = at_size(ci=3, campaign=60)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as given:
        yield given


@asynccontextmanager
async def on(
    disk: SmallDisk, *turns: Turn, clock: Clock | None = None
) -> AsyncGenerator[Bench, None]:
    """Open a session whose file is on that disk; on the machine's clock it tries a full disk again only after seconds."""
    clock = clock or SystemClock()
    async with bench(ScriptedModel(turns), store=_store(disk), clock=clock) as b:
        yield b


def _store(disk: SmallDisk) -> JsonlStore:
    return JsonlStore(disk.folder / "sessions", SystemClock())


def _file(disk: SmallDisk) -> Path:
    return _only_file(disk.folder / "sessions")


def _only_file(sessions: Path) -> Path:
    (path,) = sessions.glob("*/*.jsonl")
    return path


def _told(b: Bench) -> list[str]:
    return [one.error.message for one in b.seen() if isinstance(one, ErrorRaised)]


async def _talk(b: Bench, words: str) -> None:
    await b.session.prompt(words)
    await b.idle()


def _ids(entries: Sequence[AnyEntry]) -> list[str]:
    return [one.id for one in entries]


async def _stored(disk: SmallDisk) -> list[str]:
    opened = await _store(disk).open(SESSION)
    await opened.log.close()
    assert opened.recovery.skipped_lines == ()
    return _ids(opened.entries)


async def test_an_answer_that_finds_no_room_is_told_at_once_kept_and_written_later(
    disk: SmallDisk,
) -> None:
    async with on(disk, say("one"), say(BIG), say("three")) as b:
        await _talk(b, "first")
        disk.fill()
        await _talk(b, "second")
        assert _told(b)
        assert all("ENOSPC" in text and str(_file(disk)) in text for text in _told(b))
        order = [type(one) for one in b.seen() if isinstance(one, ErrorRaised | RunEnded)]
        assert order[:2] == [RunEnded, ErrorRaised]
        assert [one.status for one in b.seen() if isinstance(one, RunEnded)] == ["completed"] * 2
        assert BIG in str(b.messages)
        before = read_entries(_file(disk))
        assert said(before[1:]) == ["first", "second"]
        with pytest.raises(StorageUnavailable, match=NO_ROOM):
            await b.session.prompt(LONG)
        assert read_entries(_file(disk)) == before
        disk.free()
        await _talk(b, "third")
        entries = _ids(b.session.info.entries)
    checked = checked_entries(_file(disk))
    assert said(checked) == ["first", "second", "third"]
    assert said(checked, "assistant") == ["one", BIG, "three"]
    assert await _stored(disk) == entries


async def test_what_waits_is_written_without_a_further_word_once_there_is_room(
    disk: SmallDisk,
) -> None:
    # On this clock the seconds between two tries take no time.
    async with on(disk, say("one"), say(BIG), clock=FakeClock()) as b:
        await _talk(b, "first")
        disk.fill()
        await _talk(b, "second")
        assert b.session.info.snapshot().unsaved > 0
        disk.free()
        told = await b.until(Notice)
        assert isinstance(told, Notice)
        assert told.text.startswith("saved again")
        assert b.session.info.snapshot().unsaved == 0
        assert said(checked_entries(_file(disk)), "assistant") == ["one", BIG]


async def test_what_waits_for_room_is_written_on_closing(disk: SmallDisk) -> None:
    async with on(disk, say("one"), say(BIG)) as b:
        await _talk(b, "first")
        disk.fill()
        await _talk(b, "second")
        disk.free()
        entries = _ids(b.session.info.entries)
    assert await _stored(disk) == entries


async def test_a_session_that_is_closed_without_room_says_what_it_could_not_write(
    disk: SmallDisk,
) -> None:
    async with on(disk, say("one"), say(BIG)) as b:
        await _talk(b, "first")
        disk.fill()
        await _talk(b, "second")
        before, told = read_entries(_file(disk)), len(_told(b))
        await b.session.close()
        assert len(_told(b)) == told + 1
        assert "ENOSPC" in _told(b)[-1]
    assert read_entries(_file(disk)) == before


async def test_after_closing_nothing_is_tried_any_more(disk: SmallDisk) -> None:
    async with on(disk, say("one"), say(BIG), clock=FakeClock()) as b:
        await _talk(b, "first")
        disk.fill()
        await _talk(b, "second")
        await b.session.close()
        for _ in range(20):  # a try takes a turn in a thread
            await anyio.to_thread.run_sync(_file, disk)


async def test_first_words_that_find_no_room_are_refused_and_leave_nothing_behind(
    disk: SmallDisk,
) -> None:
    disk.fill()
    async with on(disk, say("one")) as b:
        for _ in range(3):
            with pytest.raises(StorageUnavailable, match="ENOSPC"):
                await b.session.prompt("first")
            assert not list(disk.folder.glob("sessions/*/*"))
        assert b.messages == ()
        disk.free()
        await _talk(b, "first")
    assert said(checked_entries(_file(disk))) == ["first"]


@pytest.mark.timeout(at_size(ci=60, campaign=1_200))
@pytest.mark.parametrize("seed", range(WALKS))
async def test_a_disk_that_fills_and_frees_at_random_loses_nothing_that_was_accepted(
    disk: SmallDisk, seed: int
) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same walk every time
    accepted: list[str] = []
    refused = 0
    answers = [say(f"answer {number} " * draw.choice([1, 50, 900])) for number in range(30)]
    async with on(disk, *answers) as b:
        for number in range(30):
            draw.choice([disk.fill, disk.free, disk.free])()
            words = f"words {number} " * draw.choice([1, 40, 400])
            try:
                await _talk(b, words)
            except StorageUnavailable:
                refused += 1
            else:
                accepted.append(words)
        disk.free()
        entries, told = _ids(b.session.info.entries), len(_told(b))
    checked = checked_entries(_file(disk))
    assert said(checked) == accepted
    assert len(said(checked, "assistant")) == len(accepted)
    assert await _stored(disk) == entries
    print(f"seed {seed}: {len(accepted)} accepted, {refused} refused, {told} errors told")


async def test_a_read_only_disk_is_named_and_the_words_can_be_said_again(disk: SmallDisk) -> None:
    async with on(disk, say("one"), say("two")) as b:
        disk.make_read_only()
        with pytest.raises(StorageUnavailable, match=r"Read-only file system \(EROFS\); make it"):
            await b.session.prompt("first")
        disk.make_writable()
        await _talk(b, "first")
    before = read_entries(_file(disk))
    disk.make_read_only()
    with pytest.raises(StorageUnavailable, match=r"_s-1\.jsonl'.*\(EROFS\); make it writable"):
        await _store(disk).open(SESSION)
    assert [one.session for one in await _store(disk).list()] == [SESSION]
    disk.make_writable()
    assert read_entries(_file(disk)) == before
    assert len(await _stored(disk)) == len(before) - 1


async def test_a_disk_that_is_taken_away_takes_no_entry_with_it(disk: SmallDisk) -> None:
    async with on(disk, say("one"), say("two")) as b:
        await _talk(b, "first")
        disk.take_away()
        assert not (disk.folder / "sessions").exists()
        await _talk(b, "second")
        entries = _ids(b.session.info.entries)
    assert said(checked_entries(_file(disk))) == ["first", "second"]
    assert await _stored(disk) == entries


FORBIDDEN = """
import sys, anyio
from pathlib import Path
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, header, user

async def main():
    store = JsonlStore(Path(sys.argv[1]), SystemClock())
    log = await store.create(header("s2"))
    for attempt in (log.append(chain(user("first"))), store.open("s1")):
        try:
            await attempt
        except StorageUnavailable as error:
            print(error)
    print([one.session for one in await store.list()])
anyio.run(main)
"""


async def test_a_folder_and_a_file_that_may_not_be_written_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    log = await JsonlStore(folder, SystemClock()).create(header())
    await log.append(chain(user("first")))
    await log.close()
    assert log.location is not None
    content = log.location.read_bytes()
    for path, mode in ((log.location, 0o444), (log.location.parent, 0o555), (folder, 0o555)):
        path.chmod(mode)
    command = [*_bound_by_permissions(), sys.executable, "-c", FORBIDDEN, str(folder)]
    ran = await anyio.run_process(command, check=False)
    assert ran.stderr == b""
    *told, listed = ran.stdout.decode().splitlines()
    names = ("s2.jsonl' could not be made", "s1.jsonl' could not be opened for writing")
    for text, name in zip(told, names, strict=True):
        assert name in text
        assert text.endswith("Permission denied (EACCES); make it writable, then try again")
    assert listed == "['s1']"
    assert log.location.read_bytes() == content
    for path in (folder, log.location.parent):
        path.chmod(0o755)


def _bound_by_permissions() -> list[str]:
    """Give what to run a program with so that permissions count for it; they are nothing to root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("there is no setpriv command to give up the powers of root with")
    return [setpriv, "--bounding-set", "-dac_override,-dac_read_search,-fowner"]


async def test_a_session_in_other_hands_is_refused_and_taken_over_when_they_die(
    tmp_path: Path,
) -> None:
    with _owner(tmp_path) as owner:
        path = _only_file(tmp_path)
        before = await anyio.Path(path).read_bytes()
        store = JsonlStore(tmp_path, SystemClock())
        for _ in range(2):
            with pytest.raises(SessionLocked, match=f"by process {owner.pid}: close it there"):
                await store.open(SessionId("s1"))
        assert await anyio.Path(path).read_bytes() == before
        owner.kill()
        owner.wait()
    opened = await store.open(SessionId("s1"))
    assert before.count(b"\n") - 1 <= len(opened.entries)
    await opened.log.append([entry("ours", user("x"), parent=opened.entries[-1].id)])
    await opened.log.close()
    after = await anyio.Path(path).read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1])


@contextmanager
def _owner(folder: Path) -> Generator["subprocess.Popen[bytes]", None, None]:
    """Let a process write a session, and stop it in the middle of that."""
    command = [sys.executable, "-P", str(appender.__file__), str(folder), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        try:
            assert owner.stdout.readline()
            owner.send_signal(signal.SIGSTOP)
            os.waitpid(owner.pid, os.WUNTRACED)
            yield owner
        finally:
            owner.kill()
