"""Both gates open a folder by its real path, or refuse; a link is never followed, wherever it stands."""

import ctypes
import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agent_core.kernel.errors import PathRefused
from agent_core.workspace.files.disk.gate import folder_gate, openat2
from agent_core.workspace.files.disk.gate.folder_gate import (
    FolderGate,
    best_gate,
    check_names,
    enter_root,
    is_shared,
    is_still,
    names_below,
)
from agent_core.workspace.files.disk.gate.openat2 import OpenAt2Gate, has_openat2
from agent_core.workspace.files.disk.gate.walk import WalkGate

ONE_STEP = pytest.param(
    OpenAt2Gate(),
    id="in one step",
    marks=pytest.mark.skipif(
        not (sys.platform == "linux" and has_openat2()), reason="this system has no openat2"
    ),
)


@pytest.fixture(params=[ONE_STEP, pytest.param(WalkGate(), id="name by name")])
def gate(request: pytest.FixtureRequest) -> FolderGate:
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "ws"
    (root / "a/b/c").mkdir(parents=True)
    (root / "file").touch()
    (root.parent / "outside/b").mkdir(parents=True)
    return root


@pytest.fixture
def top(root: Path) -> Iterator[int]:
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    yield opened
    os.close(opened)


def same(opened: int, path: Path) -> bool:
    """Tell whether this folder was opened, and close it."""
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    finally:
        os.close(opened)


def code_of(gate: FolderGate, folder: int | None, names: tuple[str, ...]) -> int | None:
    """Give the number of the error."""
    before = psutil.Process().num_fds()
    with pytest.raises(OSError, match=r".") as raised:
        _ = gate.enter(folder, names)
    assert psutil.Process().num_fds() == before
    return raised.value.errno


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("a", "b", "c")])
def test_a_folder_below_another_is_opened(gate: FolderGate, root: Path, top: int, names) -> None:
    assert same(gate.enter(top, names), root.joinpath(*names))


def test_from_the_top_an_absolute_path_is_opened(gate: FolderGate, root: Path) -> None:
    assert same(gate.enter(None, root.parts[1:]), root)
    assert same(gate.enter(None, ()), Path("/"))


def test_the_folder_that_was_given_stays_open(gate: FolderGate, top: int) -> None:
    for names in ((), ("a",)):
        os.close(gate.enter(top, names))
        assert os.fstat(top)


def test_what_is_opened_is_not_inherited_by_programs(gate: FolderGate, top: int) -> None:
    for names in ((), ("a",)):
        opened = gate.enter(top, names)
        assert os.get_inheritable(opened) is False
        os.close(opened)


@pytest.mark.parametrize(
    "target",
    ["../outside", "{outside}", "b", "{root}/a/b", ".", "/proc/self/cwd", "nothing", "link"],
)
@pytest.mark.parametrize("names", [("a", "link"), ("a", "link", "b")])
def test_a_link_is_refused_wherever_it_leads(gate, root: Path, top: int, target, names) -> None:
    target = target.replace("{outside}", str(root.parent / "outside")).replace("{root}", str(root))
    (root / "a/link").symlink_to(target)
    assert code_of(gate, top, names) == errno.ELOOP
    assert code_of(gate, None, (*root.parts[1:], *names)) == errno.ELOOP


@pytest.mark.skipif(sys.platform != "linux", reason="there are no magic links")
def test_a_magic_link_is_refused(gate: FolderGate, top: int) -> None:
    assert code_of(gate, None, ("proc", "self", "fd", str(top))) == errno.ELOOP


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (("none",), errno.ENOENT),
        (("none", "x"), errno.ENOENT),
        (("a", "none"), errno.ENOENT),
        (("file",), errno.ENOTDIR),
        (("file", "x"), errno.ENOTDIR),
        (("x" * 300,), errno.ENAMETOOLONG),
    ],
)
def test_what_is_no_folder_is_told_as_the_system_does(gate, top: int, names, code) -> None:
    assert code_of(gate, top, names) == code


def test_in_one_step_nothing_above_can_be_reached(top: int) -> None:
    if not has_openat2():
        pytest.skip("this system has no openat2")
    for names in (("..",), ("a", "..", "..")):
        assert code_of(OpenAt2Gate(), top, names) == errno.ELOOP


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder is opened to be read")
def test_a_folder_that_may_not_be_listed_can_be_passed_through(
    gate: FolderGate, root: Path
) -> None:
    special = os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        closed = Path(os.path.realpath(folder)) / "closed"
        (closed / "in").mkdir(parents=True)
        for one in (closed.parent, closed, closed / "in"):
            one.chmod(0o311)
        if special:
            os.seteuid(1234)
        try:
            opened = gate.enter(None, (*closed.parts[1:], "in"))
        finally:
            if special:
                os.seteuid(0)
        for one in (closed.parent, closed, closed / "in"):
            one.chmod(0o700)
        assert same(opened, closed / "in")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is another file system")
def test_another_file_system_below_is_entered(gate: FolderGate) -> None:
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert same(gate.enter(top, ("proc",)), Path("/proc"))
    finally:
        os.close(top)


# Which gate


@pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")
def test_a_system_that_has_the_one_step_uses_it() -> None:
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, 0x04)
    libc = ctypes.CDLL(None, use_errno=True)
    opened = libc.syscall(437, -100, b"/", ctypes.byref(how), ctypes.sizeof(how))
    if opened < 0:
        pytest.skip(f"this system has no openat2: {errno.errorcode[ctypes.get_errno()]}")
    os.close(opened)
    before = psutil.Process().num_fds()
    assert has_openat2() is True
    assert psutil.Process().num_fds() == before


def test_a_system_without_the_one_step_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    for code in (errno.ENOSYS, errno.EPERM):
        monkeypatch.setattr(openat2, "_call", lambda code=code: lambda *_: (-1, code))
        assert has_openat2() is False
        best_gate.cache_clear()
        assert isinstance(folder_gate.best_gate(), WalkGate)
    monkeypatch.undo()
    best_gate.cache_clear()
    expected = OpenAt2Gate if sys.platform == "linux" and has_openat2() else WalkGate
    assert isinstance(best_gate(), expected)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([errno.EAGAIN] * 7 + [0], None),
        ([errno.EINTR, 0], None),
        ([errno.EAGAIN] * 8 + [0], errno.ELOOP),
        ([errno.EXDEV, 0], errno.ELOOP),
        ([errno.EACCES, 0], errno.EACCES),
        ([errno.ENOSYS, 0], errno.ENOSYS),
    ],
)
def test_a_call_is_repeated_when_the_system_asks_for_that(monkeypatch, answers, code) -> None:
    """Anything else is refused, and never tried in a weaker way."""
    left = list(answers)

    def call(*_: object) -> tuple[int, int]:
        answer = left.pop(0)
        return (-1, answer) if answer else (77, 0)

    monkeypatch.setattr(openat2, "_call", lambda: call)
    if code is None:
        assert OpenAt2Gate().enter(5, ("a",)) == 77
        return
    with pytest.raises(OSError, match=r".") as raised:
        _ = OpenAt2Gate().enter(5, ("a",))
    assert raised.value.errno == code


def test_the_first_descriptor_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openat2, "_call", lambda: lambda *_: (0, errno.EACCES))
    assert OpenAt2Gate().enter(5, ("a",)) == 0


# Names


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "\ud800"])
def test_what_is_a_way_and_no_name_is_refused(name: str) -> None:
    with pytest.raises(PathRefused, match="is no name; name a file inside the workspace"):
        check_names(("a", name, "b"), Path("/ws/x"))


@pytest.mark.parametrize(
    "name", ["...", "..a", "-rf", "a b", "naïve", os.fsdecode(b"caf\xe9"), "~"]
)
def test_odd_names_are_names(name: str) -> None:
    check_names((name,), Path("/ws"))


def test_names_are_given_from_the_root_down() -> None:
    root = Path("/ws")
    assert names_below(root, root=root) == ()
    assert names_below(root / "a/b", root=root) == ("a", "b")
    for outside in (Path("/"), Path("/ws-evil/a"), Path("/etc/passwd"), Path("ws/a")):
        with pytest.raises(PathRefused, match="leads outside"):
            _ = names_below(outside, root=root)
    with pytest.raises(PathRefused, match="is no name"):
        _ = names_below(Path("/ws/a/../../etc"), root=root)


def test_a_root_is_entered_by_its_real_path_alone(gate: FolderGate, root: Path) -> None:
    assert same(enter_root(gate, root), root)
    root.rename(root.parent / "moved")
    root.symlink_to("moved")
    with pytest.raises(OSError, match="symbolic link"):
        _ = enter_root(gate, root)
    with pytest.raises(PathRefused):
        _ = enter_root(gate, root / "..")


# Whether a folder is still there


def test_a_folder_is_still_there_until_it_is_moved_or_replaced(
    gate: FolderGate, root: Path
) -> None:
    path = root / "a/b"
    opened = gate.enter(None, path.parts[1:])
    before = psutil.Process().num_fds()
    assert is_still(opened, path, gate=gate)
    assert not is_still(opened, root / "a", gate=gate)
    path.rename(root / "moved")
    assert not is_still(opened, path, gate=gate)
    path.mkdir()
    assert not is_still(opened, path, gate=gate)
    path.rmdir()
    path.symlink_to(root / "moved")
    assert not is_still(opened, path, gate=gate)
    assert is_still(opened, root / "moved", gate=gate)
    assert psutil.Process().num_fds() == before
    os.close(opened)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o1777, True),
        (0o1775, True),
        (0o1757, True),
        (0o1755, False),
        (0o777, False),
        (0o700, False),
    ],
)
def test_a_folder_like_tmp_is_shared(tmp_path: Path, mode: int, expected: bool) -> None:
    tmp_path.chmod(mode)
    assert is_shared(tmp_path.stat()) is expected
    tmp_path.chmod(0o700)
