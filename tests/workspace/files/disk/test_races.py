"""A folder of a path is swapped for a link to the outside and back, all the time: nothing outside is touched.

The files outside have the names and the bytes of those inside, so that no check of contents can help.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace import FileBytes, FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.text import sha256_of
from tests.support.harness.sizes import at_size

TRIES = at_size(ci=60, campaign=1000)
MOST_TRIES = 100_000
SAME = b"the same inside and outside"
CANARY = "secret.txt"


# In a process of its own: threads of one interpreter take turns, and a race needs both at once.
SWAPPER = """
import os, shutil, signal, sys, time
inside, outside, spare = sys.argv[1:]
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
steps = (
    lambda: os.rename(inside, spare),
    lambda: os.symlink(outside, inside),
    lambda: pause(7),
    lambda: os.unlink(inside),
    lambda: os.rename(spare, inside),
    lambda: pause(11),
)
# As long as one use of a path may take, so that swaps fall into all of its steps.
pause = lambda most: time.sleep(swaps % most * 0.00003)
print("up", flush=True)
swaps = 0
while not over:
    for step in steps:
        # Who found nothing may have made the folder meanwhile.
        try:
            step()
        except OSError:
            pass
    if os.path.lexists(spare) and os.path.isdir(inside) and not os.path.islink(inside):
        shutil.rmtree(inside, ignore_errors=True)
        try:
            os.rename(spare, inside)
        except OSError:
            pass
    swaps += 1
print(swaps)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A workspace whose folder `race` is now a folder, now a link to `outside`, now nothing."""

    root: Path
    outside: Path
    files: DiskFiles

    @property
    def folder(self) -> Path:
        return self.root / "race"

    def fill(self, prefix: str) -> None:
        """Put the same files into the folder and outside."""
        for folder in (self.folder, self.outside):
            for n in range(TRIES):
                (folder / f"{prefix}{n}").write_bytes(SAME)

    def check_outside(self, prefix: str) -> None:
        """Make sure that all of the files outside are there, as they were."""
        outside = contents(self.outside)
        assert [outside.get(f"{prefix}{n}") for n in range(TRIES)] == [SAME] * TRIES

    async def run(self, attempt: Callable[[int], Awaitable[None]]) -> None:
        """Try while the folder is swapped; it must go well at times, and be refused at times."""
        done = refused = 0
        argv = (sys.executable, "-c", SWAPPER, self.folder, self.outside, self.root / "spare")
        with Popen(argv, stdout=PIPE, text=True) as swapper:  # noqa: ASYNC220 - it must not wait for the loop
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == "up\n"
            for n in count():
                # On a busy machine the swapper may not have had its turn yet.
                if n >= TRIES and (min(done, refused) > 0 or n >= MOST_TRIES):
                    break
                try:
                    await attempt(n % TRIES)
                except WorkspaceError:
                    refused += 1
                except BaseException:
                    swapper.kill()
                    raise
                else:
                    done += 1
            swapper.terminate()
            swaps = int(swapper.stdout.read())
        assert min(done, refused) > 0, (done, refused, swaps)


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    base = Path(os.path.realpath(tmp_path))
    root, outside = base / "ws", base / "outside"
    (root / "race").mkdir(parents=True)
    outside.mkdir()
    (outside / CANARY).write_text("CANARY")
    (outside / "a.txt").write_text("CANARY")
    (root / "race/a.txt").write_text("inside")
    race = Race(root=root, outside=outside, files=DiskFiles((root,), base))
    before = contents(outside)
    yield race
    assert {name: before[name] for name in (CANARY, "a.txt")} == {
        name: text for name, text in contents(outside).items() if name in before
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_nothing_outside_is_read(race: Race) -> None:
    async def attempt(_: int) -> None:
        read = await race.files.read(race.folder / "a.txt")
        assert isinstance(read, FileText)
        assert read.text == "inside"

    await race.run(attempt)


async def test_nothing_outside_is_opened(race: Race) -> None:
    async def attempt(_: int) -> None:
        async with race.files.open(race.folder / "a.txt") as reader:
            assert await reader.read(100) == b"inside"

    await race.run(attempt)


async def test_nothing_outside_is_listed(race: Race) -> None:
    async def attempt(_: int) -> None:
        names = [entry.name for entry in await race.files.list(race.folder)]
        assert names == ["a.txt"]

    await race.run(attempt)


async def test_nothing_outside_is_written(race: Race) -> None:
    race.fill("w")
    base = FileText(path=race.folder, text=SAME.decode(), source="disk", sha256=sha256_of(SAME))

    async def attempt(n: int) -> None:
        _ = await race.files.write(race.folder / f"w{n}", "changed", base=base)

    await race.run(attempt)
    race.check_outside("w")


async def test_nothing_outside_is_created(race: Race) -> None:
    async def attempt(n: int) -> None:
        _ = await race.files.write(race.folder / f"sub{n}/new", "new", base=None)

    await race.run(attempt)
    assert sorted(contents(race.outside)) == ["a.txt", CANARY]


async def test_nothing_outside_is_deleted(race: Race) -> None:
    race.fill("d")
    base = FileBytes(path=race.folder, data=SAME, sha256=sha256_of(SAME))

    async def attempt(n: int) -> None:
        await race.files.delete(race.folder / f"d{n}", base=base)

    await race.run(attempt)
    race.check_outside("d")


async def test_nothing_outside_is_moved_in(race: Race) -> None:
    race.fill("m")

    async def attempt(n: int) -> None:
        await race.files.move(race.folder / f"m{n}", race.root / f"to{n}")

    await race.run(attempt)
    race.check_outside("m")


async def test_nothing_is_moved_out(race: Race) -> None:
    for n in range(TRIES):
        (race.root / f"from{n}").write_bytes(SAME)

    async def attempt(n: int) -> None:
        await race.files.move(race.root / f"from{n}", race.folder / f"to{n}")

    await race.run(attempt)
    assert sorted(contents(race.outside)) == ["a.txt", CANARY]
