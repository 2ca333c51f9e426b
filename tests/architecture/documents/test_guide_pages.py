"""The shell blocks of the guide run as printed, in a project whose test fails and with the files that the page names."""

import re
import sys
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.harness.shared import ROOT
from tests.support.programs.page_commands import PROJECT, run_script

PAGES = (
    "changes", "compaction", "hooks", "library", "models", "permissions", "prompts", "sessions",
    "skills", "troubleshooting", "trust",
)  # fmt: skip
BLOCK = re.compile(r"(?:^In `([^`~]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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
    for path, content in (PROJECT | files).items():
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
    run_script(script, cwd=project, env=env)
    if any("The tests fail" in text for text in (script, *files.values())) or "repair.py" in files:
        repaired = PROJECT["prices.py"].replace("amuont", "amount")
        assert (project / "prices.py").read_text(encoding="utf-8") == repaired
