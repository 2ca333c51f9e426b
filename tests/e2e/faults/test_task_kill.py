"""`kill -9` of a daemon with tasks in every state: each report is delivered once, no cost is lost, no process is left."""

import json
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.clients.daemons import daemon_process, editor
from tests.support.clients.office import soon
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_client import RawClient, Subscription
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.session.session_files import checked_entries
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap ends commands with the daemon"),
]

Json = dict[str, Any]
SECONDS = "61234"
"""Marks the command of a task."""
AT_THE_KILL = {
    "t1": "completed",
    **dict.fromkeys(("t2", "t3", "t4", "t5"), "running"),
    **dict.fromkeys(("t6", "t7"), "queued"),
}
LOST = {f"t{n}": "lost" for n in range(2, 8)}
REPORTS = {"t1": ["completed"], **{id_: ["was interrupted"] for id_ in LOST}}


def task(what: str, *, background: bool = True) -> tuple[str, Json]:
    asked = {"description": what, "prompt": f"CHILD: {what}", "background": background}
    return ("task", asked)


def stuck(what: str) -> Json:
    return {**says("never"), "when": f"CHILD: {what}", "stall_forever_after_deltas": 0}


SCRIPT = [
    # Four run at once. Calls side by side begin in any order, so the others are calls of later answers.
    {**calls(*map(task, ("end", "stream", "command", "ask"))), "when": "go"},
    {**calls(task("later")), "when": "in the background"},
    # The run waits for the last task, so the report of the first is not read.
    {**calls(task("queued"), task("awaited", background=False)), "when": "in the background"},
    {**says("It ended."), "when": "CHILD: end", "delay_s": 2.0},
    stuck("stream"),
    {**calls(("bash", {"command": f"sleep {SECONDS}"})), "when": "CHILD: command"},
    {
        **calls(("write", {"path": ".vscode/tasks.json", "content": "{}"})),
        "when": "CHILD: ask",
    },
    stuck("later"),
]


@asynccontextmanager
async def window(ground: Ground) -> AsyncGenerator[RawClient]:
    async with await editor(ground.env) as client:
        client.handlers["agent/permission"] = LeavesOpen()
        await client.initialize(PANEL, root=ground.root)
        yield client


def states(stream: Subscription) -> dict[str, str]:
    """Return the state of each task by the newest event about it."""
    told = stream.of("task.created", "task.updated", "task.ended")
    return {event["task"]["id"]: event["task"]["state"] for event in told}


def reports(ground: Ground) -> dict[str, list[str]]:
    """Return what the model was told of each task, by the newest request."""
    told: dict[str, list[str]] = {}
    for message in ground.provider.requests[-1]["body"]["messages"]:
        for id_, how in re.findall(r"Task (t\d) \(\w+\) (completed|was interrupted)", str(message)):
            told.setdefault(id_, []).append(how)
    return dict(sorted(told.items()))


def used_by_files(ground: Ground) -> int:
    """Return the tokens of all answers, by the files of the session and of its tasks."""
    files = [*ground.dirs.data.glob("sessions*/*/*.jsonl")]
    lines = [one for path in files for one in path.read_text("utf-8").splitlines()]
    entries = [json.loads(line) for line in lines]
    answers = [one["message"] for one in entries if one.get("type") == "message"]
    return sum(one["usage"]["totalTokens"] for one in answers if one["role"] == "assistant")


async def test_tasks_in_every_state_survive_the_death_of_the_daemon(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"})
    rule = {"tool": "bash", "argvPrefix": ["sleep"], "verdict": "allow"}
    policy = {"version": 1, "rules": [rule]}
    (ground.dirs.config / "policy.json").write_text(json.dumps(policy), encoding="utf-8")
    ground.provider.script(SCRIPT)
    async with daemon_process(ground.env) as daemon, window(ground) as client:
        opened = await client.request("agent/session/open", {"session": "new"})
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go"))
        await soon(lambda: states(stream) == AT_THE_KILL)
        _ = await stream.wait(type="permission.requested")
        sleeper = processes_with("sleep", SECONDS, at_least=1)
        daemon.kill()
        await daemon.ended()
    assert wait_gone(sleeper) == set()
    ground.provider.script([{**says("Recovered."), "repeat": -1}])
    for word in ("go on", "and on"):
        async with daemon_process(ground.env) as daemon, window(ground) as client:
            again = await client.request("agent/session/open", {"session": opened["session"]})
            assert {one["id"]: one["state"] for one in again["tasks"]} == LOST
            result = await client.request("agent/prompt", prompt(word, wait=True), timeout_s=30)
            assert (result["status"], result["message"]) == ("completed", "Recovered.")
            counted = await client.request("agent/session/stats", {})
            daemon.kill()
            await daemon.ended()
        assert reports(ground) == REPORTS
        _ = checked_entries(*ground.sessions())
        tokens = counted["tokens"]
        kinds = ("in", "out", "cacheRead", "cacheWrite")
        assert sum(tokens[kind] for kind in kinds) == used_by_files(ground)
