"""Attachments when the writer is killed and when the disk is full: whole or not there, and the session goes on."""

import signal
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.messages import Image, Text
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.attachments import PARTIAL_S, Attachments
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.paths import attachments_folder
from agent_core.transcript import Header
from tests.storage.faults.small_disk import small_disk
from tests.support.provider.images import PNG
from tests.support.session.scripted_model import SCRIPTED_FACTS, ScriptedModel, say
from tests.support.session.sessions import bench

BLOB = sha256(PNG).hexdigest()
KILLED = """
import anyio, os, signal, sys
from hashlib import sha256
from pathlib import Path
from agent_core.storage.adapters.attachments import Attachments, CountedAttachments

folder, when = Path(sys.argv[1]), sys.argv[2]
data = bytes.fromhex(sys.argv[3])

async def halves():
    yield data[:40]
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = Attachments(folder)
    if when == "before the entry":
        await CountedAttachments(lambda: store, folder / "none").keep(data)
        os.kill(os.getpid(), signal.SIGKILL)
    await store.receive(sha256(data).hexdigest(), halves())

anyio.run(main)
"""
"""A writer that is killed in the middle of an attachment, or between it and the entry that names it."""


SEES = replace(SCRIPTED_FACTS, images=True)


def image(data: bytes) -> Image:
    """Return an image with its bytes."""
    return Image(mime="image/png", data=b64encode(data).decode("ascii"))


def files(folder: Path) -> list[Path]:
    """Return all files of attachments, partial ones too."""
    return [path for path in folder.rglob("*") if path.is_file()]


def partial_files(folder: Path) -> list[Path]:
    """Return the files of attachments that are not whole."""
    return [path for path in folder.iterdir() if path.suffix]


def killed(folder: Path, when: str) -> int:
    """Run the writer; return its exit code."""
    argv = [sys.executable, "-c", KILLED, str(folder), when, PNG.hex()]
    return subprocess.run(argv, check=False, timeout=60).returncode


@pytest.mark.parametrize("when", ["before the entry", "in the attachment"])
async def test_a_killed_writer_leaves_no_half_attachment(tmp_path: Path, when: str) -> None:
    sessions = tmp_path / "sessions"
    folder = attachments_folder(sessions)
    assert await to_thread.run_sync(killed, folder, when) == -signal.SIGKILL
    store = Attachments(folder)
    whole = when == "before the entry"
    assert (await store.read(BLOB) is not None) == whole
    assert len(await to_thread.run_sync(partial_files, folder)) == (0 if whole else 1)
    clock = SystemClock()
    log = await JsonlStore(sessions, clock).create(Header(id=SessionId("s"), at_ms=0, cwd="/w"))
    opened = OpenedSession(log=log, entries=(), recovery=Recovery())
    model = ScriptedModel([say("a dot")], facts=SEES)
    async with bench(model, opened=opened) as one:
        await one.session.prompt([image(PNG)])
        await one.idle()
    assert await store.read(BLOB) is not None
    later_s = clock.now_ms() / 1000 + PARTIAL_S + 1
    assert await to_thread.run_sync(lambda: store.collect([], now_s=later_s)) == 0
    assert await to_thread.run_sync(partial_files, folder) == []


async def test_a_full_disk_refuses_the_prompt_and_keeps_no_part_of_its_image(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        sessions = disk.folder / "sessions"
        store = JsonlStore(sessions, SystemClock())
        log = await store.create(Header(id=SessionId("s"), at_ms=0, cwd="/w"))
        opened = OpenedSession(log=log, entries=(), recovery=Recovery())
        model = ScriptedModel([say("words"), say("a dot")], facts=SEES)
        async with bench(model, store=store, opened=opened) as one:
            await one.session.prompt("hello")
            await one.idle()
            large = PNG + bytes(500_000)
            await to_thread.run_sync(disk.fill)
            with pytest.raises(StorageUnavailable, match="No space left on device; free some disk"):
                await one.session.prompt([Text(text="see"), image(large)])
            await to_thread.run_sync(disk.free)
            assert await to_thread.run_sync(files, attachments_folder(sessions)) == []
            await one.session.prompt([Text(text="see"), image(large)])
            await one.idle()
        (path,) = await to_thread.run_sync(files, attachments_folder(sessions))
        assert path.name == sha256(large).hexdigest()
