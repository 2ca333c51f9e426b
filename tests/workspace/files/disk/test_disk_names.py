"""Deleting, moving and listing on a real disk: links, attributes, races in which no file may be lost."""

import errno
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest

from agent_core.kernel.errors import (
    AccessRefused,
    FileMissing,
    NotAFile,
    NotAFolder,
    PathRefused,
    StaleText,
)
from agent_core.workspace import DirectoryEntry, FileBytes
from agent_core.workspace.files.disk import delete_and_move
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.disk.path_handle import PathHandle
from agent_core.workspace.files.disk.regular_files import open_regular

NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "ws"
    root.mkdir()
    return root


@pytest.fixture
def files(root: Path) -> DiskFiles:
    return DiskFiles((root,), root.parent / "home")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Listing


async def test_a_link_counts_as_what_it_leads_to(files: DiskFiles, root: Path) -> None:
    (root / "a.txt").write_text("12345")
    (root / "dir").mkdir()
    for name, target in {
        "to_file": "a.txt",
        "to_folder": "dir",
        "to_outside": "/",
        "to_nothing": "none",
        "to_itself": "to_itself",
        "to_device": "/dev/null",
    }.items():
        (root / name).symlink_to(target)
    assert set(await files.list(root)) == {
        DirectoryEntry(name="a.txt", kind="file", size=5),
        DirectoryEntry(name="dir", kind="folder", size=0),
        DirectoryEntry(name="to_file", kind="file", size=5, is_link=True),
        DirectoryEntry(name="to_folder", kind="folder", size=0, is_link=True),
        DirectoryEntry(name="to_outside", kind="folder", size=0, is_link=True),
        DirectoryEntry(name="to_nothing", kind="missing", size=0, is_link=True),
        DirectoryEntry(name="to_itself", kind="missing", size=0, is_link=True),
        DirectoryEntry(name="to_device", kind="other", size=0, is_link=True),
    }


async def test_pipes_and_sockets_are_listed_as_something_else(files, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        folder = os.open(root, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{folder}/sock" if sys.platform == "linux" else "sock")
        finally:
            os.close(folder)
        found = {entry.name: (entry.kind, entry.size) for entry in await files.list(root)}
    assert found == {"fifo": ("other", 0), "sock": ("other", 0)}


async def test_names_that_are_no_utf_8_are_listed_and_can_be_used(files, root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"x")
    (entry,) = await files.list(root)
    assert os.fsencode(entry.name) == b"caf\xe9.txt"
    assert (await files.read(root / entry.name)).sha256


async def test_a_link_in_place_of_a_folder_is_not_listed(files: DiskFiles, root: Path) -> None:
    (root / "dir").symlink_to("/etc")
    with pytest.raises(PathRefused):
        await files.list(root / "dir")


async def test_a_device_is_no_folder(files: DiskFiles, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with anyio.fail_after(5), pytest.raises(NotAFolder):
        await files.list(root / "fifo")


async def test_a_large_folder_is_listed_whole(files: DiskFiles, root: Path) -> None:
    for n in range(3000):
        (root / f"f{n}").touch()
    assert len({entry.name for entry in await files.list(root)}) == 3000


# Pieces


async def test_a_pipe_is_not_opened_and_not_waited_for(files: DiskFiles, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with anyio.fail_after(5), pytest.raises(NotAFile, match="Not a regular file"):
        async with files.open(root / "fifo"):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
async def test_no_descriptor_is_left_on_any_way_out(files: DiskFiles, root: Path) -> None:
    (root / "a.txt").write_text("x" * 100)
    (root / "dir").mkdir()
    os.mkfifo(root / "fifo")
    base = FileBytes(path=root / "a.txt", data=b"", sha256="0" * 64)

    async def use(name: str) -> None:
        with suppress(FileMissing, NotAFile, NotAFolder, StaleText, ZeroDivisionError):
            async with files.open(root / name) as reader:
                _ = await reader.read(1)
                _ = 1 / 0
        with suppress(FileMissing, NotAFolder):
            _ = await files.list(root / name)
        with suppress(FileMissing, NotAFile, StaleText):
            await files.delete(root / name, base=base)
        with suppress(FileMissing, NotAFile, StaleText):
            await files.move(root / name, root / "dir")
        with anyio.CancelScope() as scope:
            with suppress(FileMissing, NotAFile):
                async with files.open(root / name):
                    scope.cancel()
                    await anyio.sleep_forever()

    everything = ("a.txt", "dir", "fifo", "none", "dir/none", "a.txt/b")
    for name in everything:
        await use(name)
    before = psutil.Process().num_fds()
    for name in everything * 3:
        await use(name)
    assert psutil.Process().num_fds() == before


# Deleting


@pytest.fixture
def plain_user() -> Iterator[Path]:
    """A folder of a user without special rights, whom the system refuses things."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="tl-nobody-")))
    special = os.geteuid() == 0
    if special:
        os.chown(root, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield root
    finally:
        if special:
            os.seteuid(0)
        root.chmod(0o700)
        shutil.rmtree(root)


async def test_a_write_protected_file_is_not_deleted(plain_user: Path) -> None:
    files = DiskFiles((plain_user,), plain_user)
    path = plain_user / "a.txt"
    path.write_text("x")
    base = await files.read(path)
    path.chmod(0o444)
    with pytest.raises(AccessRefused, match="write-protected"):
        await files.delete(path, base=base)
    path.chmod(0o600)
    path.parent.chmod(0o500)
    with pytest.raises(AccessRefused, match="Permission denied"):
        await files.delete(path, base=base)
    with pytest.raises(AccessRefused, match="Permission denied"):
        await files.move(path, plain_user / "b.txt")
    assert (names(plain_user), path.read_text()) == (["a.txt"], "x")


async def test_a_folder_that_may_not_be_listed_is_refused_in_words(plain_user: Path) -> None:
    files = DiskFiles((plain_user,), plain_user)
    (plain_user / "dir").mkdir(mode=0o300)
    with pytest.raises(AccessRefused, match=r"Permission denied: .*dir \(EACCES\)"):
        await files.list(plain_user / "dir")


async def test_a_link_put_in_place_of_a_file_is_not_deleted(files, root: Path) -> None:
    secret = root.parent / "secret.txt"
    secret.write_text("x")
    (root / "a.txt").write_text("x")
    base = await files.read(root / "a.txt")
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(secret)
    with pytest.raises(PathRefused):
        await files.delete(root / "a.txt", base=base)
    with pytest.raises(PathRefused):
        await files.move(root / "a.txt", root / "b.txt")
    assert (names(root), secret.read_text()) == (["a.txt"], "x")


async def test_of_hard_links_one_name_goes(files: DiskFiles, root: Path) -> None:
    (root / "a.txt").write_text("x")
    os.link(root / "a.txt", root / "b.txt")
    await files.delete(root / "a.txt", base=await files.read(root / "a.txt"))
    assert (names(root), (root / "b.txt").read_text()) == (["b.txt"], "x")


def at_the_last_look(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    """Let somebody act when a file to be deleted has been put aside and is looked at for the last time."""

    def open_then_act(place: PathHandle) -> object:
        if place.name != place.path.name:
            step()
        return open_regular(place)

    monkeypatch.setattr(f"{delete_and_move.__name__}.open_regular", open_then_act)


async def test_what_is_saved_while_a_file_is_deleted_is_kept(files, root, monkeypatch) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await files.read(path)
    at_the_last_look(monkeypatch, lambda: path.write_text("saved meanwhile") and None)
    await files.delete(path, base=base)
    assert (names(root), path.read_text()) == (["a.txt"], "saved meanwhile")


async def test_what_is_written_into_an_open_file_at_the_last_moment_is_kept(
    files, root, monkeypatch
) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await files.read(path)
    with path.open("a") as writing:

        def write() -> None:
            writing.write(" and new")
            writing.flush()

        at_the_last_look(monkeypatch, write)
        with pytest.raises(StaleText, match="it was not deleted"):
            await files.delete(path, base=base)
    assert (names(root), path.read_text()) == (["a.txt"], "old and new")


async def test_when_both_happen_both_texts_are_kept(files, root, monkeypatch) -> None:
    path = root / "a.txt"
    path.write_text("old")
    base = await files.read(path)
    with path.open("a") as writing:

        def write() -> None:
            writing.write(" and new")
            writing.flush()
            path.write_text("saved meanwhile")

        at_the_last_look(monkeypatch, write)
        with pytest.raises(StaleText, match="what it had before is in") as told:
            await files.delete(path, base=base)
    other = next(name for name in names(root) if name != "a.txt")
    assert (path.read_text(), (root / other).read_text()) == ("saved meanwhile", "old and new")
    assert str(root / other) in str(told.value)


# Moving


async def test_a_moved_file_is_the_same_file(files: DiskFiles, root: Path) -> None:
    path = root / "run.sh"
    path.write_text("x")
    path.chmod(0o751)
    before = path.stat()
    await files.move(path, root / "sub/run")
    after = (root / "sub/run").stat()
    kept = (stat.S_IMODE(after.st_mode), after.st_uid, after.st_mtime_ns, after.st_ino)
    assert kept == (0o751, before.st_uid, before.st_mtime_ns, before.st_ino)
    assert names(root) == ["sub"]


@pytest.fixture(params=["in one step", "over a claim"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to rename without overwriting: the system's, and the one for systems without it."""
    if request.param == "over a claim":
        monkeypatch.setattr(delete_and_move, "_rename_exclusively", lambda *_: errno.ENOSYS)


@pytest.mark.usefixtures("way")
async def test_a_name_taken_at_the_last_moment_is_not_overwritten(files, root, monkeypatch) -> None:
    (root / "a.txt").write_text("a")
    plain = delete_and_move.check_movable

    def check_then_take(place: PathHandle) -> None:
        plain(place)
        (root / "b.txt").write_text("b")

    monkeypatch.setattr(delete_and_move, "check_movable", check_then_take)
    with pytest.raises(StaleText, match="exists already"):
        await files.move(root / "a.txt", root / "b.txt")
    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("a", "b")


@pytest.mark.usefixtures("way")
async def test_either_way_a_file_arrives_whole(files: DiskFiles, root: Path) -> None:
    (root / "a.txt").write_text("a")
    await files.move(root / "a.txt", root / "sub/b.txt")
    assert (names(root), (root / "sub/b.txt").read_text()) == (["sub"], "a")


async def test_a_claim_that_came_to_nothing_is_taken_back(files, root, monkeypatch) -> None:
    (root / "a.txt").write_text("a")
    monkeypatch.setattr(delete_and_move, "_rename_exclusively", lambda *_: errno.ENOSYS)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(AccessRefused, match="on another file system"):
        await files.move(root / "a.txt", root / "b.txt")
    assert names(root) == ["a.txt"]


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="no second file system")  # noqa: S108 - only looked at
async def test_onto_another_file_system_is_told(tmp_path: Path, root: Path) -> None:
    other = Path("/dev/shm") / f"tiller-{os.getpid()}"  # noqa: S108 - a file system of its own
    other.mkdir()
    try:
        files = DiskFiles((root, other), tmp_path)
        (root / "a.txt").write_text("a")
        with pytest.raises(AccessRefused, match=r"on another file system \(EXDEV\)"):
            await files.move(root / "a.txt", other / "a.txt")
        assert (names(root), names(other)) == (["a.txt"], [])
    finally:
        for left in other.iterdir():
            left.unlink()
        other.rmdir()
