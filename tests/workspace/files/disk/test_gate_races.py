"""Another process swaps what a path means, all the time, in four ways: nothing outside is read or written.

Each try resolves the path anew, reads, and writes, as a tool does. The file outside has the size of the one inside, so
that no check of sizes can help. What is at the path while a try goes on is looked at from outside afterwards.
"""

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from agent_core.kernel.errors import FileMissing, WorkspaceError
from agent_core.workspace import FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.disk.gate.folder_gate import FolderGate, best_gate
from agent_core.workspace.files.disk.gate.walk import WalkGate
from tests.support.harness.sizes import at_size
from tests.support.workspace.fast_folder import fast_folder

TURNS = at_size(ci=125, campaign=6_250)
"""Two tries each; in a campaign there are 8 rounds, so 100,000 tries of each swap with each gate."""
MOST_TIMES = 60
"""How many times longer it goes on when the other process has not had its turn."""
OUTSIDE = "CANARY"

# In a process of its own: threads of one interpreter take turns, and a race needs both at once. Each step takes a few
# microseconds; the pauses differ, so that swaps fall into all steps of a try.
SWAPPER = """
import ctypes, os, shutil, signal, sys, time
way, root, outside = sys.argv[1:]
os.chdir(root)
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    if libc.renameat2(-100, one.encode(), -100, other.encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")
def retarget(number):
    os.symlink(["real", outside][number % 2], "spare")
    os.replace("spare", "race")
def swap_folder(number):
    exchange("race", "link")
def swap_file(number):
    exchange("race/a.txt", "race/link")
def move_out(number):
    parked = outside + "/parked"
    if number % 2 == 0:
        os.rename("race", parked)
        os.symlink(outside, "race")
        return
    # Whoever wrote a new file may have made the folder anew.
    if os.path.islink("race"):
        os.unlink("race")
    while os.path.exists(parked):
        shutil.rmtree("race", ignore_errors=True)
        try:
            os.rename(parked, "race")
        except OSError:
            pass
step = globals()[way]
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
print("up", flush=True)
number = 0
while not over or number % 2:
    try:
        step(number)
    except (FileNotFoundError, FileExistsError):
        pass
    number += 1
    if not over:
        time.sleep(number % 7 * 0.00004)
print(number)
"""
WAYS = ("retarget", "swap_folder", "swap_file", "move_out")
GATES = {"in one step": best_gate(), "name by name": WalkGate()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A workspace beside a folder of others."""

    root: Path
    outside: Path

    def lay(self, way: str) -> None:
        """Make what is swapped."""
        (self.root / "real").mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "a.txt").write_text(OUTSIDE)
        (self.outside / "other.txt").write_text(OUTSIDE)
        folder = self.root / ("real" if way == "retarget" else "race")
        folder.mkdir(exist_ok=True)
        (folder / "a.txt").write_text("inside")
        match way:
            case "retarget":
                (self.root / "race").symlink_to("real")
            case "swap_folder":
                (self.root / "link").symlink_to(self.outside)
            case "swap_file":
                (folder / "link").symlink_to(self.outside / "a.txt")
            case _:
                pass

    def check(self) -> None:
        """Make sure that everything outside is as it was."""
        found = {
            path.name: path.read_text()
            for path in self.outside.iterdir()
            if path.name != "parked"  # may be there just now
        }
        assert found == {"a.txt": OUTSIDE, "other.txt": OUTSIDE}


@contextmanager
def swapping(way: str, ground: Ground) -> Generator[None]:
    """Swap while the context is entered; all is in its place afterwards."""
    argv = (sys.executable, "-c", SWAPPER, way, ground.root, ground.outside)
    with Popen(argv, stdout=PIPE, text=True) as swapper:
        try:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == "up\n"
            yield
        finally:
            swapper.terminate()
            _ = swapper.communicate(timeout=10)


async def one_try(files: DiskFiles, number: int) -> None:
    """Do what tools do to a file and to one beside it."""
    path = await files.resolve("race/a.txt", "write")
    read = await files.read(path)
    assert isinstance(read, FileText)
    assert read.text.startswith("inside"), read.text
    _ = await files.write(path, f"inside {number}", base=read)


async def new_file(files: DiskFiles, number: int) -> None:
    """Make a file beside it, and take it away again."""
    path = await files.resolve(f"race/n{number}", "write")
    _ = await files.write(path, "inside", base=None)
    with suppress(FileMissing):
        await files.delete(path, base=await files.read(path))


async def rounds(files: DiskFiles, ground: Ground) -> tuple[int, int]:
    """Try until both outcomes came up; gives how often it went well, and how often it was refused."""
    done = refused = 0
    for number in range(TURNS * MOST_TIMES):
        if number >= TURNS and min(done, refused) > 0:
            break
        for attempt in (one_try, new_file):
            try:
                await attempt(files, number)
            except WorkspaceError:
                refused += 1
            else:
                done += 1
        if number % 50 == 0:
            ground.check()
    return done, refused


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ground(way: str) -> Iterator[Ground]:
    with fast_folder() as base:
        real = Path(os.path.realpath(base))
        ground = Ground(root=real / "ws", outside=real / "outside")
        ground.lay(way)
        yield ground
        ground.check()
        assert {path.name for path in ground.outside.iterdir()} == {"a.txt", "other.txt"}


@pytest.mark.timeout(at_size(ci=60, campaign=1_200))
@pytest.mark.skipif(sys.platform != "linux", reason="exchanges names in one step")
@pytest.mark.parametrize("round_number", range(at_size(ci=1, campaign=8)))
@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
async def test_no_swap_leads_out(
    way: str, ground: Ground, gate: FolderGate, round_number: int
) -> None:
    files = DiskFiles((ground.root,), ground.root.parent / "home", gate=gate)
    with swapping(way, ground):
        done, refused = await rounds(files, ground)
    print(f"{way}: {done} tries went well, {refused} were refused, none led out")
    assert min(done, refused) > 0, (done, refused, round_number)
