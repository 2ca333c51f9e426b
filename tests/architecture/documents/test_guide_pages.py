"""The shell blocks of the guide run as printed, in a project whose test fails and with the files that the page names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.harness.shared import ROOT

PAGES = (
    "changes", "compaction", "hooks", "library", "models", "permissions", "sessions", "skills",
    "troubleshooting", "trust",
)  # fmt: skip
BLOCK = re.compile(r"(?:^In `([^`~]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {
    "prices.py": "def total(prices):\n    amount = sum(prices)\n    return amuont\n",
    "test_prices.py": "import unittest\n\nfrom prices import total\n\n\nclass TotalTest(unittest.TestCase):\n"
    "    def test_total_is_the_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n",
}


@pytest.mark.e2e
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_of_a_page_run_as_printed(
    tmp_path: Path, tiller_dirs: TillerDirs, covered_env: dict[str, str], name: str
) -> None:
    project = tmp_path / "shop"
    text = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    blocks: list[tuple[str, str, str]] = BLOCK.findall(text)
    files = {file: code for file, _, code in blocks if file}
    for path, content in (FILES | files).items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content, encoding="utf-8")
    # The first step of every reader, on the pages of editors and of the terminal.
    settings = '{"defaultProvider": "embedded", "defaultModel": "repair"}'
    (tiller_dirs.config / "settings.json").write_text(settings, encoding="utf-8")
    script = "".join(code for _, language, code in blocks if language == "sh")
    assert script
    env = covered_env | {
        "CI": "true",  # runs take place in the process that is started
        "PATH": f"{Path(sys.executable).parent}:{covered_env.get('PATH', '')}:/usr/bin:/bin",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'server'}",
    }
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "The tests fail" in script or "repair.py" in files:
        repaired = FILES["prices.py"].replace("amuont", "amount")
        assert (project / "prices.py").read_text(encoding="utf-8") == repaired
