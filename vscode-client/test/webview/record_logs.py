# ruff: noqa: INP001 - a script of the extension, in no package
"""Records what a real daemon sends a panel, as logs for the tests of the panel.

`python vscode-client/test/webview/record_logs.py [NAME…]` writes `fixtures/NAME.json` beside itself.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.support.clients.server import Ground, calls, prompt  # noqa: E402
from tests.support.harness.isolation import TillerDirs, isolated  # noqa: E402 - the root is no package
from tests.support.lsp.lsp_answers import LeavesOpen  # noqa: E402
from tests.support.lsp.lsp_client import RawClient  # noqa: E402
from tests.support.lsp.lsp_profiles import PANEL  # noqa: E402
from tests.support.provider import LoopbackProvider  # noqa: E402

Json = dict[str, Any]
LOGS = Path(__file__).parent / "fixtures"
MODELS_KEPT = 40
LINES = "".join(f"line {number}\n" for number in range(1, 31))
ANSWER = """\
The three lines are **upper case** now.

- `a.txt` line 2
- `a.txt` line 15

```python
def shout(text: str) -> str:
    return text.upper()
```

| file | lines |
| --- | --- |
| a.txt | 3 |
"""


async def edits(ground: Ground, client: RawClient) -> Json:
    """Three hunks in one file, one of them rejected."""
    ground.file("a.txt", LINES)
    swaps = [{"oldText": f"line {n}\n", "newText": f"LINE {n}\n"} for n in (2, 15, 29)]
    ground.provider.script(
        [
            {"thinking": "Let me look at the file first.", **calls(("read", {"path": "a.txt"}))},
            calls(("edit", {"path": "a.txt", "edits": swaps}), text="I change three lines."),
            {"text": ANSWER},
        ]
    )
    await client.request(
        "agent/prompt", prompt("Write lines 2, 15 and 29 in upper case.", wait=True)
    )
    changes = await client.request("agent/changes/list", {})
    second = changes["files"][0]["hunks"][1]["id"]
    verdict = {"items": [{"hunk": second, "action": "reject"}]}
    resolved = await client.request("agent/changes/resolve", verdict)
    after = await client.request("agent/changes/list", {})
    return {"before": changes, "resolved": resolved, "changes": after}


async def permission(ground: Ground, client: RawClient) -> Json:
    """A command that is asked for, allowed and run; a second one that is refused."""
    client.handlers["agent/permission"] = LeavesOpen()
    commands = [
        ("bash", {"command": "touch made.txt && echo made"}),
        ("bash", {"command": "rm made.txt"}),
    ]
    ground.provider.script([*(calls(one) for one in commands), {"text": "Made it; it stays."}])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.request("agent/prompt", prompt("Make a file.", wait=True)))
        for wanted in ("allowOnce", "rejectOnce"):
            asked = await _pending(client)
            option = next(one for one in asked["options"] if one["kind"] == wanted)
            answer = {"request": asked["request"], "option": option["id"]}
            await client.request("agent/permission/respond", answer)
    return {}


async def steering(ground: Ground, client: RawClient) -> Json:
    """A long command, words that steer it, words that wait, and a stop."""
    command = "for i in 1 2 3 4 5 6; do printf '\\033[32mstep %s\\033[0m\\n' $i; sleep 0.2; done; sleep 30"
    ground.provider.script(
        [
            calls(("bash", {"command": command, "timeout": 60}), text="Running the build."),
            {"text": "Stopped."},
        ]
    )
    await client.request("agent/prompt", prompt("Run the build."))
    await _event(client, "tool.output.delta")
    await client.request("agent/steer", prompt("Only the first three steps."))
    await client.request("agent/followUp", prompt("Then tell me how long it took."))
    await asyncio.sleep(1.0)
    await client.request("agent/run/cancel", {"queue": "keep"})
    return {}


async def failing(ground: Ground, client: RawClient) -> Json:
    """A provider that fails once, then for good."""
    ground.provider.script(
        [
            {"status": 500, "body": {"error": {"message": "overloaded"}}},
            {"status": 500, "body": {"error": {"message": "overloaded"}}},
            {"text": "Here I am again."},
            {"status": 401, "body": {"error": {"message": "invalid api key"}}},
            {"status": 401, "body": {"error": {"message": "invalid api key"}}},
        ]
    )
    await client.request("agent/prompt", prompt("Hello?", wait=True), timeout_s=60)
    await client.request("agent/prompt", prompt("And now?", wait=True), timeout_s=60)
    ground.provider.script([{"text": "A summary of what was said."}])
    await client.request("agent/compact", {"keepRecentTokens": 1})
    await asyncio.sleep(1.0)
    return {}


async def shell(ground: Ground, client: RawClient) -> Json:
    """A command of the user's own, a title, a model and a label."""
    del ground
    await client.request("agent/bash", {"command": "echo one; echo two"})
    await client.request("agent/session/rename", {"title": "A first look"})
    listed = await client.request("agent/model/list", {"scope": "all"})
    models = sorted(listed["models"], key=lambda one: one["provider"] != "lab")
    return {
        "agent/model/list": {**listed, "models": models[:MODELS_KEPT]},
    }


GATE = """
from agent_core.extensions import ListView, Row

def extension(api):
    @api.command()
    async def choose(words, ctx):
        ctx.ui.status("s", "watching 3 files")
        ctx.ui.widget("w", ListView(title="To do", rows=[Row(text="read", done=True), Row(text="write")]))
        ctx.ui.notify("look here", "warning")
        answer = await ctx.ui.select("Which colour shall it be?", ["Blue", "Green", "None"])
        ctx.ui.set_editor_text(f"Make it {answer}.")
"""


async def question(ground: Ground, client: RawClient) -> Json:
    """A command of an extension that asks for a choice and shows what an extension can show."""
    del ground
    client.handlers["agent/question"] = LeavesOpen()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.request("agent/prompt", prompt("/choose", wait=True)))
        asked = await _pending(client)
        (line,) = asked["questions"]
        chosen = line["options"][0]["id"]
        answer = {"request": asked["request"], "answers": {line["id"]: chosen}}
        await client.request("agent/question/respond", answer)
    return {}


async def thinking(ground: Ground, client: RawClient) -> Json:
    """A thought, words after it, and three calls at once, one of which fails."""
    ground.file("a.py", "def add(a, b):\n    return a - b\n")
    three = [
        ("read", {"path": "a.py"}),
        ("read", {"path": "gone.py"}),
        ("grep", {"pattern": "return", "path": "."}),
    ]
    looked = calls(*three, text="I look at **three** things at once.")
    ground.provider.script(
        [
            {"thinking": "The sum is wrong.\nLet me see where it is made.", **looked},
            {"thinking": "It subtracts.", "text": "`add` subtracts: see [a.py](a.py:2)."},
        ]
    )
    await client.request("agent/prompt", prompt("Why is the sum wrong?", wait=True))
    return {}


SCENES: dict[str, tuple[Callable[[Ground, RawClient], Awaitable[Json]], Json]] = {
    "edits": (edits, {}),
    "permission": (permission, {"permission": {"mode": "ask"}, "sandbox": "off"}),
    "steering": (steering, {}),
    "failing": (failing, {"retry": {"baseDelayMs": 100}}),
    "shell": (shell, {}),
    "question": (question, {"sandbox": "off"}),
    "thinking": (thinking, {"api": "anthropic-messages"}),
}


async def _event(client: RawClient, kind: str) -> None:
    await client.wait_for(lambda one: kind in json.dumps(one), timeout_s=20)


async def _pending(client: RawClient) -> Json:
    async with asyncio.timeout(20):
        while True:
            pending = (await client.request("agent/session/open", {}))["pending"]
            if pending:
                return pending[0]
            await asyncio.sleep(0.05)


async def record(name: str) -> None:
    """Play one scene against a server of its own and write what its subscriber saw."""
    scene, settings = SCENES[name]
    with tempfile.TemporaryDirectory() as base, LoopbackProvider() as provider:
        dirs = TillerDirs.below(Path(base))
        dirs.make()
        root = Path(base) / "project"
        root.mkdir()
        env = isolated(dict(os.environ), dirs=dirs)  # noqa: TID251 - a recorder, no product code
        ground = Ground(dirs=dirs, env=env, provider=provider, root=root)
        ground.configure(**settings)
        extensions = dirs.config / "extensions"
        extensions.mkdir()
        (extensions / "gate.py").write_text(GATE, encoding="utf-8")
        async with ground.client(PANEL) as client:
            await client.request("agent/session/open", {})
            client.call("agent/subscribe", {"partialResultToken": "panel"})
            await client.wait_for(lambda one: "agent/snapshot" in json.dumps(one))
            answers = await scene(ground, client)
            await asyncio.sleep(0.5)
            read = await client.request("agent/session/read", {})
            frames = client.progress["panel"]
        log = {"name": name, "frames": frames, "items": read["items"], "answers": answers}
        text = json.dumps(log, indent=1, ensure_ascii=False)
        text = text.replace(str(root), "/home/ada/project").replace(str(base), "/work")
        (LOGS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(name, len(frames), "frames", len(text), "characters")  # noqa: T201 - a script


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SCENES:
        asyncio.run(record(chosen))
