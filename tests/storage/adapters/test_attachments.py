"""Attachments in the folder beside the sessions: files for the user alone, whole or not there."""

import os
import stat
from pathlib import Path

import pytest
from typing_extensions import override

from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.attachments import Attachments, blobs_in
from agent_core.storage.attachments import AttachmentLimits
from tests.storage.attachment_conformance import (
    NOW_S,
    AttachmentConformance,
    AttachmentPlace,
    blob_of,
    pieces,
)
from tests.support.provider.images import PNG


def files(folder: Path) -> list[Path]:
    """Return all files, partial ones too."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


class FolderPlace(AttachmentPlace):
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @override
    def open(self, *, limits: AttachmentLimits | None = None) -> Attachments:
        return Attachments(self.folder, limits=limits)

    @override
    def stored(self) -> list[str]:
        return sorted(path.name for path in files(self.folder))

    @override
    def damage(self, blob: str, data: bytes) -> None:
        _ = (self.folder / blob[:2] / blob).write_bytes(data)

    @override
    def age(self, blob: str, at_s: float) -> None:
        os.utime(self.folder / blob[:2] / blob, (0, at_s))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where attachments are stored; it does not exist yet."""
    return tmp_path / "sessions-attachments"


class TestFolder(AttachmentConformance):
    @pytest.fixture
    def place(self, folder: Path) -> FolderPlace:
        return FolderPlace(folder)


async def test_files_are_for_the_user_alone_and_written_once(folder: Path) -> None:
    store = Attachments(folder)
    _ = await store.receive(blob_of(PNG), pieces(PNG))
    (path,) = files(folder)
    before = path.stat()
    _ = await store.receive(blob_of(PNG), pieces(PNG))
    assert files(folder) == [path]
    assert path.stat().st_ino == before.st_ino
    assert stat.S_IMODE(before.st_mode) == 0o600
    assert {stat.S_IMODE(one.stat().st_mode) for one in (folder, path.parent)} == {0o700}


def test_parts_of_killed_writers_are_removed_after_a_day(folder: Path) -> None:
    folder.mkdir()
    for name, age_s in (("a", 100_000), ("b", 10)):
        partial = folder / f".{name}.tmp"
        _ = partial.write_bytes(b"part")
        os.utime(partial, (0, NOW_S - age_s))
    assert Attachments(folder).collect([], now_s=NOW_S) == 0
    assert [path.name for path in files(folder)] == [".b.tmp"]


async def test_a_link_in_the_place_of_an_attachment_is_not_followed(
    folder: Path, tmp_path: Path
) -> None:
    store = Attachments(folder)
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
        await Attachments(blocked / "below").receive(blob_of(PNG), pieces(PNG))


@pytest.mark.parametrize("before", [0, (1 << 20) - 300, (1 << 20) - 80, (1 << 20) - 7, 1 << 20])
def test_references_are_found_wherever_they_lie(tmp_path: Path, before: int) -> None:
    session = tmp_path / "s.jsonl"
    blob = blob_of(PNG)
    _ = session.write_text("x" * before + f'{{"blob": "{blob}", "size": 123456}}' + "y" * 400)
    assert blobs_in(session) == {blob: 123456}
    quoted = '{"text":"{\\"blob\\":\\"' + blob + '\\",\\"size\\":1}"}'
    _ = session.write_text(quoted)
    assert blobs_in(session) == {}
