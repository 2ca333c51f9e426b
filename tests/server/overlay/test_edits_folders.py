"""Folders and large files while editors are attached: what is only in an editor shows, and programs' blind spots are named."""

from pathlib import Path

import anyio
import pytest
from typing_extensions import override

from agent_core.kernel.errors import FileMissing, FileTooLarge, PathRefused, StaleText
from agent_core.workspace import READ_LIMIT_BYTES, DirectoryEntry, FileBytes, FileStat, FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.clients.editors import OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11
from tiller_server.lsp.overlay.workspace_files import OverlayFiles


async def _names(place: Place, folder: Path) -> list[tuple[str, str]]:
    await settled(place.window)
    return sorted((entry.name, entry.kind) for entry in await place.files.list(folder))


async def test_a_file_that_is_only_in_the_editor_is_in_its_folder(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.window.desk.open((place.root / "new.py").as_uri(), "héllo\n")
    await settled(place.window)
    assert set(await place.files.list(place.root)) == {
        DirectoryEntry(name="a.py", kind="file", size=len(OLD)),
        DirectoryEntry(name="new.py", kind="file", size=7),
    }


async def test_folders_that_are_only_in_the_editor_can_be_gone_through(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.window.desk.open((place.root / "made/up/new.py").as_uri(), "x")
    assert await _names(place, place.root) == [("a.py", "file"), ("made", "folder")]
    assert await _names(place, place.root / "made") == [("up", "folder")]
    assert await _names(place, place.root / "made/up") == [("new.py", "file")]
    folder = place.root / "made"
    assert await place.files.stat(folder) == FileStat(
        path=folder, kind="folder", size=0, mtime_ns=0
    )
    with pytest.raises(FileMissing):
        _ = await place.files.list(place.root / "made/down")
    with pytest.raises(FileMissing):
        _ = await place.files.stat(place.root / "made/down")


async def test_documents_of_elsewhere_are_in_no_folder(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.window.desk.open((place.root.parent / "secret.py").as_uri(), "x")
    place.window.desk.open("untitled:Untitled-1", "x")
    place.window.desk.open(f"{place.root.as_uri()}-evil/x.py", "x")
    assert await _names(place, place.root) == [("a.py", "file")]
    with pytest.raises(PathRefused):
        _ = await place.files.list(place.root.parent)
    assert await place.files.buffers(place.root) == ()


async def test_an_open_document_is_read_whatever_its_size(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n" * 100)
    await settled(place.window)
    read = await place.files.read(place.path, limit_bytes=10)
    assert isinstance(read, FileText)
    assert (len(read.text), read.source) == (600, "buffer")
    (place.root / "b.py").write_text("x" * 11)
    with pytest.raises(FileTooLarge):
        _ = await place.files.read(place.root / "b.py", limit_bytes=10)


async def test_an_open_document_comes_in_pieces_as_it_is_in_the_editor(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="grün\n")
    await settled(place.window)
    async with place.files.open(place.path) as reader:
        assert (reader.size, await reader.read(3), await reader.read(9)) == (
            6,
            b"gr\xc3",
            b"\xbcn\n",
        )
    async with place.files.open(place.path) as reader:
        assert await reader.read(0) == b""
        assert await reader.read(100) == "grün\n".encode()


async def test_an_outdated_document_comes_in_pieces_from_the_disk(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    _ = await place.read()
    place.path.write_text("formatted\n")
    async with place.files.open(place.path) as reader:
        assert await reader.read(100) == b"formatted\n"


async def test_what_programs_do_not_see_is_named(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    for name in ("clean.py", "sub/dirty.py"):
        path = place.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("saved\n")
        place.window.desk.open_file(path)
    new = place.root / "sub/new.py"
    place.window.desk.open(new.as_uri(), "new\n")
    place.window.desk.change((place.root / "sub/dirty.py").as_uri(), "dirty\n")
    await settled(place.window)
    found = await place.files.buffers(place.root)
    assert {text.path: text.text for text in found} == {
        place.path: "typed\n",
        place.root / "sub/dirty.py": "dirty\n",
        new: "new\n",
    }
    for text in found:
        assert text == await place.files.read(text.path)
    assert [one.path for one in await place.files.buffers(new)] == [new]
    assert await place.files.buffers(place.root / "clean.py") == ()
    place.window.desk.save(place.uri)
    below = {text.path for text in await place.files.buffers(place.root)}
    assert below == {place.root / "sub/dirty.py", new}


async def test_edits_of_ours_that_are_unsaved_are_named_too(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(HELIX))
    written = await place.write("ours\n")
    assert written.saved is False
    assert [one.text for one in await place.files.buffers(place.root)] == ["ours\n"]


async def test_a_document_older_than_the_disk_hides_nothing(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    _ = await place.read()
    place.path.write_text("formatted\n")
    assert await place.files.buffers(place.root) == ()


async def test_a_document_opened_through_a_link_is_named_by_its_real_path(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.window.desk.close(place.uri)
    link = place.root / "link.py"
    link.symlink_to(place.path)
    place.window.desk.open(link.as_uri(), "typed\n")
    await settled(place.window)
    with anyio.fail_after(5):
        while place.window.mirror.get(place.uri) is not None:
            await anyio.lowlevel.checkpoint()
    found = await place.files.buffers(place.root)
    assert [(one.path, one.text, one.sha256) for one in found] == [
        (place.path, "typed\n", hash_of("typed\n"))
    ]


async def test_a_document_whose_name_is_a_folder_on_the_disk_is_passed_over(tmp_path) -> None:
    place = Place.make(tmp_path, Window())
    (place.root / "dir").mkdir()
    place.window.desk.open((place.root / "dir").as_uri(), "x")
    await settled(place.window)
    assert await place.files.buffers(place.root) == ()
    assert await _names(place, place.root) == [("a.py", "file"), ("dir", "folder")]


class _Counting(DiskFiles):
    reads = 0

    @override
    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        self.reads += 1
        return await super().read(path, limit_bytes=limit_bytes)


async def test_without_open_documents_nothing_is_looked_up(tmp_path: Path) -> None:
    disk = _Counting((tmp_path,), tmp_path)
    files = OverlayFiles(disk)
    files.attach(Window().editor)
    assert await files.buffers(tmp_path) == ()
    assert disk.reads == 0


async def test_the_disk_below_is_watched(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    async with place.files.watch(place.path) as changes:
        place.path.write_text("formatted\n")
        with anyio.fail_after(5):
            assert await changes.next() == {place.path}


async def test_a_link_that_was_just_read_through_and_then_changed_is_not_written_through(
    tmp_path: Path,
) -> None:
    """Reading may remember for a moment where a link leads; writing must not."""
    place = Place.make(tmp_path, Window())
    place.window.desk.close(place.uri)
    link, secret = place.root / "link.py", place.root.parent / "secret.py"
    secret.write_text("secret\n")
    link.symlink_to(place.path)
    place.window.desk.open(link.as_uri(), "typed\n")
    await settled(place.window)
    read = await place.files.read(place.path)
    assert isinstance(read, FileText)
    assert read.text == "typed\n"
    link.unlink()
    link.symlink_to(secret)
    with pytest.raises(StaleText):
        _ = await place.files.write(place.path, "edited\n", base=read)
    assert place.window.edits_asked() == []
    assert (place.disk, secret.read_text()) == (OLD, "secret\n")
