"""Whatever happens to a tree, the index of it is that of a fresh walk."""

import os
import random
import shutil
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.guards.tree_index import TreeIndex
from tests.workspace.sandbox.guards.test_tree_index import WATCHES, fresh

NAMES = ("a", "b", "node_modules", ".github", "workflows", ".vscode", "AGENTS.md", ".env", ".git", "HEAD", "objects", "refs", "c.py")  # fmt: skip


def folders(root: Path) -> list[Path]:
    return [Path(at) for at, _, _ in os.walk(root)]


def change(root: Path, dice: random.Random) -> None:  # noqa: PLR0912 - a table
    """Do one thing to a tree, as any program may."""
    here, there = dice.choice(folders(root)), dice.choice(folders(root))
    name, other = dice.choice(NAMES), dice.choice(NAMES)
    if len(folders(root)) > 60:
        shutil.rmtree(dice.choice(list(root.iterdir())))
    match dice.randrange(9):
        case 0 | 1:
            (here / name / other).mkdir(parents=True)
        case 2 | 3:
            (here / name).touch()
        case 4:
            (here / name).rename(there / other)
        case 5:
            (here / name).symlink_to(dice.choice(["a", "..", "gone"]))
        case 6:
            if (here / name).is_dir() and not (here / name).is_symlink():
                shutil.rmtree(here / name)
            else:
                (here / name).unlink()
        case 7:
            # Gone and there again: the number of the folder is often the same.
            (here / name).rmdir()
            (here / name).mkdir()
        case _:
            (here / name).rename(root / "hold")
            try:
                (there / other).rename(here / name)
            finally:
                (root / "hold").rename(there / other)


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize("seed", range(2))
def test_after_anything_the_index_is_that_of_a_fresh_walk(
    tmp_path: Path, watch: str, seed: int
) -> None:
    root = Path(os.path.realpath(tmp_path))
    dice, index = random.Random(seed), TreeIndex((str(root),), watch=WATCHES[watch])  # noqa: S311 - to be repeated
    for number in range(300):
        for _ in range(dice.choice([1, 1, 1, 5])):
            try:
                change(root, dice)
            except OSError:
                continue  # what cannot be done is not done
        assert index.refresh() == fresh(root), f"after {number} changes with seed {seed}"
    index.close()
