"""Sessions as files: where they lie, what stands in them, who may write them."""

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import (
    SessionDamaged,
    SessionLocked,
    SessionNotFound,
    StorageUnavailable,
    UsageError,
)
from agent_core.storage import Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.paths import slug, this_process
from agent_core.storage.adapters.recovery import recover
from tests.storage.conformance import StoreConformance
from tests.storage.conformance_reading import ReadingConformance
from tests.support.session.entries import AT_MS, assistant, chain, compaction, entry, header, user

STAMP = "2026-01-01T00-00-00-000Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions"


@pytest.fixture
def store(folder: Path) -> JsonlStore:
    return JsonlStore(folder, SystemClock())


class TestJsonlStore(StoreConformance, ReadingConformance):
    @pytest.fixture
    def store(self, folder: Path) -> JsonlStore:
        return JsonlStore(folder, SystemClock())


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/home/me/project", "--home-me-project--"),
        ("C:\\Users\\me", "--C--Users-me--"),
        ("\\\\server\\share", "---server-share--"),
        ("/", "----"),
        ("/w/ü x", "--w-ü x--"),
    ],
)
def test_the_folder_of_a_workspace_is_named_after_its_path(cwd: str, name: str) -> None:
    assert slug(cwd) == name


def test_a_long_path_is_cut_and_told_from_its_neighbours() -> None:
    for letter in ("a", "ü", "漢"):
        one, two = slug("/" + letter * 300 + "1"), slug("/" + letter * 300 + "2")
        assert one != two
        assert max(len(os.fsencode(one)), len(os.fsencode(two))) <= 255
        assert one.startswith(f"--{letter * 50}")
        assert one.endswith("--")
    assert len(os.fsencode(slug("/" + "a" * 251))) == 255


async def test_a_file_has_the_header_and_one_entry_a_line(store: JsonlStore, folder: Path) -> None:
    log = await store.create(header())
    assert log.location == folder / "--w-project--" / f"{STAMP}_s1.jsonl"
    assert await store.list() == ()
    assert not await anyio.Path(folder).exists()
    await log.append(chain(user("a\nb"), assistant("c")))
    lines = (folder / "--w-project--" / f"{STAMP}_s1.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line)["type"] for line in lines[:-1]] == ["session", "message", "message"]
    assert lines[-1] == b""
    assert json.loads(lines[0]) == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/w/project",
    }
    await log.close()


async def test_folders_and_files_are_for_their_owner_alone(store: JsonlStore, folder: Path) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    lock = log.location.with_name(log.location.name + ".lock")
    modes = [_mode(path) for path in (folder, folder / "--w-project--", log.location, lock)]
    assert modes == [0o700, 0o700, 0o600, 0o600]
    await log.close()


@pytest.mark.parametrize("session", ["../evil", "a/b", "", ".hidden", "a" * 129, "x\ny", "ü"])
async def test_an_id_that_is_no_file_name_is_refused(store: JsonlStore, session: str) -> None:
    with pytest.raises(UsageError, match="cannot name a file"):
        await store.create(header(session))


async def test_a_file_placed_by_hand_is_found_by_its_header(
    store: JsonlStore, folder: Path
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    await log.close()
    assert log.location is not None
    for place in (folder / "--elsewhere--" / "renamed.jsonl", folder / "flat.jsonl"):
        place.parent.mkdir(exist_ok=True)
        log.location.rename(place)
        opened = await store.open(SessionId("s1"))
        assert (opened.log.location, opened.log.header) == (place, header())
        await opened.log.close()
        assert await store.latest("/w/project") == "s1"
        place.rename(log.location)


async def test_a_copy_elsewhere_does_not_hide_the_session_at_home(
    store: JsonlStore, folder: Path
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    await log.close()
    assert log.location is not None
    copy = folder / "--copy--" / log.location.name
    copy.parent.mkdir()
    copy.write_bytes(log.location.read_bytes())
    opened = await store.open(SessionId("s1"))
    assert opened.log.location == log.location
    await opened.log.close()
    log.location.rename(folder / log.location.name)
    with pytest.raises(SessionNotFound, match="in several files"):
        await store.open(SessionId("s1"))


async def test_other_files_in_the_folder_are_passed_over(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    home = log.location.parent
    (home / f"{STAMP}_s1.events.jsonl").write_text('{"seq":1}\n', encoding="utf-8")
    (home / "empty_s2.jsonl").touch()
    (home / "binary_s3.jsonl").write_bytes(os.urandom(5000))
    (home / "folder_s4.jsonl").mkdir()
    os.mkfifo(home / "pipe_s5.jsonl")
    (home / "gone_s6.jsonl").symlink_to(home / "nowhere")
    assert [one.session for one in await store.list()] == ["s1"]
    assert await store.latest("/w/project") == "s1"
    for session in ("s2", "s3", "s4", "s5", "s6"):
        with pytest.raises((SessionDamaged, StorageUnavailable), match=f"_{session}.jsonl"):
            await store.open(SessionId(session))
    await log.close()


async def test_the_last_entry_is_found_behind_a_very_long_line(store: JsonlStore) -> None:
    for session, at_ms in (("long", 9), ("short", 5)):
        log = await store.create(header(session))
        text = "x" * 300_000 if session == "long" else "x"
        await log.append([entry("e1", user(text), at_ms=AT_MS + at_ms)])
        await log.close()
    assert await store.latest("/w/project") == "long"


async def test_a_second_process_cannot_open_the_session_and_is_told_who_has_it(
    store: JsonlStore, folder: Path
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    said = await anyio.run_process([sys.executable, "-c", OPEN, str(folder)], check=False)
    assert f"SessionLocked by process {os.getpid()}:" in said.stdout.decode()
    await log.close()
    said = await anyio.run_process([sys.executable, "-c", OPEN, str(folder)], check=False)
    assert said.stdout.decode() == "opened 1\n"


OPEN = """
import re, sys, anyio
from pathlib import Path
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import SessionLocked
from agent_core.storage.adapters.jsonl import JsonlStore
async def main():
    try:
        opened = await JsonlStore(Path(sys.argv[1]), SystemClock()).open("s1")
    except SessionLocked as error:
        print("SessionLocked", re.search("by process [0-9]+:", str(error))[0])
    else:
        print("opened", len(opened.entries))
anyio.run(main)
"""


@pytest.mark.parametrize(
    "owner",
    [
        {"pid": "gone"},
        {"boot": "another start of this machine"},
        {"pid": "reused"},
        {"host": "another container on this machine"},
        "half written",
        {},
        {"pid": -5},
        {"pid": 10**30},
    ],
    ids=str,
)
async def test_the_lock_of_a_dead_owner_is_taken_over(store: JsonlStore, owner: object) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    await log.close()
    assert log.location is not None
    lock = log.location.with_name(log.location.name + ".lock")
    text = await anyio.to_thread.run_sync(_owner_text, owner)
    lock.write_text(text, encoding="utf-8")
    opened = await store.open(SessionId("s1"))
    assert json.loads(lock.read_bytes())["pid"] == os.getpid()
    await opened.log.close()
    assert not lock.exists()


async def test_the_lock_of_another_machine_is_respected(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    await log.close()
    assert log.location is not None
    lock = log.location.with_name(log.location.name + ".lock")
    lock.write_text(
        json.dumps({"pid": 7, "host": "far-away", "boot": "b", "start": "1"}), encoding="utf-8"
    )
    with pytest.raises(SessionLocked, match=r"process 7 on 'far-away'.*remove"):
        await store.open(SessionId("s1"))
    lock.unlink()
    opened = await store.open(SessionId("s1"))
    await opened.log.close()


async def test_a_living_owner_without_the_kernels_lock_is_respected(store: JsonlStore) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    await log.close()
    assert log.location is not None
    lock = log.location.with_name(log.location.name + ".lock")
    lock.write_text(json.dumps({"pid": os.getppid()}), encoding="utf-8")
    with pytest.raises(SessionLocked, match=f"process {os.getppid()}"):
        await store.open(SessionId("s1"))


async def test_taking_the_lock_file_away_does_not_let_a_second_writer_in(
    store: JsonlStore,
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    assert log.location is not None
    log.location.with_name(log.location.name + ".lock").unlink()
    with pytest.raises(SessionLocked):
        await store.open(SessionId("s1"))
    await log.close()


async def test_an_old_file_is_brought_to_todays_format_and_kept(
    store: JsonlStore, folder: Path
) -> None:
    old = folder / "--w--" / "2025_s1.jsonl"
    old.parent.mkdir(parents=True)
    lines = [
        {"type": "session", "id": "s1", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/w"},
        {"type": "message", "message": {"role": "user", "content": "a", "timestamp": 1}},
        {"type": "message", "message": {"role": "assistant", "content": "b", "timestamp": 2}},
        {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 5},
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    old.write_bytes(content)
    opened = await store.open(SessionId("s1"))
    assert opened.log.header.version == 3
    one, two, three = opened.entries
    assert (one.parent, two.parent, three.parent) == (None, one.id, two.id)
    await opened.log.append([entry("x", user("c"), parent=three.id)])
    await opened.log.close()
    assert old.with_name(old.name + ".old").read_bytes() == content
    again = await store.open(SessionId("s1"))
    assert again.entries[:3] == opened.entries
    assert again.recovery == Recovery()
    assert again.log.header == opened.log.header
    assert sorted(path.name for path in old.parent.iterdir()) == [
        old.name,
        old.name + ".lock",
        old.name + ".old",
    ]
    await again.log.close()


async def test_deleting_removes_what_lies_beside_the_session(store: JsonlStore) -> None:
    for session in ("s1", "s2"):
        log = await store.create(header(session))
        await log.append(chain(user("a")))
        await log.close()
        assert log.location is not None
        for ending in (".damaged", ".old", ".new"):
            log.location.with_name(log.location.name + ending).touch()
        log.location.with_suffix(".events.jsonl").touch()
    await store.delete(SessionId("s1"))
    assert log.location is not None
    left = {path.name for path in log.location.parent.iterdir()}
    name = f"{STAMP}_s2"
    endings = (".jsonl", ".jsonl.damaged", ".jsonl.old", ".jsonl.new", ".events.jsonl")
    assert left == {name + ending for ending in endings}


async def test_a_session_that_another_process_writes_cannot_be_deleted(
    store: JsonlStore, folder: Path
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    delete = OPEN.replace("opened = await", "await").replace(".open(", ".delete(")
    said = await anyio.run_process([sys.executable, "-c", delete, str(folder)], check=False)
    assert f"SessionLocked by process {os.getpid()}:" in said.stdout.decode()
    await log.append([entry("e2", user("b"), parent="e1")])
    await log.close()
    assert len((await store.read(SessionId("s1"))).entries) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no readable line"),
        (b"\0" * 4096, "no readable line"),
        (b"not json\n", "no readable line"),
        (b'{"type":"message","id":"a"}\n', "no session header"),
    ],
    ids=["empty", "zeros", "text", "no header"],
)
def test_a_file_that_is_no_session_says_so(content: bytes, says: str) -> None:
    with pytest.raises(SessionDamaged, match=says):
        recover(content, name="x.jsonl", new_id=lambda _: "n")


async def test_two_thousand_entries_come_back_as_they_were(store: JsonlStore) -> None:
    entries = chain(*(user(f"{number} ü 漢 \u2028 {'x' * 200}") for number in range(2000)))
    log = await store.create(header())
    await log.append(entries)
    await log.append([compaction("c", parent="e2000", first_kept="e1990")])
    await log.close()
    stored = await store.read(SessionId("s1"))
    assert stored.entries[:-1] == tuple(entries)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _owner_text(owner: object) -> str:
    us = this_process()
    base: dict[str, object] = {
        "pid": us.pid,
        "host": socket.gethostname(),
        "boot": us.boot,
        "start": us.start,
    }
    match owner:
        case "half written":
            return json.dumps(base)[:20]
        case {"pid": "gone"}:
            child = subprocess.Popen([sys.executable, "-c", ""])
            child.wait()
            return json.dumps(base | {"pid": child.pid, "start": "5"})
        case {"pid": "reused"}:
            return json.dumps(base | {"start": "5"})
        case {"boot": _} | {"host": _}:
            assert isinstance(owner, dict)
            return json.dumps({**base, **owner, "pid": 1})
        case _:
            return json.dumps(owner)
