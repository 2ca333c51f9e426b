"""A unified diff that `patch` takes."""

import random
import subprocess
from pathlib import Path

import pytest

from agent_core.workspace.diff.unified_diff import unified


@pytest.mark.parametrize(
    ("before", "after", "diff"),
    [
        ("a\n", "a\n", ""),
        (None, None, ""),
        ("a\n", "b\n", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+b\n"),
        (None, "a\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n"),
        ("a\n", None, "--- a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n"),
        (
            "a",
            "a\n",
            "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n",
        ),
    ],
    ids=["same", "nothing", "changed", "made", "deleted", "line end"],
)
def test_a_diff_says_what_differs(before: str | None, after: str | None, diff: str) -> None:
    assert unified("f", before, after) == diff


def test_patch_makes_one_text_of_the_other(tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - not for secrets
    for number in range(20):
        old = [f"{dice.randint(0, 5)}\n" for _ in range(dice.randint(1, 60))]
        new = [line for line in old if dice.random() < 0.8]
        new.insert(dice.randint(0, len(new)), f"new {number}\n")
        file = tmp_path / "f"
        file.write_text("".join(old))
        diff = unified("f", "".join(old), "".join(new))
        subprocess.run(["patch", "-s", str(file)], input=diff.encode(), check=True)
        assert file.read_text() == "".join(new)
