"""The script that the README shows as a library's use runs as printed, and does what it says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.harness.shared import ROOT

SCRIPT = re.compile(r"^## As a library$.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PRICES = """\
def total(prices):
    amount = sum(prices)
    return amuont
"""
TEST_PRICES = """\
import unittest

from prices import total


class TotalTest(unittest.TestCase):
    def test_total_is_the_sum(self):
        self.assertEqual(total([1, 2]), 3)
"""


@pytest.mark.e2e
@pytest.mark.timeout(90)
def test_the_script_of_the_readme_repairs_a_project(
    tmp_path: Path, tiller_dirs: TillerDirs, covered_env: dict[str, str]
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    (project / "prices.py").write_text(PRICES, encoding="utf-8")
    (project / "test_prices.py").write_text(TEST_PRICES, encoding="utf-8")
    # The script runs the project's tests, which only the user's own settings can allow.
    settings = json.dumps({"permission": {"mode": "yolo"}})
    (tiller_dirs.config / "settings.json").write_text(settings, encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(_script(), encoding="utf-8")

    # The library is found as an installed one would be, not beside the script.
    done = _python(
        script,
        cwd=project,
        env=covered_env | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'server'}"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("completed ")
    tests = _python("-m", "unittest", cwd=project, env=covered_env)
    assert (tests.returncode, (project / "prices.py").read_text("utf-8")) == (
        0,
        PRICES.replace("amuont", "amount"),
    )


def test_the_readme_shows_at_most_ten_lines() -> None:
    assert len([line for line in _script().splitlines() if line.strip()]) <= 10


def _script() -> str:
    match = SCRIPT.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert match is not None, "README.md has no python block under 'As a library'"
    return match[1]


def _python(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
