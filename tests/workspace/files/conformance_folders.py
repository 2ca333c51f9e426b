"""What every adapter of `Files` promises of folders and of large files; see conformance.py."""

import pytest

from agent_core.kernel.errors import (
    FileMissing,
    FileTooLarge,
    NotAFile,
    NotAFolder,
    PathRefused,
    WorkspaceError,
)
from agent_core.workspace import DirectoryEntry, FileBytes, FileText
from tests.workspace.files.subject import Subject


class Listing:
    """What is in a folder."""

    async def test_a_folder_gives_files_and_folders_with_sizes(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "src/a.txt", b"12345")
        subject.contents.put(subject.root / "src/.hidden", b"")
        subject.contents.put(subject.root / "src/deep/er/b.txt", b"x")
        listed = await subject.files.list(subject.root / "src")
        assert set(listed) == {
            DirectoryEntry(name="a.txt", kind="file", size=5),
            DirectoryEntry(name=".hidden", kind="file", size=0),
            DirectoryEntry(name="deep", kind="folder", size=0),
        }
        assert len(listed) == 3

    async def test_the_root_can_be_listed(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "top.txt", b"x")
        names = {entry.name for entry in await subject.files.list(subject.root)}
        assert "top.txt" in names

    async def test_what_is_written_deleted_and_moved_shows_in_its_folder(self, subject) -> None:
        files, folder = subject.files, subject.root / "dir"
        _ = await files.write(folder / "a.txt", "a", base=None)
        _ = await files.write(folder / "b.txt", "b", base=None)
        await files.delete(folder / "a.txt", base=await files.read(folder / "a.txt"))
        await files.move(folder / "b.txt", folder / "c.txt")
        assert [entry.name for entry in await files.list(folder)] == ["c.txt"]

    async def test_a_folder_stays_when_its_last_file_goes(self, subject: Subject) -> None:
        files, path = subject.files, subject.root / "dir/a.txt"
        subject.contents.put(path, b"x")
        await files.delete(path, base=await files.read(path))
        assert await files.list(path.parent) == ()
        assert (await files.stat(path.parent)).kind == "folder"

    async def test_what_is_no_folder_is_not_listed(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "a.txt", b"x")
        for name in ("a.txt", "a.txt/b"):
            with pytest.raises(NotAFolder, match=r"Not a directory: .*a\.txt"):
                _ = await subject.files.list(subject.root / name)
        with pytest.raises(FileMissing, match=r"File not found: .*none \(ENOENT\)"):
            _ = await subject.files.list(subject.root / "none")
        with pytest.raises(FileMissing):
            _ = await subject.files.list(subject.root / "none/below")

    async def test_outside_is_not_listed(self, subject: Subject) -> None:
        for path in (subject.root.parent, subject.home):
            with pytest.raises(PathRefused):
                _ = await subject.files.list(path)


class Pieces:
    """Large files, and files in pieces."""

    async def test_a_file_of_more_bytes_than_asked_for_is_refused(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"12345")
        read = await subject.files.read(path, limit_bytes=5)
        assert isinstance(read, FileText)
        assert read.text == "12345"
        with pytest.raises(FileTooLarge, match=r"too large to read whole \(5 bytes\)"):
            _ = await subject.files.read(path, limit_bytes=4)

    async def test_pieces_make_the_whole(self, subject: Subject) -> None:
        path = subject.root / "a.bin"
        data = bytes(range(256)) * 40
        subject.contents.put(path, data)
        pieces: list[bytes] = []
        async with subject.files.open(path) as reader:
            assert reader.size == len(data)
            while piece := await reader.read(1000):
                pieces.append(piece)
            assert await reader.read(1000) == b""
        assert [len(piece) for piece in pieces] == [1000] * 10 + [240]
        assert b"".join(pieces) == data

    async def test_an_open_file_stays_the_same_when_its_name_changes_hands(self, subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"old text")
        async with subject.files.open(path) as reader:
            first = await reader.read(4)
            base = await subject.files.read(path)
            assert isinstance(base, FileText)
            _ = await subject.files.write(path, "something else", base=base)
            assert first + await reader.read(100) == b"old text"

    async def test_only_a_file_inside_is_opened(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "sub/a.txt", b"x")
        expected: list[tuple[str, type[WorkspaceError]]] = [
            ("none", FileMissing),
            ("sub", NotAFile),
            ("sub/a.txt/b", NotAFile),
            ("../outside", PathRefused),
        ]
        for name, kind in expected:
            path = subject.root.parent / "outside" if ".." in name else subject.root / name
            with pytest.raises(kind):
                async with subject.files.open(path):
                    pass

    async def test_what_no_editor_has_open_is_not_unsaved(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "sub/a.txt", b"x")
        for name in ("sub", "sub/a.txt", "none"):
            assert await subject.files.buffers(subject.root / name) == ()

    async def test_bytes_have_the_limit_too(self, subject: Subject) -> None:
        path = subject.root / "a.bin"
        subject.contents.put(path, b"\0\xff" * 10)
        assert isinstance(await subject.files.read(path, limit_bytes=20), FileBytes)
        with pytest.raises(FileTooLarge):
            _ = await subject.files.read(path, limit_bytes=19)
