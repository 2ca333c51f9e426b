"""Without a grammar that works no line is plain, and what must be refused is still found."""

import subprocess
import sys

import pytest

from tests.support.harness.shared import ROOT

CHECK = """
from agent_core.workspace.permissions.shell import mentioned, read_command
print(read_command("git status").reason)
print(mentioned("ls $(rm -rf x)"))
"""
BROKEN = {
    "absent": "import sys; sys.modules['tree_sitter_bash'] = None",
    "a parser that is absent": "import sys; sys.modules['tree_sitter'] = None",
    "of another kind": (
        "import sys, types; odd = types.ModuleType('tree_sitter_bash');"
        "odd.language = lambda: None; sys.modules['tree_sitter_bash'] = odd"
    ),
    "raising": (
        "import sys, types; odd = types.ModuleType('tree_sitter_bash');\n"
        "def language(): raise ValueError('Incompatible Language version')\n"
        "odd.language = language; sys.modules['tree_sitter_bash'] = odd"
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_grammar_that_does_not_work_means_no(how: str, child_env: dict[str, str]) -> None:
    told = subprocess.run(
        [sys.executable, "-c", BROKEN[how] + CHECK],
        cwd=ROOT, env=child_env, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert "grammar of bash (tree-sitter-bash) is missing" in told[0]
    assert "('rm', '-rf', 'x')" in told[1]
