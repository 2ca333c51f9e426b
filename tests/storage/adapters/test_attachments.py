"""The folder of attachments: whole or not at all, once, within limits, removed when no session names them."""

import os
import stat
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import pytest

from agent_core.kernel.errors import (
    AttachmentRefused,
    AttachmentTooLarge,
    AttachmentUntyped,
    StorageUnavailable,
)
from agent_core.storage.adapters.attachments import (
    KEPT_S,
    AttachmentFolder,
    FolderAttachments,
    blobs_in,
)
from agent_core.storage.attachments import AttachmentLimits
from agent_core.storage.port import Attachment
from tests.support.provider.images import PNG

NOW_S = 2_000_000_000.0
SMALL = AttachmentLimits(image_bytes=100, file_bytes=200, session_bytes=250)


def blob_of(data: bytes) -> str:
    """Return the name of bytes."""
    return sha256(data).hexdigest()


def files(folder: Path) -> list[Path]:
    """Return all files, partial ones too."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def pieces(data: bytes, size: int = 7) -> AsyncGenerator[bytes]:
    """Yield bytes in pieces."""
    for first in range(0, len(data), size):
        yield data[first : first + size]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where attachments are stored; it does not exist yet."""
    return tmp_path / "sessions-attachments"


async def test_bytes_come_in_pieces_and_are_stored_once(folder: Path) -> None:
    store = AttachmentFolder(folder)
    stored = Attachment(blob=blob_of(PNG), mime="image/png", size=len(PNG))
    assert await store.receive(blob_of(PNG), pieces(PNG)) == (stored, True)
    (path,) = files(folder)
    before = path.stat()
    assert await store.receive(blob_of(PNG), pieces(PNG)) == (stored, False)
    assert files(folder) == [path]
    assert path.stat().st_ino == before.st_ino
    assert await store.read(blob_of(PNG)) == (stored, PNG)
    assert stat.S_IMODE(before.st_mode) == 0o600
    assert {stat.S_IMODE(one.stat().st_mode) for one in (folder, path.parent)} == {0o700}


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8L", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"%PDF-1.4\n\0", "application/pdf"),
        ("grüße".encode(), "text/plain"),
        ("grüße".encode()[:3], None),
        (("x" * 40 + "ü").encode()[:-1], None),
        (b"x" * 40 + b"\0", None),
        (b"", None),
        (b"BM\0\0", None),
    ],
)  # fmt: skip
async def test_the_type_is_that_of_the_bytes(folder: Path, data: bytes, mime: str | None) -> None:
    store = AttachmentFolder(folder)
    if mime is None:
        with pytest.raises(AttachmentUntyped):
            await store.receive(blob_of(data), pieces(data))
        assert files(folder) == []
    else:
        assert (await store.receive(blob_of(data), pieces(data)))[0].mime == mime


@pytest.mark.parametrize("data", [PNG[:8] + bytes(93), b"x" * 201])
async def test_the_byte_above_the_limit_ends_the_upload(folder: Path, data: bytes) -> None:
    sent = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal sent
        async for piece in pieces(data):
            yield piece
        while True:
            sent += 1
            yield bytes(1000)

    with pytest.raises(AttachmentTooLarge):
        await AttachmentFolder(folder, limits=SMALL).receive("0" * 64, endless())
    assert sent == 0
    assert files(folder) == []
    fits = data[:-1]
    _ = await AttachmentFolder(folder, limits=SMALL).receive(blob_of(fits), pieces(fits))


@pytest.mark.parametrize(
    "blob", ["", "x" * 64, "0" * 63, "A" * 64, "../../" + "0" * 58, "0" * 64 + "\n", "０" * 64]
)
async def test_a_name_that_is_no_hash_reaches_no_file(folder: Path, blob: str) -> None:
    store = AttachmentFolder(folder)
    with pytest.raises(AttachmentRefused, match="64 lower-case hexadecimal digits"):
        await store.receive(blob, pieces(PNG))
    assert await store.read(blob) is None
    assert files(folder.parent) == []


async def test_other_bytes_than_the_name_leave_nothing(folder: Path) -> None:
    with pytest.raises(AttachmentRefused, match="do not have the SHA-256"):
        await AttachmentFolder(folder).receive("0" * 64, pieces(PNG))
    assert files(folder) == []


async def test_damaged_bytes_are_not_used_and_are_stored_again(folder: Path) -> None:
    store = AttachmentFolder(folder)
    _ = await store.receive(blob_of(PNG), pieces(PNG))
    (path,) = files(folder)
    _ = path.write_bytes(PNG[:-1] + b"x")
    assert await store.read(blob_of(PNG)) is None
    assert (await store.receive(blob_of(PNG), pieces(PNG)))[1]
    found = await store.read(blob_of(PNG))
    assert found is not None
    assert found[1] == PNG


async def test_a_link_in_the_place_of_an_attachment_is_not_followed(
    folder: Path, tmp_path: Path
) -> None:
    store = AttachmentFolder(folder)
    secret = tmp_path / "secret"
    _ = secret.write_bytes(PNG)
    path = folder / blob_of(PNG)[:2] / blob_of(PNG)
    path.parent.mkdir(parents=True)
    path.symlink_to(secret)
    assert await store.read(blob_of(PNG)) is None


async def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    _ = blocked.write_text("no folder")
    with pytest.raises(StorageUnavailable, match="then try again"):
        await AttachmentFolder(blocked / "below").receive(blob_of(PNG), pieces(PNG))


async def test_a_session_has_a_limit_and_counts_what_its_file_names(
    folder: Path, tmp_path: Path
) -> None:
    session = tmp_path / "s.jsonl"
    store = AttachmentFolder(folder, limits=SMALL)
    first, second = b"a" * 150, b"b" * 150
    a = await FolderAttachments(store, session).keep(first)
    _ = session.write_text(f'{{"type":"image","blob":"{a.blob}","size":{a.size}}}\n')
    opened = FolderAttachments(store, session)
    assert await opened.keep(first) == a
    with pytest.raises(AttachmentTooLarge, match="start a new session"):
        await opened.keep(second)
    b = await FolderAttachments(store, tmp_path / "other.jsonl").keep(second)
    with pytest.raises(AttachmentTooLarge, match="start a new session"):
        await opened.claim(b.blob)
    assert await opened.claim(a.blob) == a
    with pytest.raises(AttachmentRefused, match="send its bytes first"):
        await opened.claim("0" * 64)


@pytest.mark.parametrize("before", [0, (1 << 20) - 300, (1 << 20) - 80, (1 << 20) - 7, 1 << 20])
def test_references_are_found_wherever_they_lie(tmp_path: Path, before: int) -> None:
    session = tmp_path / "s.jsonl"
    blob = blob_of(PNG)
    _ = session.write_text("x" * before + f'{{"blob": "{blob}", "size": 123456}}' + "y" * 400)
    assert blobs_in(session) == {blob: 123456}
    quoted = '{"text":"{\\"blob\\":\\"' + blob + '\\",\\"size\\":1}"}'
    _ = session.write_text(quoted)
    assert blobs_in(session) == {}


def test_only_old_attachments_that_no_session_names_are_removed(
    folder: Path, tmp_path: Path
) -> None:
    store = AttachmentFolder(folder)
    named, old, fresh = (store.put_now(text) for text in (b"named", b"old", b"fresh"))
    paths = {path.name: path for path in files(folder)}
    for one in (named, old):
        os.utime(paths[one.blob], (0, NOW_S - KEPT_S - 1))
    os.utime(paths[fresh.blob], (0, NOW_S - KEPT_S + 1))
    session = tmp_path / "s.jsonl"
    _ = session.write_text(f'{{"blob":"{named.blob}","size":5}}')
    for name, age_s in (("a", 100_000), ("b", 10)):
        partial = folder / f".{name}.tmp"
        _ = partial.write_bytes(b"part")
        os.utime(partial, (0, NOW_S - age_s))
    assert store.collect([session, tmp_path / "gone.jsonl"], now_s=NOW_S) == 1
    assert {path.name for path in files(folder)} == {named.blob, fresh.blob, ".b.tmp"}


def test_storing_again_keeps_an_old_attachment(folder: Path) -> None:
    store = AttachmentFolder(folder)
    stored = store.put_now(b"again")
    (path,) = files(folder)
    os.utime(path, (0, 0))
    _ = store.put_now(b"again")
    assert store.collect([], now_s=path.stat().st_mtime + 1) == 0
    assert store.read_now(stored.blob) is not None
