"""`--allow`: a command runs without a question in one run or conversation, and in no other."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.daemon_runs import BOTH_WAYS
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import Ran, tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
RUN_WAYS = BOTH_WAYS

ALLOW_TOUCH = ("--allow", "touch made")
UNCONTAINED: Mapping[str, Any] = {
    "permission": {"mode": "ask"},
    "sandbox": "off",
    "defaultProjectTrust": "always",
}


def touch(ground: Ground, *arguments: str, command: str = "touch made") -> Ran:
    """Run a prompt whose model calls one command."""
    ground.provider.script([calls(("bash", {"command": command})), says("done")])
    return tiller(ground, "run", "--json", *arguments, "touch it")


def statuses(ran: Ran) -> list[str]:
    return [event["status"] for event in ran.lines if event["type"] == "tool.ended"]


def files_below(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("policy.json")}


def test_an_allowed_command_runs_in_this_run_and_in_no_other(ground: Ground) -> None:
    ground.configure(**UNCONTAINED)
    before = touch(ground)
    assert (before.code, statuses(before)) == (0, ["blocked"])
    assert "To allow it: `--allow 'touch made'`, or a rule for" in json.dumps(before.lines)
    allowed = touch(ground, *ALLOW_TOUCH)
    assert (allowed.code, allowed.err, statuses(allowed)) == (0, "", ["ok"])
    assert (ground.root / "made").exists()
    session = allowed.lines[0]["id"]
    assert statuses(touch(ground)) == ["blocked"]
    assert statuses(touch(ground, "--resume", session)) == ["blocked"]
    assert files_below(ground.dirs.config, ground.dirs.data, ground.root) == set()


@pytest.mark.parametrize(
    "command", ["touch other", "touch made && mkdir more", "sh -c 'touch made'"]
)
def test_a_command_that_begins_otherwise_is_not_allowed(ground: Ground, command: str) -> None:
    ground.configure(**UNCONTAINED)
    assert statuses(touch(ground, *ALLOW_TOUCH, command=command)) == ["blocked"]


def test_several_rules_allow_a_line_of_several_commands(ground: Ground) -> None:
    ground.configure(**UNCONTAINED)
    line = "touch made && mkdir more"
    assert statuses(touch(ground, *ALLOW_TOUCH, "--allow", "mkdir", command=line)) == ["ok"]
    assert (ground.root / "more").is_dir()


@pytest.mark.parametrize("origin", ["user", "repository"])
@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_a_rule_that_denies_or_asks_prevails(ground: Ground, origin: str, verdict: str) -> None:
    ground.configure(**UNCONTAINED)
    rules = [{"tool": "bash", "verdict": verdict, "argvPrefix": ["touch"]}]
    folder = ground.dirs.config if origin == "user" else ground.root / ".tiller"
    folder.mkdir(exist_ok=True)
    (folder / "policy.json").write_text(json.dumps({"version": 1, "rules": rules}), "utf-8")
    assert statuses(touch(ground, *ALLOW_TOUCH)) == ["blocked"]
    assert not (ground.root / "made").exists()


@pytest.mark.parametrize("restriction", ["not trusted", "plan"])
def test_a_folder_that_is_not_trusted_and_the_plan_mode_stay_read_only(
    ground: Ground, restriction: str
) -> None:
    trust = "never" if restriction == "not trusted" else "always"
    ground.configure(**{**UNCONTAINED, "defaultProjectTrust": trust})
    mode = ["--permission", "plan"] if restriction == "plan" else []
    assert statuses(touch(ground, *ALLOW_TOUCH, *mode)) == ["blocked"]
    assert not (ground.root / "made").exists()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("", "--allow names no command. example: --allow 'npm test'"),
        (
            "npm 'test",
            '--allow "npm \'test" cannot be read: a quotation mark is not closed, or a backslash ends it',
        ),
        (
            "no-such-program x",
            "no rule can allow 'no-such-program x': the program 'no-such-program' was not found on the PATH outside of the workspace",
        ),
        (
            "sudo make",
            "no rule can allow 'sudo make': 'sudo' starts or changes other commands, so no rule allows it",
        ),
    ],
    ids=["empty", "quotation", "missing program", "wrapper"],
)
def test_a_rule_that_cannot_hold_ends_the_command_before_anything_starts(
    ground: Ground, rule: str, message: str
) -> None:
    ran = tiller(ground, "run", "--allow", rule, "hello")
    assert (ran.code, ran.out, ran.err) == (2, "", f"tiller run: {message}\n")
    assert (ground.provider.requests, ground.sessions()) == ([], [])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminal")
def test_a_conversation_runs_what_it_allows_also_after_new(ground: Ground) -> None:
    ground.configure(**UNCONTAINED)
    call = calls(("bash", {"command": "touch made"}))
    ground.provider.script([call, says("First."), call, says("Second.")])
    with terminal(ground, ["chat", *ALLOW_TOUCH], columns=100, lines=30) as window:
        _ = window.until("permission")
        window.line("touch it")
        _ = window.until("First.")
        _ = window.until("done ·")
        (ground.root / "made").unlink()
        window.line("/new")
        _ = window.until("Ctrl-D quits")
        window.line("touch it again")
        _ = window.until("Second.")
        _ = window.until("done ·")
        window.type("\x04")
        assert window.end() == 0
    assert (ground.root / "made").exists()
