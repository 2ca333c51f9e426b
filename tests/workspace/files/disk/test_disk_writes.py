"""What a file on disk holds, and what stands beside it, after each way in which a write can go."""

import codecs
import errno
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from agent_core.kernel.errors import (
    AccessRefused,
    FileMissing,
    FileTooLarge,
    NotAFile,
    PathRefused,
    StaleText,
)
from agent_core.workspace import FileText
from agent_core.workspace.files.disk import regular_files
from agent_core.workspace.files.disk.gate.folder_gate import best_gate
from agent_core.workspace.files.disk.path_handle import PathHandle, place_made, place_of
from agent_core.workspace.files.disk.regular_files import (
    PIECE_CHARS,
    check_unchanged,
    create,
    open_regular,
    read_regular,
    replace,
)

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "ws"
    (root / "sub").mkdir(parents=True)
    (root / "sub/a.txt").write_bytes(OLD)
    return root


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    before = psutil.Process().num_fds()
    yield
    assert psutil.Process().num_fds() == before


@contextmanager
def at(root: Path, name: str = "sub/a.txt") -> Generator[PathHandle]:
    with place_of(root / name, root=root, gate=best_gate()) as place:
        yield place


def base(data: bytes = OLD, *, bom: bool = False, encoding: str = "utf-8") -> FileText:
    return FileText(
        path=Path("/any"),
        text=data.decode(encoding),
        source="disk",
        sha256=sha256((codecs.BOM_UTF8 if bom else b"") + data).hexdigest(),
        encoding=encoding,
        bom=bom,
    )


def found(root: Path) -> dict[str, bytes]:
    """The files of the folder, temporary ones too."""
    return {one.name: one.read_bytes() for one in (root / "sub").iterdir() if one.is_file()}


def fail(code: int) -> Callable[..., NoReturn]:
    def raises(*_words: object, **_more: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return raises


# Reading


def test_as_much_is_read_as_the_limit_allows(root: Path) -> None:
    with at(root) as place:
        assert read_regular(place, limit_bytes=4) == OLD
        with pytest.raises(FileTooLarge, match=r"4 bytes"):
            _ = read_regular(place, limit_bytes=3)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda _: None, FileMissing),
        (lambda path: path.mkdir(), NotAFile),
        (os.mkfifo, NotAFile),
        (lambda path: path.symlink_to("a.txt"), PathRefused),
    ],
    ids=["nothing", "a folder", "a pipe", "a link"],
)
def test_only_a_regular_file_is_opened(
    root: Path, make: Callable[[Path], object], error: type[Exception]
) -> None:
    _ = make(root / "sub/b")
    with at(root, "sub/b") as place, pytest.raises(error):
        _ = open_regular(place)


def test_what_became_a_pipe_between_look_and_use_is_not_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def swapped(name: str, flags: int, **more: int) -> int:
        (root / "sub/a.txt").unlink()
        os.mkfifo(root / "sub/a.txt")
        return real(name, flags, **more)

    with at(root) as place:
        monkeypatch.setattr(os, "open", swapped)
        with pytest.raises(NotAFile, match="a device, a pipe or a socket"):
            _ = open_regular(place)
        monkeypatch.undo()


# Creating


def test_a_new_file_is_whole_obeys_the_umask_and_is_got_to_the_disk(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(stat.S_IFMT(os.fstat(one).st_mode)))
    before = os.umask(0o027)
    try:
        with at(root, "sub/b") as place:
            create(place, NEW)
    finally:
        os.umask(before)
    assert found(root) == {"a.txt": OLD, "b": NEW}
    assert stat.S_IMODE((root / "sub/b").stat().st_mode) == 0o640
    assert synced == [stat.S_IFREG, stat.S_IFDIR]


def test_a_folder_that_cannot_be_synced_is_no_failure(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def picky(one: int) -> None:
        if stat.S_ISDIR(os.fstat(one).st_mode):
            raise OSError(errno.EINVAL, "no folders")
        real(one)

    monkeypatch.setattr(os, "fsync", picky)
    with at(root, "sub/b") as place:
        create(place, NEW)
    assert found(root)["b"] == NEW


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are for Linux")
def test_a_process_that_is_killed_while_it_writes_leaves_nothing_behind(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, bytes]] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(found(root)))
    with at(root, "sub/b") as place:
        create(place, NEW)
    with at(root) as place:
        _ = replace(place, NEW, base=base())
    # Before each change, and at the sync of the folder after it.
    assert seen == [
        {"a.txt": OLD},
        {"a.txt": OLD, "b": NEW},
        {"a.txt": OLD, "b": NEW},
        {"a.txt": NEW, "b": NEW},
    ]


def test_nothing_is_created_over_something(root: Path) -> None:
    with at(root) as place, pytest.raises(StaleText, match="exists already: nothing was written"):
        create(place, NEW)
    (root / "sub/folder").mkdir()
    with at(root, "sub/folder") as place, pytest.raises(NotAFile, match="Is a directory"):
        create(place, NEW)
    assert found(root) == {"a.txt": OLD}


def test_a_name_that_was_taken_meanwhile_is_not_taken_away(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PathHandle, "look", lambda _self: None)
    with at(root) as place, pytest.raises(StaleText, match="exists already"):
        create(place, NEW)
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    with at(root) as place, pytest.raises(StaleText, match="exists already"):
        create(place, NEW)
    assert found(root) == {"a.txt": OLD}


def test_without_hard_links_a_file_is_created_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    with at(root, "sub/b") as place:
        create(place, NEW)
    assert found(root) == {"a.txt": OLD, "b": NEW}
    monkeypatch.setattr(os, "replace", fail(errno.EIO))
    with at(root, "sub/c") as place, pytest.raises(OSError, match="Input/output"):
        create(place, NEW)
    assert found(root) == {"a.txt": OLD, "b": NEW}


def test_a_write_that_fails_leaves_nothing_beside(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fail(errno.ENOSPC))
    with at(root, "sub/b") as place, pytest.raises(OSError, match="No space"):
        create(place, NEW)
    with at(root) as place, pytest.raises(OSError, match="No space"):
        _ = replace(place, NEW, base=base())
    assert found(root) == {"a.txt": OLD}


# Replacing


def test_what_is_replaced_keeps_its_mode_and_group_and_what_was_there_is_given(root: Path) -> None:
    path = root / "sub/a.txt"
    path.chmod(0o646)
    if os.geteuid() == 0:
        os.chown(path, -1, 4321)
    before = path.stat()
    with at(root) as place:
        given = replace(place, NEW, base=base())
    after = path.stat()
    assert found(root) == {"a.txt": NEW}
    assert (given.st_ino, after.st_mode, after.st_gid) == (before.st_ino, before.st_mode, before.st_gid)  # fmt: skip
    assert after.st_ino != before.st_ino


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes are for Linux here")
def test_extended_attributes_stay_but_for_the_rights_of_a_program(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, bytes] = {}
    monkeypatch.setattr(os, "listxattr", lambda _one: ["user.note", "security.capability", "bad"])

    def get(_one: int, name: str) -> bytes:
        if name == "bad":
            raise OSError(errno.EPERM, "no")
        return name.encode()

    monkeypatch.setattr(os, "getxattr", get)
    monkeypatch.setattr(os, "setxattr", lambda _one, name, value: kept.update({name: value}))
    with at(root) as place:
        _ = replace(place, NEW, base=base())
    assert kept == {"user.note": b"user.note"}


@pytest.mark.parametrize(
    "there",
    [b"", b"ol", b"oLd\n", b"old\nx", b"\xef\xbb\xbfold\n"],
    ids=["empty", "shorter", "other", "longer", "mark"],
)
def test_what_somebody_else_wrote_is_not_replaced(root: Path, there: bytes) -> None:
    (root / "sub/a.txt").write_bytes(there)
    with at(root) as place, pytest.raises(StaleText, match="changed since it was read"):
        _ = replace(place, NEW, base=base())
    assert found(root) == {"a.txt": there}
    (root / "sub/a.txt").unlink()
    with at(root) as place, pytest.raises(StaleText, match="was deleted since it was read"):
        _ = replace(place, NEW, base=base())
    assert found(root) == {}


@pytest.mark.parametrize(
    ("there", "read"),
    [
        (codecs.BOM_UTF8 + OLD, base(bom=True)),
        ("\xe4\n".encode("latin-1"), base("\xe4\n".encode("latin-1"), encoding="latin-1")),
        (b"\xc3\xa4" * PIECE_CHARS + b"x", base(b"\xc3\xa4" * PIECE_CHARS + b"x")),
        (b"", base(b"")),
    ],
    ids=["mark", "other encoding", "long", "empty"],
)
def test_a_text_is_known_again_however_it_is_written(
    root: Path, there: bytes, read: FileText
) -> None:
    (root / "sub/a.txt").write_bytes(there)
    with at(root) as place:
        _ = replace(place, NEW, base=read)
    assert found(root) == {"a.txt": NEW}


def test_a_text_in_utf8_is_known_without_reading_it_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular_files, "sha256_of", lambda _data: "none")
    with at(root) as place:
        _ = replace(place, NEW, base=base())
    (root / "sub/a.txt").write_bytes(codecs.BOM_UTF8 + OLD)
    with at(root) as place:
        _ = replace(place, NEW, base=base(bom=True))
    assert found(root) == {"a.txt": NEW}


def test_a_text_that_cannot_be_read_again_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular_files, "open_regular", fail(errno.EIO))
    with at(root) as place, pytest.raises(OSError, match="Input/output"):
        _ = replace(place, NEW, base=base())
    assert found(root) == {"a.txt": OLD}


def test_a_missing_mark_is_a_change(root: Path) -> None:
    with at(root) as place, pytest.raises(StaleText, match="changed"):
        _ = replace(place, NEW, base=base(bom=True))


def test_a_replacement_that_fails_leaves_the_old_text_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", fail(errno.EIO))
    with at(root) as place, pytest.raises(OSError, match="Input/output"):
        _ = replace(place, NEW, base=base())
    assert found(root) == {"a.txt": OLD}


def test_a_write_protected_file_is_refused_whoever_asks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def access(name: str, mode: int, *, dir_fd: int, effective_ids: bool) -> bool:
        assert (name, mode, os.fstat(dir_fd).st_ino) == ("a.txt", os.W_OK, (root / "sub").stat().st_ino)  # fmt: skip
        asked.append(effective_ids)
        return False

    monkeypatch.setattr(os, "access", access)
    for other in (0, 1):
        monkeypatch.setattr(os, "getuid", lambda other=other: os.geteuid() + other)
        with at(root) as place, pytest.raises(AccessRefused, match="write-protected"):
            _ = replace(place, NEW, base=base())
    assert (found(root), asked) == ({"a.txt": OLD}, [False, True])


def test_expected_bytes_are_looked_for(root: Path) -> None:
    expected = sha256(OLD).hexdigest()
    with at(root) as place:
        check_unchanged(place, expected_sha256=expected)
        with pytest.raises(StaleText, match="changed since it was read"):
            check_unchanged(place, expected_sha256=sha256(NEW).hexdigest())
        (root / "sub/a.txt").unlink()
        with pytest.raises(StaleText, match="was deleted since it was read"):
            check_unchanged(place, expected_sha256=expected)


# Folders on the way


def test_missing_folders_are_made_only_where_that_was_asked_for(root: Path) -> None:
    path = root / "x/y/z/new"
    with pytest.raises(FileNotFoundError), place_of(path, root=root, gate=best_gate()):
        pass
    assert not (root / "x").exists()
    with place_made(path, root=root, gate=best_gate()) as place:
        create(place, NEW)
    assert path.read_bytes() == NEW
    with place_made(root / "x/y/other", root=root, gate=best_gate()) as place:
        assert (place.name, place.path, place.look()) == ("other", root / "x/y/other", None)
        assert place.owner == root.stat().st_uid


def test_no_folder_is_made_below_a_file_or_through_a_link(root: Path) -> None:
    (root / "link").symlink_to("sub")
    for name in ("sub/a.txt/x/new", "link/x/new"):
        with pytest.raises(OSError), place_made(root / name, root=root, gate=best_gate()):  # noqa: PT011 - either
            pass
    assert sorted(one.name for one in (root / "sub").iterdir()) == ["a.txt"]


def test_the_root_itself_is_no_file(root: Path) -> None:
    for way in (place_of, place_made):
        with (
            pytest.raises(NotAFile, match="Is a directory"),
            way(root, root=root, gate=best_gate()),
        ):
            pass
