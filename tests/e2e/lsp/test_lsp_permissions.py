"""Questions over LSP: who is asked, whose answer counts, what a plain editor shows, and what silence means."""

import asyncio
import socket
from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from anyio import to_thread

from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_answers import Chooses, LeavesOpen, Scripted
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11, PANEL, Profile
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import config
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
ASK, SHOW = "agent/permission", "window/showMessageRequest"


class Office:
    """One server process with any number of editors before it."""

    def __init__(self, runtime: Runtime, ground: Ground, stack: AsyncExitStack) -> None:
        self.runtime = runtime
        self.ground = ground
        self.stack = stack

    async def seat(self, profile: Profile, **agent: Any) -> RawClient:
        """Attach an editor to the session of the workspace."""
        client = await self.stack.enter_async_context(_connected(self.runtime))
        options = {"agent": agent} if agent else None
        await client.initialize(profile, root=self.ground.root, options=options)
        await client.request("agent/session/open", {})
        return client


@asynccontextmanager
async def _connected(runtime: Runtime) -> AsyncGenerator[RawClient]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    app = App(runtime)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(app.connection.serve(reader, writer))
        async with await RawClient.over_socket(theirs) as client:
            try:
                yield client
            finally:
                app.connection.close()


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    """Return a server whose sessions ask about every command that is more than a look."""
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime, AsyncExitStack() as stack:
        yield Office(runtime, ground, stack)


def touches(*names: str) -> list[Json]:
    """Make a script that touches each file in a turn of its own."""
    return [*(calls(("bash", {"command": f"touch {name}"})) for name in names), says("done")]


async def _soon(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what a client has received sets no event
            await asyncio.sleep(0.01)


async def test_two_editors_are_asked_and_the_first_answer_wins(office: Office) -> None:
    office.ground.provider.script(touches("x"))
    first, second = await office.seat(PANEL), await office.seat(PANEL)
    stays, answers = LeavesOpen(), LeavesOpen()
    first.handlers[ASK], second.handlers[ASK] = stays, answers
    stream = first.subscribe()
    await stream.ready()
    await first.request("agent/prompt", prompt("go"))
    await _soon(lambda: stays.asked and answers.asked)
    assert stays.asked == answers.asked
    asked = stays.asked[0]
    assert asked["subject"]["command"] == "touch x"
    assert asked["subject"]["cwd"] == office.ground.root.as_uri()
    assert asked["subject"]["sandbox"] == "none"
    assert not (office.ground.root / "x").exists()
    answers.replies[0]({"option": "allowOnce"})
    await stream.wait(type="run.ended")
    assert (office.ground.root / "x").exists()
    (resolved,) = stream.of("permission.resolved")
    assert (resolved["request"], resolved["option"]) == (asked["request"], "allowOnce")
    await _soon(lambda: any(m.get("method") == "$/cancelRequest" for m in first.received))
    assert not any(m.get("method") == "$/cancelRequest" for m in second.received)
    late = await first.request(
        "agent/permission/respond", {"request": asked["request"], "option": "rejectOnce"}
    )
    assert (late["status"], late["by"]) == ("alreadyResolved", "panel")


async def test_a_question_outlives_the_editor_that_was_asked(office: Office) -> None:
    office.ground.provider.script(touches("x"))
    watcher = await office.seat(PANEL, client={"role": "observer"})
    watcher.handlers[ASK] = watched = Scripted({"option": "allowOnce"})
    stream = watcher.subscribe()
    await stream.ready()
    async with _connected(office.runtime) as leaving:
        await leaving.initialize(PANEL, root=office.ground.root)
        leaving.handlers[ASK] = LeavesOpen()
        await leaving.request("agent/prompt", prompt("go"))
        await stream.wait(type="permission.requested")
    snapshot = await watcher.request("agent/session/open", {})
    assert snapshot["state"] == "requiresAction"
    (pending,) = snapshot["pending"]
    assert watched.asked == []
    answer = {"request": pending["request"], "option": "allowOnce"}
    with pytest.raises(ClientError) as refused:
        await watcher.request("agent/permission/respond", answer)
    assert refused.value.data["kind"] == "PermissionDenied"
    back = await office.seat(PANEL)
    back.handlers[ASK] = asked = LeavesOpen()
    recorded = await back.request("agent/permission/respond", answer)
    assert recorded == {"status": "recorded", "by": "panel"}
    await stream.wait(type="run.ended")
    assert (office.ground.root / "x").exists()
    assert len(asked.asked) <= 1


async def test_silence_is_a_no_after_the_time_that_the_editor_names(office: Office) -> None:
    office.ground.provider.script(touches("x"))
    panel = await office.seat(PANEL, permission={"timeoutS": 0.2})
    panel.handlers[ASK] = LeavesOpen()
    stream = panel.subscribe()
    await stream.ready()
    await panel.request("agent/prompt", prompt("go", wait=True))
    (resolved,) = stream.of("permission.resolved")
    assert (resolved["option"], resolved["by"]) == ("rejectOnce", "timeout")
    assert "no answer" in tool_texts(office.ground.provider.requests[-1])[0]
    assert not (office.ground.root / "x").exists()


@pytest.mark.parametrize(
    "answer", [None, {}, {"option": "yes"}, {"option": 1}, "allowOnce", ["allowOnce"]], ids=repr
)
async def test_what_is_no_answer_is_a_no(office: Office, answer: object) -> None:
    office.ground.provider.script(touches("x"))
    panel = await office.seat(PANEL)
    panel.handlers[ASK] = Scripted(answer)
    result = await panel.request("agent/prompt", prompt("go", wait=True))
    assert result["status"] == "completed"
    assert not (office.ground.root / "x").exists()


async def test_a_plain_editor_is_asked_one_by_one_with_buttons(office: Office) -> None:
    office.ground.provider.script(
        [calls(*(("bash", {"command": f"touch {name}"}) for name in "xyz")), says("done")]
    )
    helix = await office.seat(HELIX)
    helix.handlers[SHOW] = dialogs = Chooses("Allow once", "Reject")
    await helix.request("agent/prompt", prompt("go", wait=True))
    assert dialogs.missing == []
    assert len(dialogs.asked) == 3
    shown = dialogs.asked[0]
    assert len(shown["actions"]) <= 4
    assert all(len(one["title"]) <= 60 and one["optionId"] for one in shown["actions"])
    assert len(shown["message"].splitlines()) <= 3
    assert shown["message"].splitlines()[1] == "touch x"
    made = [name for name in "xyz" if (office.ground.root / name).exists()]
    assert made == ["x"]
    assert helix.undeclared == []


async def test_a_dialog_that_blocks_waits_for_a_pause_in_the_typing(office: Office) -> None:
    office.ground.provider.script(touches("x"))
    office.ground.file("a.py", "1\n")
    neovim = await office.seat(NEOVIM_0_11)
    uri = (office.ground.root / "a.py").as_uri()
    neovim.open(uri, "1\n")
    typed: list[float] = []
    loop = asyncio.get_running_loop()
    neovim.handlers[SHOW] = dialogs = Chooses("Allow once")

    async def type_on() -> None:
        for at in range(8):
            neovim.change(uri, f"{at}\n")
            typed.append(loop.time())
            await asyncio.sleep(0.2)
            if dialogs.asked:
                return

    async with asyncio.TaskGroup() as tasks:
        typing = tasks.create_task(type_on())
        call = neovim.call("agent/prompt", prompt("go", wait=True))
        await typing
        assert dialogs.asked == []
        await call.result()
    assert len(dialogs.asked) == 1


async def test_an_answer_for_the_project_is_never_asked_again_also_in_a_new_session(
    office: Office,
) -> None:
    office.ground.provider.script(touches("x", "x", "x"))
    panel = await office.seat(PANEL)
    panel.handlers[ASK] = asked = Scripted({"option": "allowProject"})
    await panel.request("agent/prompt", prompt("go", wait=True))
    assert (office.ground.root / "x").exists()
    assert len(asked.asked) == 1
    listed = await panel.request("agent/permission/rules", {"op": "list"})
    (rule,) = listed["rules"]
    assert (rule["verdict"], rule["scope"], rule["tool"]) == ("allow", "project", "bash")
    assert not (office.ground.root / ".tiller").exists()
    await panel.request("agent/session/open", {"session": "new"})
    office.ground.provider.script(touches("x"))
    await panel.request("agent/prompt", prompt("again", wait=True))
    assert len(asked.asked) == 1
    gone = await panel.request(
        "agent/permission/rules", {"op": "remove", "rule": {"id": rule["id"]}}
    )
    assert gone == {"rules": []}
    office.ground.provider.script(touches("x"))
    await panel.request("agent/prompt", prompt("once more", wait=True))
    assert len(asked.asked) == 2


async def test_three_refusals_end_the_run(office: Office) -> None:
    office.ground.provider.script(touches("a", "b", "c", "d"))
    panel = await office.seat(PANEL)
    result = await panel.request("agent/prompt", prompt("go", wait=True))
    assert (result["status"], result["error"]["kind"]) == ("refused", "TooManyDenials")
    assert len(office.ground.provider.requests) == 3


async def test_a_cancel_withdraws_the_dialog(office: Office) -> None:
    office.ground.provider.script(touches("x"))
    panel = await office.seat(PANEL)
    panel.handlers[ASK] = asked = LeavesOpen()
    stream = panel.subscribe()
    await stream.ready()
    await panel.request("agent/prompt", prompt("go"))
    await _soon(lambda: asked.asked)
    result = await panel.request("agent/run/cancel", {})
    assert result["status"] == "cancelled"
    (resolved,) = stream.of("permission.resolved")
    assert (resolved["option"], resolved["by"]) == (None, "cancelled")
    await _soon(lambda: any(m.get("method") == "$/cancelRequest" for m in panel.received))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"op": "add", "rule": {"tool": "*", "verdict": "allow"}}, "name one"),
        ({"op": "add", "rule": {"tool": "bash", "verdict": "allow"}}, "argvPrefix"),
        (
            {"op": "add", "rule": {"tool": "bash", "verdict": "allow", "argvPrefix": ["bash"]}},
            "starts or changes other commands",
        ),
        ({"op": "add", "rule": {"tool": "bash", "verdict": "_maybe"}}, "verdict must be"),
        ({"op": "add", "rule": {"tool": "bash", "verdict": "deny", "scope": "_x"}}, "scope must"),
        ({"op": "_sing"}, "op must be"),
    ],
)
async def test_a_rule_that_cannot_hold_is_refused_in_words(
    office: Office, params: Json, words: str
) -> None:
    panel = await office.seat(PANEL)
    with pytest.raises(ClientError) as refused:
        await panel.request("agent/permission/rules", params)
    assert refused.value.code == -32602
    assert words in refused.value.message


async def test_a_looser_mode_can_be_chosen_once_the_users_own_settings_allow_it(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "ask"})
    wish = {"set": {"mode": "yolo"}}
    async with ground.client(PANEL) as client:
        await client.request("agent/session/open", {})
        with pytest.raises(ClientError, match="tiller config mode yolo"):
            await client.request("agent/session/configure", wish)
        environment = Environment({"TILLER_CONFIG_DIR": str(ground.dirs.config)})
        chosen = Namespace(verb="mode", name="yolo")
        assert await to_thread.run_sync(config.main, chosen, environment) == 0
        await client.request("agent/resources/reload", {})
        done = await client.request("agent/session/configure", wish)
        assert done["config"]["mode"] == "yolo"
