"""Real clients of ACP drive `tiller acp`: an answer, a permission, a verified edit, a cancellation, a session opened again."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.clients.daemons import daemon_process
from tests.support.clients.server import TILLER, Ground, calls, says
from tests.support.programs.acp_clients import NODE, npm_client

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
ACP: Final = (*TILLER, "acp")
NAME: Final = ".vscode/tasks.json"
"""Programs that are named in it run without a question, so that an edit of it asks."""
EDIT: Final = ("edit", {"path": NAME, "edits": [{"oldText": "two", "newText": "2"}]})
SAVED: Final = "one\ntwo\n"
EDITED: Final = "one\n2\n"
WITHIN_S: Final = 60.0


@pytest.fixture
def scripted(ground: Ground) -> Ground:
    """Return a workspace whose model answers, edits, runs a long command and answers once more."""
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.file(NAME, SAVED)
    ground.provider.script(
        [
            says("Hello there."),
            calls(("read", {"path": NAME})),
            calls(EDIT),
            says("Edited."),
            calls(("bash", {"command": "sleep 60"})),
            says("Again."),
        ]
    )
    return ground


# ------------------------------------------------------------------ the vendor's SDKs


async def test_a_client_made_with_the_typescript_sdk(scripted: Ground) -> None:
    sdk = npm_client("@agentclientprotocol/sdk") / "dist" / "v1" / "stable" / "acp.js"
    script = Path(__file__).with_name("sdk_client.mjs")
    async with daemon_process(scripted.env):
        argv = (NODE, script, sdk, scripted.root, json.dumps(ACP))
        code, out, _ = await _run(scripted, argv)
    seen = {one["what"]: one["value"] for one in map(json.loads, out.splitlines())}
    assert code == 0
    assert seen["answered"] == {"stop": "end_turn", "text": "Hello there."}
    assert seen["edited"]["stop"] == "end_turn"
    assert seen["edited"]["asked"] == 1
    assert seen["edited"]["files"].count("write") == 1
    assert (scripted.root / NAME).read_text() == EDITED
    assert seen["cancelled"] == {"stop": "cancelled"}
    assert seen["replayed"]["answers"].startswith("Hello there.Edited.")
    assert seen["replayed"]["prompts"] == "helloeditsleep"
    assert seen["resumed"]["stop"] == "end_turn"
    assert seen["resumed"]["text"].endswith("Again.")


async def test_a_client_of_version_2_made_with_the_typescript_sdk(scripted: Ground) -> None:
    sdk = npm_client("@agentclientprotocol/sdk") / "dist" / "v2" / "stable" / "acp.js"
    script = Path(__file__).with_name("sdk_client_v2.mjs")
    async with daemon_process(scripted.env):
        argv = (NODE, script, sdk, scripted.root, json.dumps([*ACP, "--experimental-v2"]))
        code, out, _ = await _run(scripted, argv)
    seen = {one["what"]: one["value"] for one in map(json.loads, out.splitlines())}
    hello = {"version": 2, "stop": "end_turn", "text": "Hello there.", "isSame": True}
    assert code == 0
    assert seen == {
        "answered": hello,
        "edited": {"stop": "end_turn", "asked": 1, "operation": "modify"},
        "cancelled": {"stop": "cancelled"},
        "replayed": {"prompts": ["hello", "edit", "sleep"], "state": "idle"},
        "resumed": {"stop": "end_turn", "text": "Again."},
    }
    assert (scripted.root / NAME).read_text() == EDITED


async def test_a_client_made_with_the_python_sdk(scripted: Ground) -> None:
    from tests.support.acp.python_client import python_client, text_block  # noqa: PLC0415 - its import takes half a second

    root = str(scripted.root)
    async with daemon_process(scripted.env), asyncio.timeout(WITHIN_S):
        async with python_client(scripted, ACP) as (client, agent):
            session = (await agent.new_session(cwd=root, mcp_servers=[])).session_id
            first = await agent.prompt(session_id=session, prompt=[text_block("hello")])
            assert first.stop_reason == "end_turn"
            second = await agent.prompt(session_id=session, prompt=[text_block("edit")])
            assert second.stop_reason == "end_turn"
            assert (client.asked, client.written) == (1, [EDITED])
            client.works.clear()
            async with asyncio.TaskGroup() as tasks:
                third = tasks.create_task(
                    agent.prompt(session_id=session, prompt=[text_block("sleep")])
                )
                await client.works.wait()
                await agent.cancel(session_id=session)
            assert third.result().stop_reason == "cancelled"
        async with python_client(scripted, ACP) as (client, agent):
            await agent.load_session(session_id=session, cwd=root, mcp_servers=[])
            last = await agent.prompt(session_id=session, prompt=[text_block("again")])
            assert last.stop_reason == "end_turn"
    assert (scripted.root / NAME).read_text() == EDITED


# ------------------------------------------------------------------ acpx


async def test_acpx(scripted: Ground) -> None:
    package = npm_client("acpx")
    command = " ".join(ACP)

    async def acpx(*words: str, flags: Sequence[str] = ("--approve-all",)) -> tuple[int, str]:
        argv = (NODE, package / "dist" / "cli.js", "--cwd", scripted.root, "--format", "json")
        code, out, errors = await _run(scripted, (*argv, *flags, "--agent", command, *words))
        return code, out + errors

    async with daemon_process(scripted.env):
        code, _ = await acpx("sessions", "new")
        assert code == 0
        code, out = await acpx("prompt", "hello")
        assert (code, "Hello there." in _said(out)) == (0, True)
        code, out = await acpx("prompt", "edit")
        assert (code, "Edited." in _said(out)) == (0, True)
        assert '"session/request_permission"' in out
        assert (scripted.root / NAME).read_text() == EDITED
        async with asyncio.TaskGroup() as tasks:
            sleeping = tasks.create_task(acpx("prompt", "sleep"))
            await scripted.provider.requests_arrived(5)
            while not sleeping.done():
                _ = await acpx("cancel")
                _ = await asyncio.wait([sleeping], timeout=1.0)
        _, out = sleeping.result()
        assert '"cancelled"' in out
        # The queue owner that held the session is gone: the next prompt opens it again.
        code, out = await acpx("prompt", "again")
        assert (code, "Again." in _said(out)) == (0, True)
        _ = await acpx("sessions", "close")


async def _run(ground: Ground, argv: Sequence[object]) -> tuple[int, str, str]:
    home = ground.dirs.home
    process = await asyncio.create_subprocess_exec(
        *map(str, argv),
        cwd=ground.root,
        env={
            **ground.env,
            "HOME": str(home),
            "PATH": f"{NODE.parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, out.decode(), errors.decode()


def _said(out: str) -> str:
    """Return the text of all chunks of answers in acpx's output of frames."""
    said = ""
    for line in out.splitlines():
        if not line.startswith("{"):
            continue
        update = json.loads(line).get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            said += update["content"].get("text", "")
    return said
