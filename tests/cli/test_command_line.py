"""`tiller --help` and `--version` answer at once: before a command is named, none is imported."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT
from tiller_server import VERSION
from tiller_server.cli import subcommands
from tiller_server.cli.command_line import COMMANDS, expanded
from tiller_server.cli.entry import ON_WINDOWS, main

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

Tiller: a coding agent for your editor (over LSP), your terminal and your scripts.

positional arguments:
  COMMAND
    chat      start a conversation in the terminal
    run       answer one prompt and print the answer
    rpc       serve a program that speaks pi's RPC protocol
    review    review the changes between two commits
    eval      run an agent on tasks with known solutions
    web       serve your sessions to the browser on this machine
    lark      serve your sessions to Feishu or Lark
    slack     serve your sessions to Slack
    fleet     run jobs for many repositories on one machine or many
    share     share a session as a page behind a link that expires
    sessions  list, search, show and export sessions
    memory    list, add and remove what Tiller remembers
    costs     show what model calls cost
    worktree  list, compare, merge and remove worktrees
    auth      sign in to model providers, and out
    models    list models, choose the default, add a server
    config    show and change settings
    policy    list, add and remove permission rules
    mcp       list, test, add, remove and switch MCP servers
    ext       write, check, pack and install extension packages
    trust     list, add and remove trusted folders
    doctor    check this machine and suggest repairs
    daemon    start, stop and inspect the background process
    trace     record or replay an editor connection
    demo      watch the agent repair a small project
    completion
              print a completion script for your shell
    lsp       serve an editor over standard input and output
    acp       serve a client of the Agent Client Protocol, in the same way

options:
  -h, --help  show this help message and exit
  --version   show program's version number and exit

tiller                        start a conversation in this folder
tiller "Fix the tests"        start one with this prompt
tiller -c                     continue the latest session; -r chooses one
tiller -p "Fix the tests"     answer one prompt and print it, as tiller run does
tiller COMMAND --help         show the options of a command
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


def test_the_version_needs_three_modules_beside_those_of_an_interpreter(
    child_env: dict[str, str],
) -> None:
    argv = [sys.executable, "-S", "-c", "import os, sys; print(*sys.modules)"]
    bare = subprocess.run(
        argv, capture_output=True, text=True, env=child_env, timeout=20, check=True
    )
    _, _, modules = ask("--version", env=child_env)
    added = modules - set(bare.stdout.split())
    assert added == {"tiller_server", "tiller_server.cli", "tiller_server.cli.entry"}


def test_on_windows_it_says_at_its_start_that_it_was_not_run_there(
    child_env: dict[str, str],
) -> None:
    code = "import sys; from tiller_server.cli import entry; sys.platform = 'win32'; entry.main(['help'])"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=child_env,
        timeout=20,
        check=False,
    )
    assert ran.stdout.startswith("usage: tiller ")
    assert ran.stderr == ON_WINDOWS


def test_the_table_of_commands_names_every_module_that_is_one() -> None:
    folder = Path(subcommands.__file__).parent
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    modules |= {file.parent.name for file in folder.glob("*/__init__.py")}
    assert set(COMMANDS) == modules


@pytest.mark.parametrize(
    ("typed", "at_terminal", "elsewhere"),
    [
        ([], ["chat"], []),
        (["-c"], ["chat", "-c"], ["run", "-c"]),
        (["-m", "sonnet", "fix it"], ["chat", "-m", "sonnet", "fix it"], ["run", "-m", "sonnet", "fix it"]),
        (["Fix the tests"], ["chat", "Fix the tests"], ["run", "Fix the tests"]),
        (["explain"], ["chat", "explain"], ["explain"]),
        (["-p", "Fix the tests"], ["run", "Fix the tests"], ["run", "Fix the tests"]),
        (["--print", "-c", "x"], ["run", "-c", "x"], ["run", "-c", "x"]),
        (["-c", "-p", "x"], ["run", "-c", "x"], ["run", "-c", "x"]),
        (["x", "--print"], ["run", "x"], ["run", "x"]),
        (["run", "-p", "x"], ["run", "x"], ["run", "x"]),
        (["run", "--", "-p"], ["run", "--", "-p"], ["run", "--", "-p"]),
        (["runn"], ["runn"], ["runn"]),
        (["help"], ["--help"], ["--help"]),
        (["help", "run"], ["run", "--help"], ["run", "--help"]),
        (["--version"], ["--version"], ["--version"]),
        (["review", "-p"], ["review", "-p"], ["review", "-p"]),
        # Options that are named nearly as a command is.
        (["--trust", "-m", "x"], ["chat", "--trust", "-m", "x"], ["run", "--trust", "-m", "x"]),
    ],
)  # fmt: skip
def test_without_a_command_a_prompt_begins_a_conversation(
    typed: list[str], at_terminal: list[str], elsewhere: list[str]
) -> None:
    assert expanded(typed, is_terminal=True) == at_terminal
    assert expanded(typed, is_terminal=False) == elsewhere


@pytest.mark.parametrize(
    ("typed", "usage", "told"),
    [
        (["runn"], "usage: tiller ", "unknown value 'runn'; did you mean run?"),
        (["run", "--jsn", "x"], "usage: tiller run ", "unknown option --jsn; did you mean --json?"),
        (["run", "--bugdet-usd=3", "x"], "usage: tiller run ", "did you mean --budget-usd?"),
        (["trust", "lst"], "usage: tiller trust ", "'lst'; did you mean list?"),
        (["trust", "list", "--jsno"], "usage: tiller trust list ", "did you mean --json?"),
        (["run", "--permission", "yol"], "usage: tiller run ", "'yol'; did you mean yolo?"),
        (["completion", "bash", "more"], "usage: tiller completion ", "unexpected argument 'more'"),
    ],
)
def test_a_mistake_shows_the_usage_of_its_command_and_the_nearest_word(
    capsys: pytest.CaptureFixture[str], typed: list[str], usage: str, told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        _ = main(typed)
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith(usage)
    assert told in said


def test_the_script_completes_commands_and_options_in_bash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (bash := shutil.which("bash")) is None:
        pytest.skip("bash is not installed")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "tiller.bash"
    script.write_text(capsys.readouterr().out, "utf-8")
    asked = f"""
source {script}
function=$(complete -p tiller); function=${{function#*-F }}; function=${{function%% *}}
COMP_WORDS=(tiller ""); COMP_CWORD=1; $function tiller "" tiller; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(tiller run --bud); COMP_CWORD=2; $function tiller --bud run; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(tiller run --permission y); COMP_CWORD=3; $function tiller y --permission; echo "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(
        [bash, "-c", asked], capture_output=True, text=True, timeout=20, check=True
    )
    commands, option, mode = ran.stdout.splitlines()
    assert {*COMMANDS} <= {*commands.split()}
    assert (option, mode) == ("--budget-usd", "yolo")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_other_shells_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "tiller"
    script.write_text(capsys.readouterr().out, "utf-8")
    assert "budget-usd" in script.read_text("utf-8")
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed")
    _ = subprocess.run([program, "-n", str(script)], timeout=20, check=True)
