"""Permission without a person: a policy file decides, and what it does not allow is refused at once."""

import json
import re
import time

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.harness.shared import ROOT
from tests.support.programs.terminal import tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

PAGE = ROOT / "docs/terminal/README.md"
TRIED = ("touch allowed", "touch /etc/passwd", "chmod 777 denied", "mkdir unnamed")
NEVER_S = 60.0


def policy(ground: Ground, text: str) -> None:
    (ground.dirs.config / "policy.json").write_text(text, "utf-8")


def test_the_page_shows_a_policy_that_works(ground: Ground) -> None:
    block = re.search(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    policy(ground, block[1])
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    for command, verdict in (("npm test", "allow"), ("git push", "deny"), ("npm run x", "ask")):
        ran = tiller(ground, "policy", "explain", "--", command)
        assert ran.code == 0
        assert verdict in ran.out, ran.out


def test_what_the_policy_allows_runs_and_the_rest_is_refused_without_waiting(
    ground: Ground,
) -> None:
    rules = [
        {"tool": "bash", "verdict": "allow", "argvPrefix": ["touch"]},
        {"tool": "bash", "verdict": "deny", "argvPrefix": ["chmod"]},
    ]
    policy(ground, json.dumps({"version": 1, "rules": rules}))
    ground.configure(
        permission={"mode": "ask", "timeoutS": NEVER_S * 10},
        sandbox="off",
        defaultProjectTrust="always",
    )
    ground.file("denied", "x")
    ground.provider.script([calls(("bash", {"command": one})) for one in TRIED] + [says("done")])
    begun = time.monotonic()
    ran = tiller(ground, "run", "--json", "try them")
    took_s = time.monotonic() - begun
    print(f"four commands under a policy: {took_s:.1f} s")
    ended = [event["status"] for event in ran.lines if event["type"] == "tool.ended"]
    assert ended[0] == "ok"
    assert ended[2:] == ["blocked", "blocked"]
    assert (ground.root / "allowed").exists()
    assert not (ground.root / "unnamed").exists()
    assert took_s < NEVER_S


def test_a_policy_that_cannot_be_read_allows_nothing_and_is_told(ground: Ground) -> None:
    policy(ground, '{"rules": [oops]}')
    ground.configure(permission={"mode": "yolo"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    ran = tiller(ground, "run", "touch it")
    assert "policy.json" in ran.err
    assert not (ground.root / "made").exists()


def test_doctor_asks_the_model_when_it_is_told_to(ground: Ground) -> None:
    ground.provider.script([says("ready")])
    asked = tiller(ground, "doctor", "--ask", "--json")
    row = next(one for one in json.loads(asked.out)["checks"] if one["name"] == "answer")
    assert (row["status"], row["found"].startswith("lab/m answered in")) == ("ok", True)
    assert ground.sessions() == []
    ground.provider.script([{"status": 401}])
    refused = tiller(ground, "doctor", "--ask", "--json")
    row = next(one for one in json.loads(refused.out)["checks"] if one["name"] == "answer")
    assert (row["status"], "401" in row["found"]) == ("missing", True)
