"""Every answer has the shape that the wire's own schema says."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from anyio import to_thread
from pydantic import TypeAdapter

from agent_core.resources.paths import app_paths
from agent_core.storage.adapters.attachments import Attachments
from agent_core.storage.adapters.paths import attachments_folder
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.lsp.lsp_subscription import Subscription
from tests.support.provider.images import PNG
from tiller_server.lsp.methods import METHODS as BUILT
from tiller_server.lsp.wire.methods import METHODS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


def check(method: str, result: Any) -> None:
    """Hold a result against the shape of its method: unknown fields fail, and so do Python's names for fields."""
    shape: Any = METHODS[method].result
    TypeAdapter(shape).validate_python(result, extra="forbid", by_alias=True, by_name=False)


SMALL_METHODS: dict[str, dict[str, Any]] = {
    "permission/rules": {"op": "list"},
    "permission/respond": {"request": "none", "option": "rejectOnce"},
    "question/respond": {"request": "none", "cancelled": True},
    "queue/update": {"ops": []},
    "changes/list": {"format": "gitPatch"},
    "changes/resolve": {"items": [{"hunk": "none", "action": "accept"}], "note": "n"},
    "session/stats": {},
    "session/read": {},
    "command/list": {},
    "command/complete": {"name": "greet", "prefix": "l"},
    "auth/status": {},
    "auth/login": {"provider": "lab"},
    "auth/logout": {"provider": "lab"},
    "extension/list": {},
    "extension/press": {"key": "Ctrl+K"},
    "resources/reload": {},
}
GREETS = """
def extension(api):
    @api.command(complete=lambda prefix: ["loudly"])
    async def greet(words, ctx):
        await api.send_message("hello", custom_type="greeting")

    @api.shortcut("Ctrl+K")
    def wave(ctx):
        ctx.ui.notify("hello")

    @api.message_renderer("greeting")
    def card(message):
        return None
"""


async def ask_in_passing(
    ground: Ground, ask: Callable[[str, dict[str, Any]], Awaitable[Any]], stream: Subscription
) -> None:
    """Ask what is not part of the story."""
    stored = await to_thread.run_sync(
        Attachments(attachments_folder(app_paths(ground.env).sessions)).put_now, PNG
    )
    await ask("agent/blob/read", {"blob": stored.blob})
    await ask("agent/blob/store", {"uri": ground.file("notes.txt", "notes").as_uri(), "size": 5})
    for name, params in SMALL_METHODS.items():
        await ask(f"agent/{name}", params)
    await ask("agent/background/move", {})
    await ask("agent/background/stop", {"id": "bg1"})
    await change_and_go_back(ground, ask)
    await fail_and_retry(ground, ask)
    await render(ask)
    await give_a_task(ground, ask, stream)


async def run_ended(stream: Subscription, answer: str) -> None:
    """Wait until the run with an answer has ended."""
    content = [{"type": "text", "text": answer}]
    message = await stream.wait(type="message.ended", content=content)
    await stream.wait(type="run.ended", after=message["seq"])


async def give_a_task(
    ground: Ground, ask: Callable[[str, dict[str, Any]], Awaitable[Any]], stream: Subscription
) -> None:
    """Have a task given, stop it, continue it and stop it again."""
    task = {"description": "x", "prompt": "CHILD: x", "background": True}
    stuck = {**says("never"), "stall_forever_after_deltas": 0}
    ground.provider.script(
        [
            {**calls(("task", task)), "when": "give it"},
            {**says("I wait."), "when": "in the background"},
            {**says("Pity."), "when": "was stopped"},
            {**says("What a pity."), "when": "was stopped"},
            {**stuck, "repeat": -1},
        ]
    )
    await ask("agent/prompt", prompt("give it", wait=True))
    stopped = await ask("agent/task/stop", {"id": "t1"})
    assert stopped["state"] == "cancelled"
    await run_ended(stream, "Pity.")
    resumed = await ask("agent/task/resume", {"id": "t1"})
    assert resumed["state"] == "queued"
    assert (await ask("agent/task/stop", {"id": "t1"}))["state"] == "cancelled"
    await run_ended(stream, "What a pity.")
    assert (await ask("agent/costs", {"by": "purpose"}))["total"]["calls"] > 0
    await merge_a_task(ground, ask)


async def merge_a_task(
    ground: Ground, ask: Callable[[str, dict[str, Any]], Awaitable[Any]]
) -> None:
    """Have a task change a file in a worktree, merge that and remove the worktree."""
    ground.commit()
    task = {"description": "x", "prompt": "CHILD: y", "isolation": "worktree"}
    ground.provider.script(
        [
            {**calls(("task", task)), "when": "give another"},
            {**calls(("write", {"path": "of-task.txt", "content": "x\n"})), "when": "CHILD: y"},
            {**says("Written."), "repeat": -1},
        ]
    )
    await ask("agent/prompt", prompt("give another", wait=True))
    await ask("agent/task/changes", {"id": "t2"})
    await ask("agent/task/merge", {"id": "t2"})
    await ask("agent/task/discard", {"id": "t2"})


async def render(ask: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
    """Ask for the view of a message of an extension."""
    await ask("agent/prompt", prompt("/greet all"))
    told: list[str] = []
    while not told:
        tree = await ask("agent/session/tree", {})
        told = [one["entry"] for one in tree["nodes"] if one["preview"] == "hello"]
    await ask("agent/extension/render", {"entry": told[0]})


async def fail_and_retry(
    ground: Ground, ask: Callable[[str, dict[str, Any]], Awaitable[Any]]
) -> None:
    """Retry a run that failed."""
    ground.provider.script([{"status": 400}, says("at last")])
    failed = await ask("agent/prompt", prompt("once more", wait=True))
    await ask("agent/run/retry", {"run": failed["run"]})


async def change_and_go_back(
    ground: Ground, ask: Callable[[str, dict[str, Any]], Awaitable[Any]]
) -> None:
    """Take back what a run wrote."""
    ground.provider.script([calls(("write", {"path": "new.txt", "content": "x\n"})), says("done")])
    await ask("agent/prompt", prompt("write it", wait=True))
    listed = await ask("agent/checkpoint/list", {})
    named = {"checkpoint": listed["checkpoints"][0]["checkpoint"], "scope": "files"}
    previewed = await ask("agent/checkpoint/preview", named)
    assert [one["status"] for one in previewed["files"]] == ["agentOnly"]
    restored = await ask("agent/checkpoint/restore", named)
    assert restored["restored"] == [(ground.root / "new.txt").as_uri()]
    assert not (ground.root / "new.txt").exists()


@pytest.fixture(autouse=True)
def greets(ground: Ground) -> None:
    extension = ground.dirs.config / "extensions" / "greets.py"
    extension.parent.mkdir(parents=True)
    extension.write_text(GREETS, encoding="utf-8")


async def test_every_built_method_answers_in_its_shape(ground: Ground) -> None:
    begin = calls(("bash", {"command": "sleep 60", "background": True}))
    ground.provider.script([begin, says("one"), says("two"), says("three"), says("four")])
    seen: set[str] = set()
    async with ground.client(PANEL) as client:

        async def ask(method: str, params: dict[str, Any]) -> Any:
            result = await client.request(method, params)
            check(method, result)
            seen.add(method)
            return result

        await ask("agent/session/open", {})
        await ask("agent/session/configure", {"set": {"thinking": "low"}})
        stream = client.subscribe()
        await stream.ready()
        await ask("agent/prompt", prompt("hi"))
        await stream.wait(type="run.ended")
        await ask("agent/prompt", prompt("hi", wait=True))
        await ask("agent/steer", {"content": "again"})
        await run_ended(stream, "two")
        await ask("agent/followUp", {"content": "and again"})
        await ask("agent/run/cancel", {})
        await ask("agent/compact", {})
        await ask("agent/status", {})
        await ask("agent/bash", {"command": "echo hi"})
        await ask("agent/model/list", {"scope": "all"})
        for method in ("model", "thinking"):
            await ask(f"agent/{method}/cycle", {"direction": 1} if method == "model" else {})
        tree = await ask("agent/session/tree", {})
        said = next(node["entry"] for node in tree["nodes"] if node["kind"] == "user")
        await ask("agent/session/label", {"entry": said, "label": "the beginning"})
        await ask("agent/session/rename", {"title": "Words"})
        made = await ask("agent/session/fork", {})
        await ask("agent/session/navigate", {"target": said, "label": None})
        await ask_in_passing(ground, ask, stream)
        await ask("agent/session/list", {"query": "hi"})
        await ask("agent/session/export", {"format": "markdown"})
        await ask("agent/session/delete", {"session": made["session"]})
        ended = await stream.unsubscribe()
        check("agent/subscribe", ended)
        seen.add("agent/subscribe")
        check("agent/session/open", stream.snapshot)
        await ask("agent/session/close", {})
    # A review needs a repository, an answer to a plan a plan; both have tests of their own.
    assert seen == set(BUILT) - {"agent/review", "agent/plan/respond"}
