"""`/remember` in `tiller chat`, and proposed entries from the command line."""

import json
import subprocess
import sys

import pytest

from tests.e2e.chat.test_cli_chat import chat, leave
from tests.support.clients.server import Ground, says

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_a_text_is_remembered_and_the_next_session_has_it(ground: Ground) -> None:
    ground.configure(sandbox="off", defaultProjectTrust="always")
    ground.provider.script([says("Noted."), says("Docker.")])
    with chat(ground) as window:
        window.line("/remember")
        _ = window.until("/remember takes a text")
        window.line("/remember Integration tests need Docker")
        _ = window.until("Switch it on?")
        window.line("1")
        _ = window.until("Remembered for this project")
        window.line("/remember --user Answer briefly")
        _ = window.until("Remembered for all your projects")
        assert leave(window) == 0
    with chat(ground) as window:
        window.line("What do tests need?")
        _ = window.until("Noted.")
        assert leave(window) == 0
    body = json.dumps(ground.provider.requests[0]["body"])
    assert "Integration tests need Docker" in body
    assert "Answer briefly" in body


def test_entries_are_proposed_from_the_prompts_shown_and_accepted(ground: Ground) -> None:
    line = '{"prompt": 1, "kind": "decision", "text": "Deploys happen on Tuesdays"}'
    ground.configure(sandbox="off", defaultProjectTrust="always")
    ground.provider.script([says("Noted."), says(line)])
    assert tiller(ground, "run", "We deploy on Tuesdays").stdout == "Noted.\n"
    assert tiller(ground, "memory", "on").returncode == 0
    early = tiller(ground, "memory", "consolidate", "--if-idle", "5", "--model", "lab/m")
    assert early.stdout == "a session changed in the last 5 minutes; nothing was done\n"
    made = tiller(ground, "memory", "consolidate", "--model", "lab/m")
    assert (made.returncode, "prompts looked at: 1; tokens: " in made.stderr) == (0, True), made
    assert "+Deploys happen on Tuesdays\n" in made.stdout
    body = ground.provider.requests[-1]["body"]
    assert "tools" not in body
    assert "Noted." not in json.dumps(body)
    costs = json.loads(tiller(ground, "costs", "--by", "purpose", "--json").stdout)
    assert {one["key"]: one["calls"] for one in costs["sums"]} == {"main": 1, "memory": 1}
    assert tiller(ground, "memory", "list").stdout == ""
    accepted = tiller(ground, "memory", "accept")
    assert accepted.stdout.endswith(": Deploys happen on Tuesdays\n")
    assert "Deploys happen on Tuesdays" in tiller(ground, "memory", "list").stdout


def tiller(ground: Ground, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the project."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "tiller_server.cli.entry", *arguments],
        cwd=ground.root,
        env=dict(ground.env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
