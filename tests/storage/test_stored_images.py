"""Attachments of stored sessions: in exports, copies and imports, and removed when no session names them."""

import os
from base64 import b64encode
from collections.abc import AsyncGenerator
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.assembly.library import SessionLibrary, open_library
from agent_core.assembly.storage.attachments import UserAttachments
from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.messages import File, Image, Text, UserMessage
from agent_core.resources.paths import AppPaths
from agent_core.storage.adapters.attachments import KEPT_S, AttachmentFolder
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.paths import attachments_folder
from agent_core.transcript import MessageEntry
from tests.support.provider.images import PNG, PNG_BASE64
from tests.support.session.entries import AT_MS, assistant, entry, header

BLOB = sha256(PNG).hexdigest()
STORED = Image(mime="image/png", blob=BLOB, size=len(PNG))
INLINE = Image(mime="image/png", data=PNG_BASE64)
S1 = SessionId("s1")
OLD_S = AT_MS / 1000


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    """Return the folders of a user."""
    return AppPaths(config=tmp_path / "c", data=tmp_path / "d", runtime=tmp_path / "r")


@pytest.fixture
async def library(paths: AppPaths) -> AsyncGenerator[SessionLibrary]:
    """Return the sessions of a user: one, which has an image."""
    store = JsonlStore(paths.sessions, SystemClock())
    log = await store.create(header("s1", cwd="/w/a"))
    assert log.attachments is not None
    assert (await log.attachments.keep(PNG)).blob == BLOB
    message = UserMessage(content=(Text(text="see"), STORED), at_ms=AT_MS)
    said = MessageEntry(id=EntryId("e1"), parent=None, at_ms=AT_MS, message=message)
    await log.append([said, entry("e2", assistant("a dot"), parent="e1")])
    await log.close()
    async with open_library(paths, clock=SystemClock()) as found:
        yield found


def files(paths: AppPaths) -> list[Path]:
    """Return the files of all attachments."""
    return [*AttachmentFolder(attachments_folder(paths.sessions)).files()]


async def collected(paths: AppPaths, *, after_s: float) -> int:
    """Return how many attachments are removed that long after the time that unused ones are kept."""
    collect = partial(UserAttachments(paths, {}).collect, now_s=OLD_S + KEPT_S + after_s)
    return await to_thread.run_sync(collect)


async def content_of(library: SessionLibrary, session: SessionId) -> tuple[object, ...]:
    """Return the content of the first message of a session."""
    first = (await library.read(session)).entries[0]
    assert isinstance(first, MessageEntry)
    assert isinstance(first.message, UserMessage)
    return first.message.content


async def test_exported_lines_hold_the_image_and_are_imported_elsewhere(
    library: SessionLibrary, tmp_path: Path
) -> None:
    lines = await library.export(S1, "jsonl", env={})
    assert PNG_BASE64 in lines.decode()
    assert BLOB not in lines.decode()
    elsewhere = AppPaths(config=tmp_path / "c", data=tmp_path / "e", runtime=tmp_path / "r")
    async with open_library(elsewhere, clock=SystemClock()) as other:
        copied = await other.import_(lines, "/w/b")
        assert await content_of(other, copied.session) == (Text(text="see"), INLINE)


async def test_an_exported_page_shows_the_image(library: SessionLibrary) -> None:
    page = (await library.export(S1, "html", env={})).decode()
    assert f"data:image/png;base64,{PNG_BASE64}" in page


async def test_exports_name_an_image_whose_file_is_missing(
    library: SessionLibrary, paths: AppPaths
) -> None:
    (stored,) = await to_thread.run_sync(files, paths)
    stored.unlink()
    page = (await library.export(S1, "html", env={})).decode()
    assert (
        f"[Image omitted: the attached file (image/png, {len(PNG)}B) is no longer stored.]" in page
    )
    assert BLOB in (await library.export(S1, "jsonl", env={})).decode()


async def test_a_copy_names_the_same_file(library: SessionLibrary, paths: AppPaths) -> None:
    copy = await library.copy(S1, "/w/b")
    await library.delete(S1)
    assert await content_of(library, copy) == (Text(text="see"), STORED)
    (stored,) = await to_thread.run_sync(files, paths)
    os.utime(stored, (0, OLD_S))
    assert await collected(paths, after_s=1) == 0
    await library.delete(copy)
    assert await collected(paths, after_s=-1) == 0
    assert await collected(paths, after_s=1) == 1
    assert await to_thread.run_sync(files, paths) == []


async def test_a_file_is_kept_for_its_session_named_in_a_page_and_inlined_in_exported_lines(
    library: SessionLibrary, paths: AppPaths, tmp_path: Path
) -> None:
    data = b"%PDF-1.7"
    log = await JsonlStore(paths.sessions, SystemClock()).create(header("s2", cwd="/w/a"))
    assert log.attachments is not None
    kept = await log.attachments.keep(data)
    file = File(name="plan.pdf", mime=kept.mime, blob=kept.blob, size=kept.size)
    message = UserMessage(content=(file,), at_ms=AT_MS)
    await log.append([MessageEntry(id=EntryId("e1"), parent=None, at_ms=AT_MS, message=message)])
    await log.close()
    assert (
        "(file plan.pdf, application/pdf)"
        in (await library.export(SessionId("s2"), "html", env={})).decode()
    )
    lines = await library.export(SessionId("s2"), "jsonl", env={})
    assert kept.blob not in lines.decode()
    elsewhere = AppPaths(config=tmp_path / "c", data=tmp_path / "e", runtime=tmp_path / "r")
    async with open_library(elsewhere, clock=SystemClock()) as other:
        copied = await other.import_(lines, "/w/b")
        inline = File(name="plan.pdf", mime=kept.mime, data=b64encode(data).decode())
        assert await content_of(other, copied.session) == (inline,)
    for stored in await to_thread.run_sync(files, paths):
        os.utime(stored, (0, OLD_S))
    assert await collected(paths, after_s=1) == 0
