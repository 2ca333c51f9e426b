"""What only a real disk can do: links, modes, full disks, folders that are swapped while they are used."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import (
    FileMissing,
    FileTooLarge,
    NotAFile,
    PathRefused,
    StaleText,
    TillerError,
    WorkspaceError,
)
from agent_core.workspace import FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.disk.gate.folder_gate import FolderGate, best_gate
from agent_core.workspace.files.disk.gate.walk import WalkGate
from tests.support.harness.shared import ROOT
from tests.support.harness.sizes import at_size
from tests.workspace.files.hostile import (
    WHERE_ALLOWED,
    hostile_cases,
    make_fixture,
    outside_of_workspace,
)

GATES: tuple[FolderGate, ...] = (best_gate(), WalkGate())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "ws"
    root.mkdir()
    return root


@pytest.fixture
def files(root: Path) -> DiskFiles:
    return DiskFiles((root,), root.parent / "home")


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def _text(files: DiskFiles, path: Path) -> FileText:
    read = await files.read(path)
    assert isinstance(read, FileText)
    return read


async def test_through_a_link_the_target_is_replaced(files: DiskFiles, root: Path) -> None:
    (root / "real.txt").write_text("old")
    (root / "link.txt").symlink_to("real.txt")
    path = await files.resolve("link.txt", "write")
    assert path == root / "real.txt"
    await files.write(path, "new", base=await _text(files, path))
    assert (root / "link.txt").is_symlink()
    assert (root / "real.txt").read_text() == "new"


async def test_a_link_that_leads_nowhere_inside_is_created_through(files, root: Path) -> None:
    (root / "link.txt").symlink_to("sub/new.txt")
    path = await files.resolve("link.txt", "write")
    await files.write(path, "new", base=None)
    assert (root / "sub/new.txt").read_text() == "new"


async def test_mode_and_attributes_stay(files: DiskFiles, root: Path) -> None:
    path = root / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    if os.geteuid() == 0:
        # A workspace of another user, as in a container.
        os.chown(root, 1234, 1235)
        os.chown(path, 1234, 1235)
    with suppress(OSError):
        os.setxattr(path, "user.tiller", b"kept")
    before = path.stat()
    attributes = os.listxattr(path) if sys.platform == "linux" else []
    await files.write(path, "new", base=await _text(files, path))
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert (os.listxattr(path) if sys.platform == "linux" else []) == attributes


async def test_a_new_file_obeys_the_umask(files: DiskFiles, root: Path) -> None:
    before = os.umask(0o027)
    try:
        await files.write(root / "new.txt", "x", base=None)
    finally:
        os.umask(before)
    assert (root / "new.txt").stat().st_mode & 0o777 == 0o640


async def test_a_hard_link_elsewhere_keeps_the_old_text_and_the_model_is_told(files, root) -> None:
    (root / "a.txt").write_text("old")
    os.link(root / "a.txt", root.parent / "outside.txt")
    written = await files.write(root / "a.txt", "new", base=await _text(files, root / "a.txt"))
    assert (root.parent / "outside.txt").read_text() == "old"
    assert written.note == (
        "The file had 2 hard links; only this name has the new text, the others keep the old one."
    )


async def test_nothing_is_left_beside_a_file(files: DiskFiles, root: Path) -> None:
    await files.write(root / "a.txt", "x", base=None)
    base = await _text(files, root / "a.txt")
    await files.write(root / "a.txt", "y", base=base)
    with pytest.raises(StaleText):
        await files.write(root / "a.txt", "z", base=base)
    with pytest.raises(StaleText):
        await files.write(root / "a.txt", "z", base=None)
    assert _names(root) == ["a.txt"]


async def test_a_deleted_file_is_not_made_again(files: DiskFiles, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/a.txt").write_text("old")
    base = await _text(files, root / "sub/a.txt")
    (root / "sub/a.txt").unlink()
    with pytest.raises(StaleText, match="was deleted since it was read"):
        await files.write(root / "sub/a.txt", "new", base=base)
    (root / "sub").rmdir()
    with pytest.raises(StaleText, match="was deleted since it was read"):
        await files.write(root / "sub/a.txt", "new", base=base)


async def test_pipes_sockets_and_devices_are_no_files(files: DiskFiles, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        folder = os.open(root, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{folder}/sock" if sys.platform == "linux" else "sock")
        finally:
            os.close(folder)
        for name in ("fifo", "sock"):
            path = await files.resolve(name, "read")
            with anyio.fail_after(5):
                with pytest.raises(NotAFile, match="Not a regular file"):
                    await files.read(path)
                with pytest.raises(NotAFile, match="Not a regular file"):
                    await files.write(path, "x", base=None)
            assert (await files.stat(path)).kind == "other"


async def test_a_folder_to_read_is_not_one_to_write(root: Path, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    files = DiskFiles((root,), tmp_path, read_roots=(outputs,))
    outputs.mkdir()
    (outputs / "bash.log").write_text("long")
    path = await files.resolve(str(outputs / "bash.log"), "read")
    base = await _text(files, path)
    assert base.text == "long"
    with pytest.raises(PathRefused):
        await files.resolve(str(outputs / "bash.log"), "write")
    with pytest.raises(PathRefused):
        await files.write(path, "x", base=base)


async def test_links_in_a_circle_are_refused(files: DiskFiles, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    for access in ("read", "write"):
        with pytest.raises(PathRefused):
            await files.resolve("a", access)


async def test_a_very_long_name_is_refused_in_words(files: DiskFiles) -> None:
    for words in ("x" * 300, "sub/" + "x" * 300 + "/a"):
        with pytest.raises(WorkspaceError, match="ENAMETOOLONG"):
            await files.write(await files.resolve(words, "write"), "x", base=None)


async def test_a_link_put_in_place_of_a_resolved_name_is_not_followed(files, root: Path) -> None:
    secret = root.parent / "secret.txt"
    secret.write_text("secret")
    (root / "sub").mkdir()
    (root / "sub/a.txt").write_text("old")
    base = await _text(files, root / "sub/a.txt")
    (root / "sub/a.txt").unlink()
    (root / "sub/a.txt").symlink_to(secret)
    with pytest.raises(PathRefused):
        await files.read(root / "sub/a.txt")
    with pytest.raises(PathRefused):
        await files.write(root / "sub/a.txt", "new", base=base)
    (root / "sub/a.txt").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(root.parent)
    for ask in (files.read, files.stat):
        with pytest.raises(PathRefused):
            await ask(root / "sub/secret.txt")
    with pytest.raises(PathRefused):
        await files.write(root / "sub/new.txt", "new", base=None)
    assert secret.read_text() == "secret"
    assert not (root.parent / "new.txt").exists()


@pytest.fixture
def swapping(root: Path) -> Iterator[Path]:
    """A folder that is swapped with a link to the outside all the time."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("CANARY")
    inside, spare = root / "race", root / "spare"
    inside.mkdir()
    (inside / "a.txt").write_text("inside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for step in (
                lambda: inside.rename(spare),
                lambda: inside.symlink_to(outside),
                inside.unlink,
                lambda: spare.rename(inside),
            ):
                # A write that found nothing may have made the folder meanwhile.
                with suppress(OSError):
                    step()
            if inside.is_dir() and spare.is_dir():
                shutil.rmtree(spare, ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    yield outside
    over.set()
    thread.join()


async def test_a_folder_swapped_with_a_link_never_leads_out(files, swapping: Path) -> None:
    for number in range(at_size(ci=300, campaign=1000)):
        with suppress(TillerError):
            path = await files.resolve("race/a.txt", "write")
            read = await files.read(path)
            assert isinstance(read, FileText)
            assert read.text != "CANARY"
            await files.write(path, f"written {number}", base=read)
        with suppress(TillerError):
            await files.write(await files.resolve(f"race/n{number}", "write"), "x", base=None)
    assert _names(swapping) == ["a.txt"]
    assert (swapping / "a.txt").read_text() == "CANARY"


LIMITED = """
import resource, sys
from pathlib import Path
import anyio
from agent_core.workspace.files.disk.disk_files import DiskFiles

async def main(root):
    files = DiskFiles((root,), root)
    base = await files.read(root / "a.txt")
    for make in (lambda: files.write(root / "a.txt", "x" * 100_000, base=base),
                 lambda: files.write(root / "new.txt", "x" * 100_000, base=None)):
        try:
            await make()
        except Exception as error:
            print(type(error).__name__, error)

resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
anyio.run(main, Path(sys.argv[1]))
"""


def test_a_full_disk_leaves_the_old_file_whole_and_nothing_else(root: Path, child_env) -> None:
    """In a process of its own: the limit that stands for a full disk holds for a whole process."""
    (root / "a.txt").write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, root],
        cwd=ROOT,
        env=child_env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        f"AccessRefused No space for {root / name} (EFBIG): nothing was written, what was there is as it was. Free some space first."
        for name in ("a.txt", "new.txt")
    ]
    assert _names(root) == ["a.txt"]
    assert (root / "a.txt").read_text() == "old"


async def test_a_write_that_is_cancelled_is_whole_or_not_at_all(files, root: Path) -> None:
    old, new = "old\n" * 100_000, "new\n" * 100_000
    (root / "a.txt").write_text(old)
    base = await _text(files, root / "a.txt")
    with anyio.move_on_after(0.001):
        await files.write(root / "a.txt", new, base=base)
    assert (root / "a.txt").read_text() in {old, new}
    assert _names(root) == ["a.txt"]


async def test_reading_a_large_file_is_refused_in_words(files: DiskFiles, root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    with pytest.raises(FileTooLarge, match="too large to read whole"):
        await files.read(root / "big")


# The corpus of hostile paths


@pytest.mark.parametrize("gate", GATES, ids=["in one step", "name by name"])
async def test_no_path_of_the_corpus_gets_out(root: Path, gate: FolderGate) -> None:
    base = root.parent
    make_fixture(base)
    files = DiskFiles((base / "ws",), base / "home", gate=gate)
    outside = outside_of_workspace(base)
    wrong: list[str] = []
    for case in hostile_cases():
        got = await _try(files, case["op"], case["path"].replace("{B}", str(base)))
        expected = WHERE_ALLOWED.get(case["expect"])
        if expected is not None and got is not expected:
            wrong.append(f"{case['id']} {case['op']} {case['path']!r}: {case['why']}")
        assert outside_of_workspace(base) == outside, case
    assert wrong == []


async def _try(files: DiskFiles, op: str, words: str) -> bool:
    """Do what the tools do; False when it was refused."""
    with anyio.fail_after(5):
        try:
            if op == "read":
                await files.read(await files.resolve(words, "read"))
                return True
            path = await files.resolve(words, "write")
            base = await _base(files, path)
            if base is None and op == "edit":
                return False
            await files.write(path, "changed\n", base=base)
        except WorkspaceError:
            return False
    return True


async def _base(files: DiskFiles, path: Path) -> FileText | None:
    with suppress(FileMissing):
        return await _text(files, path)
    return None
