"""A disk that fails while a session is written: nothing half done, nothing lost, and it goes on afterwards."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage import Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, entry, header, user
from tests.support.workspace.mounts import small_file_system


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "sessions", SystemClock())


LIMITED = """
import resource, signal, sys, anyio
from pathlib import Path
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, entry, header, user

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    log = await JsonlStore(Path(sys.argv[1]), SystemClock()).create(header())
    limit(100)
    try:
        await log.append(chain(user("first")))
    except StorageUnavailable as error:
        print("birth refused", "EFBIG" in str(error), log.location.exists())
    limit(2_000)
    await log.append(chain(user("first")))
    good = log.location.read_bytes()
    batch = [entry("a", user("x" * 100), parent="e1"), entry("b", user("y" * 5_000), parent="a")]
    for _ in range(3):
        try:
            await log.append(batch)
        except StorageUnavailable as error:
            told = str(log.location) in str(error) and "EFBIG" in str(error)
            print("refused", told, log.location.read_bytes() == good)
    await log.append([entry("small", user("s"), parent="e1")])
    limit(resource.RLIM_INFINITY)
    await log.append(batch)
    await log.close()
anyio.run(main)
"""


async def test_a_full_disk_takes_a_write_back_and_the_session_goes_on(
    tmp_path: Path, store: JsonlStore
) -> None:
    said = await anyio.run_process([sys.executable, "-c", LIMITED, str(tmp_path / "sessions")])
    assert said.stdout.decode().splitlines() == [
        "birth refused True False",
        *["refused True True"] * 3,
    ]
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == ["e1", "small", "a", "b"]
    assert opened.recovery == Recovery()
    await opened.log.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    with small_file_system(folder, size_bytes=64 << 10):
        yield folder


def _free(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


async def test_a_really_full_file_system_is_named_and_recovers(small_disk: Path) -> None:
    store = JsonlStore(small_disk / "sessions", SystemClock())
    log = await store.create(header())
    await log.append(chain(user("first")))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 40_000)
    written: list[str] = ["e1"]
    while _free(small_disk) > 4_096:
        name = f"n{len(written)}"
        await log.append([entry(name, user("x" * 1_500), parent=written[-1])])
        written.append(name)
    with pytest.raises(
        StorageUnavailable, match=r"_s1\.jsonl.*No space left.*free some disk space"
    ):
        await log.append([entry("big", user("x" * 9_000), parent=written[-1])])
    assert len(written) > 2
    with pytest.raises(StorageUnavailable):
        await log.append([entry("big", user("x" * 30_000), parent=written[-1])])
    ballast.unlink()
    await log.append([entry("big", user("x" * 30_000), parent=written[-1])])
    await log.sync()
    await log.close()
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == [*written, "big"]
    assert opened.recovery == Recovery()
    await opened.log.close()


async def test_opening_a_torn_file_on_a_full_disk_still_works(small_disk: Path) -> None:
    store = JsonlStore(small_disk / "sessions", SystemClock())
    log = await store.create(header())
    await log.append(chain(user("first")))
    await log.close()
    assert log.location is not None
    with log.location.open("ab") as file:
        file.write(b'{"torn')
    ballast = small_disk / "ballast"
    # One page stays free: the file that names the owner needs it.
    ballast.write_bytes(b"x" * (_free(small_disk) - 4_096))
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == ["e1"]
    ballast.unlink()
    await opened.log.append([entry("x", user("x"), parent="e1")])
    await opened.log.close()
    again = await store.open(SessionId("s1"))
    assert [one.id for one in again.entries] == ["e1", "x"]
    await again.log.close()


async def test_a_file_that_was_deleted_is_written_anew(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    for number in range(2):
        log.location.unlink()
        if number:
            log.location.with_name(log.location.name + ".lock").unlink()
            log.location.parent.rmdir()
        await log.append([entry(f"n{number}", user("b"), parent="e1")])
    await log.sync()
    await log.close()
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == ["e1", "n0", "n1"]
    await opened.log.close()


async def test_a_file_that_was_replaced_is_left_alone_and_named(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    aside = log.location.with_suffix(".aside")
    log.location.rename(aside)
    log.location.write_bytes(b"someone else's\n")
    with pytest.raises(StorageUnavailable, match=r"_s1\.jsonl' was replaced by another file"):
        await log.append([entry("x", user("b"), parent="e1")])
    assert log.location.read_bytes() == b"someone else's\n"
    aside.rename(log.location)
    await log.append([entry("x", user("b"), parent="e1")])
    await log.close()
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == ["e1", "x"]
    await opened.log.close()


async def test_a_file_that_was_shortened_takes_nothing_more(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    content = log.location.read_bytes()
    log.location.write_bytes(content[:50])
    with pytest.raises(StorageUnavailable, match=f"shortened from {len(content)} to 50 bytes"):
        await log.append([entry("x", user("b"), parent="e1")])
    log.location.write_bytes(content)
    await log.append([entry("x", user("b"), parent="e1")])
    await log.close()


async def test_what_another_program_added_is_not_glued_to_ours(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    with log.location.open("ab") as file:
        file.write(b"no newline here")
    await log.append([entry("x", user("b"), parent="e1")])
    await log.close()
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == ["e1", "x"]
    assert opened.recovery.skipped_lines == (3,)
    await opened.log.close()


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file", encoding="utf-8")
    log = await JsonlStore(tmp_path / "sessions", SystemClock()).create(header())
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match=r"_s1\.jsonl' could not be made"):
            await log.append(chain(user("a")))
    (tmp_path / "sessions").unlink()
    await log.append(chain(user("a")))
    assert log.location is not None
    assert len(log.location.read_bytes().splitlines()) == 2
    await log.close()


APPENDER = """
import sys, anyio
from pathlib import Path
from agent_core.kernel import SystemClock
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, entry, header, user

async def main():
    store = JsonlStore(Path(sys.argv[1]), SystemClock())
    opened = None if sys.argv[2] == "0" else await store.open("s1")
    log = await store.create(header()) if opened is None else opened.log
    parent = None if opened is None else opened.entries[-1].id
    for number in range(1_000_000):
        name = f"{sys.argv[2]}.{number}"
        await log.append([entry(name, user("x" * (number % 97) * 40), parent=parent)])
        sys.stderr.write(name + "\\n")
        sys.stderr.flush()
        parent = name
anyio.run(main)
"""


@pytest.mark.timeout(120)
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for kill in range(30):
        acknowledged += _append_until_killed(tmp_path, kill)
    read = anyio.run(_ids, tmp_path)
    # An entry whose acknowledgement was not given any more may be there too, one for each kill.
    extra = [name for name in read if name not in set(acknowledged)]
    assert [name for name in read if name in set(acknowledged)] == acknowledged
    assert len(extra) <= 30
    assert len({name.split(".")[0] for name in acknowledged}) == 30


def _append_until_killed(folder: Path, kill: int) -> list[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(folder), str(kill)], stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    names: list[str] = []
    with child:
        # A different place each time: after so many entries, wherever the child then is.
        for line in child.stderr:
            if not line.endswith(b"\n"):
                break
            names.append(line.decode().strip())
            assert names[-1].startswith(f"{kill}."), names
            if len(names) == 1 + kill * 7 % 50:
                child.kill()
    return names


async def _ids(folder: Path) -> list[str]:
    opened = await JsonlStore(folder, SystemClock()).open(SessionId("s1"))
    await opened.log.close()
    assert opened.recovery.skipped_lines == ()
    return [one.id for one in opened.entries]


@pytest.mark.timeout(120)
async def test_a_fault_at_any_call_loses_nothing_that_was_acknowledged() -> None:
    said = await anyio.run_process([sys.executable, "-m", "tests.storage.faults.faulty_disk"])
    assert said.stdout.decode().splitlines() == ["error: enough", "short: enough"]
