"""One real start of each command and of the server for each kind of client: what is forked elsewhere is started here."""

import pytest

from tests.support.clients.server import Ground, prompt, says
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, MINIMAL, PANEL, VSCODE, Profile
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import tiller
from tests.support.workspace.repositories import Repository
from tiller_server.cli.command_line import COMMANDS

pytestmark = [pytest.mark.e2e, pytest.mark.starts, pytest.mark.timeout(60)]

STARTED = {
    "run": (["run", "hi"], 0, "Hello there\n"),
    "rpc": (["rpc", "--in-process", "--no-session"], 0, ""),
    "web": (["web", "--listen", "example.org"], 2, "name an address of this machine"),
    "lark": (["lark"], 2, "channels.lark.appId is not set"),
    "slack": (["slack", "status"], 1, "tiller slack does not run"),
    "fleet": (["fleet", "status"], 0, "there are no jobs"),
    "share": (["share", "--list"], 1, "no tiller web runs, which serves the page; start it first"),
    "review": (["review"], 0, "Hello there"),
    "eval": (["eval", "missing"], 2, "'missing' is not a folder"),
    "demo": (["demo"], 1, "the tests still fail"),
    "sessions": (["sessions", "list"], 0, "no sessions"),
    "memory": (["memory", "list"], 0, "there are no entries"),
    "costs": (["costs"], 0, "no model calls are recorded"),
    "worktree": (["worktree", "list"], 0, "no worktrees"),
    "auth": (["auth", "status"], 0, "lab"),
    "models": (["models", "list"], 0, "lab/m"),
    "config": (["config", "path"], 0, "settings.json"),
    "policy": (["policy", "explain", "ls"], 0, "ls"),
    "ext": (["ext", "list"], 0, "no extension packages are installed"),
    "trust": (["trust", "list"], 0, ""),
    "mcp": (["mcp", "list"], 0, ""),
    "completion": (["completion", "bash"], 0, "_shtab_tiller"),
    "daemon": (["daemon", "status"], 1, "no daemon runs"),
    "trace": (["trace", "replay", "missing.jsonl"], 2, "missing.jsonl"),
}


def test_every_command_is_started_here() -> None:
    assert {*STARTED, "doctor", "chat"} == set(COMMANDS)


@pytest.mark.parametrize("name", STARTED)
def test_a_command_starts_and_does_its_work(ground: Ground, name: str) -> None:
    arguments, code, words = STARTED[name]
    repository = Repository(ground.root)
    repository.commit("Begin", {"a.py": "a = 1\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit("Go on", {"a.py": "a = 2\n"})
    ground.provider.script([{**says("Hello there"), "repeat": -1}])
    ran = tiller(ground, *arguments)
    assert (ran.code, "Traceback" in ran.err) == (code, False), ran
    assert words in ran.out + ran.err


def test_the_doctor_looks_at_the_machine(ground: Ground) -> None:
    ran = tiller(ground, "doctor")
    assert ran.code in {0, 1}, ran
    assert "lab" in ran.out


def test_a_conversation_starts_in_a_terminal(ground: Ground) -> None:
    ground.provider.script([says("Hello there")])
    with terminal(ground, ["chat"]) as window:
        window.line("hi")
        _ = window.until("Hello there")
        window.type("\x04")
        assert window.end() == 0


@pytest.mark.parametrize(
    "profile", [VSCODE, HELIX, EGLOT, MINIMAL, PANEL], ids=lambda profile: profile.name
)
async def test_the_server_starts_for_every_kind_of_client(ground: Ground, profile: Profile) -> None:
    ground.provider.script([says("Hello there")])
    async with ground.client(profile) as client:
        result = await client.request("agent/prompt", prompt("hi", wait=True))
        assert (result["status"], result["message"]) == ("completed", "Hello there")
        await client.shutdown()
        assert await client.exit() == 0
