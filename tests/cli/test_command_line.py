"""`tiller --help` and `--version` answer at once: before a command is named, none is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT
from tiller_server import VERSION
from tiller_server.cli import subcommands
from tiller_server.cli.command_line import COMMANDS

PROBE = """
import sys
from tiller_server.cli.entry import main
try:
    code = main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
sys.stdout.flush()
print(code, *sorted(sys.modules), file=sys.stderr)
"""
MOST_MODULES_OF_OURS = 6
HEAVY = {
    "agent_core",
    "msgspec",
    "pydantic",
    "anyio",
    "asyncio",
    "httpx",
    "typing",
    "logging",
    "json",
}

HELP = """usage: tiller [-h] [--version] COMMAND ...

Tiller: a coding agent that lives in the editor's own protocol.

positional arguments:
  COMMAND
    lsp       serve an editor over standard input and output
    run       answer one prompt, without an editor
    chat      talk, and steer while it works
    review    look at the changes between two commits
    demo      watch the agent repair a small project
    sessions  look through stored sessions
    auth      log in to providers and out
    models    list models, and choose one
    config    where settings lie and what they are
    policy    what the permission rules decide about a command
    trust     which workspaces may configure Tiller and be changed by it
    doctor    what works on this machine, and what to do about what does not
    daemon    start, stop or look at the process that serves this user's
              editors
    trace     record a connection for a bug report, or replay one

options:
  -h, --help  show this help message and exit
  --version   show program's version number and exit

tiller COMMAND --help tells more of each. Editors start: tiller lsp
"""


def ask(*arguments: str, env: dict[str, str]) -> tuple[str, str, set[str]]:
    """Return the output of a command, its exit code and the modules that it imported."""
    # Without `site`, whose .pth files import what they like.
    argv = [sys.executable, "-S", "-c", PROBE, *arguments]
    path = f"{ROOT}:{ROOT / 'server'}"
    env = env | {"PYTHONPATH": path, "COLUMNS": "80"}
    ran = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=20, check=True)
    code, *modules = ran.stderr.splitlines()[-1].split(" ")
    return ran.stdout, code, set(modules)


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (("--version",), "0", f"tiller {VERSION}\n"),
        (("--help",), "0", HELP),
        (("-h", "lsp"), "0", HELP),
        ((), "2", HELP),
        (("runn",), "2", ""),
        (("--colour",), "2", ""),
    ],
)
def test_without_a_command_next_to_nothing_is_imported(
    child_env: dict[str, str], arguments: tuple[str, ...], code: str, output: str
) -> None:
    out, ended, modules = ask(*arguments, env=child_env)
    assert ended == code
    assert out == output
    assert modules & HEAVY == set()
    ours = {name for name in modules if name.partition(".")[0] in {"agent_core", "tiller_server"}}
    assert len(ours) <= MOST_MODULES_OF_OURS, ours


def test_the_table_of_commands_names_every_module_that_is_one() -> None:
    folder = Path(subcommands.__file__).parent
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__", "lsp"}
    assert set(COMMANDS) == modules
