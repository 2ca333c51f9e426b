"""Contents in a folder: private, whole, checked when they are read, and bounded."""

import stat
from pathlib import Path

import pytest

from agent_core.changes.adapters.blob_stores import FolderBlobStore
from agent_core.kernel.errors import StorageError
from agent_core.workspace.files.text import sha256_of
from tests.changes.adapters.conformance import ContentsConformance

KEPT = b"what a file held"


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


class TestFolderContents(ContentsConformance):
    @pytest.fixture
    def contents(self, tmp_path: Path) -> FolderBlobStore:
        return FolderBlobStore(tmp_path / "blobs" / "s1")


async def test_only_the_user_can_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "blobs" / "s1"
    key = await FolderBlobStore(folder).put(KEPT)
    path = folder / key[:2] / key
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent, folder, folder.parent)]
    assert modes == [0o600, 0o700, 0o700, 0o700]


async def test_nothing_is_made_before_something_is_kept(tmp_path: Path) -> None:
    contents = FolderBlobStore(tmp_path / "blobs" / "s1")
    assert await contents.get("0" * 64) is None
    assert files_in(tmp_path) == []


async def test_the_same_bytes_are_kept_once_also_by_another_process(tmp_path: Path) -> None:
    for _ in range(2):
        await FolderBlobStore(tmp_path).put(KEPT)
    assert [path.name for path in files_in(tmp_path)] == [sha256_of(KEPT)]


@pytest.mark.parametrize("damage", [b"", b"what a file held, longer", b"What a file held"])
async def test_a_damaged_content_is_none_and_is_written_anew(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    contents = FolderBlobStore(tmp_path)
    key = await contents.put(KEPT)
    (tmp_path / key[:2] / key).write_bytes(damage)
    assert await contents.get(key) is None
    assert "damaged" in caplog.text
    assert await contents.put(KEPT) == key
    assert await contents.get(key) == KEPT


async def test_a_link_in_the_place_of_a_content_is_not_followed(tmp_path: Path) -> None:
    key = sha256_of(KEPT)
    outside = tmp_path / "outside"
    outside.write_bytes(KEPT)
    (tmp_path / "blobs" / key[:2]).mkdir(parents=True)
    (tmp_path / "blobs" / key[:2] / key).symlink_to(outside)
    assert await FolderBlobStore(tmp_path / "blobs").get(key) is None


async def test_a_session_that_keeps_too_much_is_told_and_keeps_what_it_has(tmp_path: Path) -> None:
    contents = FolderBlobStore(tmp_path, limit_bytes=100)
    key = await contents.put(b"x" * 90)
    with pytest.raises(StorageError, match="without the way back"):
        await contents.put(b"y" * 90)
    again = FolderBlobStore(tmp_path, limit_bytes=100)
    with pytest.raises(StorageError, match="90 bytes"):
        await again.put(b"y" * 90)
    assert await again.put(b"x" * 90) == key
    assert len(files_in(tmp_path)) == 1


async def test_a_disk_that_refuses_is_an_error_that_says_which_folder(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file in the way")
    with pytest.raises(StorageError, match="blobs"):
        await FolderBlobStore(tmp_path / "blobs" / "s1").put(KEPT)
