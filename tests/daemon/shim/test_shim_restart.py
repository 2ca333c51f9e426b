"""The real daemon is killed behind a shim: the editor goes on, and nothing is lost or said twice."""

import os
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.clients.shims import LONG_S, daemon_pid, end_daemon, introduced, shim
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_client import ClientError, RawClient, Subscription
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.session.session_files import checked_entries, messages, runs, said
from tests.support.workspace.processes import living, processes_with, wait_gone
from tiller_server.daemon import paths

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(at_size(ci=180, campaign=3600)),
]

KILLS = at_size(ci=2, campaign=100)
EVENTS_OF_A_RUN = 60
JITTER_S = 0.03
BUSY = {
    **calls(
        ("read", {"path": "notes.txt"}),
        ("bash", {"command": "echo one; sleep 0.05; echo two >> log.txt"}),
    ),
    "text": "thinking about it ",
    "deltas": 20,
    "delta_delay_s": 0.002,
    "repeat": -1,
}


async def test_the_first_editor_starts_the_daemon_and_the_second_one_finds_it(
    ground: Ground,
) -> None:
    async with introduced(ground) as first:
        status = await first.request("agent/status", timeout_s=LONG_S)
        assert status["daemon"]["pid"] == daemon_pid(ground.env) != first.pid
        async with shim(ground) as second:
            await second.initialize(root=ground.root)
            again = await second.request("agent/status", timeout_s=LONG_S)
            assert again["daemon"]["pid"] == status["daemon"]["pid"]
            await second.shutdown()
            assert await second.exit() == 0
        # Whatever ends an editor with all of its children leaves the daemon alone.
        os.killpg(first.pid, signal.SIGKILL)
        await first.exit_code()
        assert living([status["daemon"]["pid"]])


async def test_unsaved_text_is_what_the_agent_reads_after_a_restart(ground: Ground) -> None:
    file = ground.file("a.txt", "on disk\n")
    async with introduced(ground, PANEL) as client:
        uri = file.as_uri()
        client.open(uri, "one\ntwo 𝄞 x\nthree\n", version=3)
        place = {"start": {"line": 1, "character": 7}, "end": {"line": 1, "character": 8}}
        client.change(uri, [{"range": place, "newText": "ZWEI"}])
        await client.request("agent/status", timeout_s=LONG_S)
        await _killed(ground)
        client.change(uri, [{"range": place, "newText": "3"}])  # while nobody is there
        ground.provider.script([calls(("read", {"path": "a.txt"})), says("done")])
        words = prompt("read it", wait=True, messageId="m-1")
        try:
            await client.request("agent/prompt", words, timeout_s=LONG_S)
        except ClientError as error:  # the shim did not know yet that nobody is there
            if error.code != -32802:
                raise
            await client.request("agent/prompt", words, timeout_s=LONG_S)
        (read,) = tool_texts(ground.provider.requests[-1])
        assert read == client.editor.documents[uri].text == "one\ntwo 𝄞 3WEI\nthree\n"
        assert file.read_text("utf-8") == "on disk\n"


async def test_a_prompt_that_a_daemon_died_of_is_said_once(ground: Ground) -> None:
    async with introduced(ground, PANEL) as client:
        ground.provider.script([{**says("done"), "repeat": -1}])
        await client.request("agent/session/open", {"session": "new"}, timeout_s=LONG_S)
        pid = daemon_pid(ground.env)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)  # it has the words, and says nothing
        asked = client.call("agent/prompt", prompt("once", messageId="m-1"))
        await anyio.sleep(0.1)  # the shim has passed it on
        os.kill(pid, signal.SIGKILL)
        answer = await asked.result(timeout_s=LONG_S)
        assert answer["accepted"] in {"started", "duplicate"}
        await client.request(
            "agent/prompt", prompt("more", wait=True, delivery="followUp"), timeout_s=LONG_S
        )
        (path,) = ground.sessions()
        assert said(checked_entries(path)) == ["once", "more"]


@pytest.mark.parametrize("stage", ["starting", "introducing", "opening", "subscribing", "leaving"])
async def test_a_daemon_may_die_at_any_stage(ground: Ground, stage: str) -> None:
    """The editor sees no more than a request that has to be asked again."""
    async with _alone(ground), shim(ground) as client:
        if stage in {"starting", "introducing"}:
            if stage == "introducing":
                await _freeze_the_first(ground)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_introduce, client, ground)
                pid = await _one_there(ground, client)
                os.kill(pid, signal.SIGKILL)
        else:
            await _introduce(client, ground)
        if stage == "opening":
            asked = client.call("agent/session/open", {"session": "new"})
            await _killed(ground)
            await _again_or_answered(client, asked)
        if stage == "subscribing":
            stream = client.subscribe()
            # Before that the shim may hold the request still, and the next daemon serves it.
            await stream.ready(timeout_s=LONG_S)
            await _killed(ground)
            with pytest.raises(ClientError, match="-32802"):
                await stream.call.result(timeout_s=LONG_S)
            again = client.subscribe()
            await again.ready(timeout_s=LONG_S)
        if stage != "leaving":
            status = await client.request("agent/status", timeout_s=LONG_S)
            assert status["daemon"]["pid"] == daemon_pid(ground.env)
        else:
            await _killed(ground)
        await client.shutdown(timeout_s=LONG_S)
        assert await client.exit() == 0


@asynccontextmanager
async def _alone(ground: Ground) -> AsyncGenerator[None]:
    """Leave no daemon behind, once no shim is there to start another."""
    try:
        yield
    finally:
        end_daemon(ground.env)


async def _introduce(client: RawClient, ground: Ground) -> None:
    await client.initialize(PANEL, root=ground.root, timeout_s=LONG_S)


async def _freeze_the_first(ground: Ground) -> None:
    """Leave a daemon that takes connections and answers nothing."""
    async with shim(ground) as first:
        await _introduce(first, ground)
    pid = daemon_pid(ground.env)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)


async def _one_there(ground: Ground, client: RawClient) -> int:
    """Give the daemon as soon as it shows, be it before it listens."""
    while (pid := daemon_pid(ground.env)) is None:
        await anyio.sleep(0.01)  # nothing tells when somebody else's file is written
        assert living([client.pid])
    return pid


async def _again_or_answered(client: RawClient, asked: Any) -> None:
    message = await client.settled(asked.answer, "an answer", timeout_s=LONG_S)
    if (error := message.get("error")) is not None:
        assert (error["code"], error["data"]["retriggerRequest"]) == (-32802, True)
        await client.request("agent/session/open", {"session": "new"}, timeout_s=LONG_S)


async def test_many_kills_in_mid_run_cost_nothing_but_time(ground: Ground) -> None:
    """One editor, one shim, one session: each run is ended once, and retry completes it without the words again."""
    ground.file("notes.txt", "a note\n")
    draw = random.Random(7)  # noqa: S311 - moments, not secrets
    async with introduced(ground, PANEL) as client:
        shim_pid = client.pid
        opened = await client.request("agent/session/open", {"session": "new"}, timeout_s=LONG_S)
        session, text = opened["session"], ""
        uri = ground.file("open.txt", "").as_uri()
        client.open(uri, "")
        for number in range(KILLS):
            text += f"{number}\n"
            client.change(uri, text)
            run = await _run_until_killed(ground, client, session, draw, number)
            ground.provider.script([{**says("recovered"), "repeat": -1}])
            stream = await _followed(client, session)
            retried = await client.request(
                "agent/run/retry", {"session": session, "run": run}, timeout_s=LONG_S
            )
            ended = await stream.wait(type="run.ended", run=retried["run"], timeout_s=LONG_S)
            assert ended["status"] == "completed"
        ground.provider.script([calls(("read", {"path": "open.txt"})), says("done")])
        await client.request("agent/prompt", prompt("read", wait=True), timeout_s=LONG_S)
        assert text.strip() in tool_texts(ground.provider.requests[-1])[-1]
        assert (client.pid, living([shim_pid])) == (shim_pid, {shim_pid})
        await client.shutdown(timeout_s=LONG_S)
        assert await client.exit() == 0
    (path,) = ground.sessions()
    entries = checked_entries(path)
    assert said(entries) == [*(f"begin {number}" for number in range(KILLS)), "read"]
    ends = [status for _, status in runs(entries) if status != "started"]
    assert ends.count("interrupted") == KILLS
    print(
        f"{KILLS} kills: {len(entries)} entries, {len(messages(entries, 'toolResult'))} results, runs {ends[-4:]}"
    )


async def _run_until_killed(
    ground: Ground, client: RawClient, session: str, draw: random.Random, number: int
) -> str:
    ground.provider.script([BUSY])
    stream = await _followed(client, session)
    answer = await client.request(
        "agent/prompt",
        prompt(f"begin {number}", session=session, messageId=f"m{number}"),
        timeout_s=LONG_S,
    )
    await stream.reached(answer["seq"] + draw.randrange(1, EVENTS_OF_A_RUN), timeout_s=LONG_S)
    await anyio.sleep(draw.random() * JITTER_S)  # the moment is what the test varies
    await _killed(ground)
    return answer["run"]


async def _followed(client: RawClient, session: str) -> Subscription:
    """Subscribe, and again when it went to the daemon that was just killed: that is what a client does."""
    while True:
        stream = client.subscribe(session)
        try:
            await stream.ready(timeout_s=LONG_S)
        except AssertionError:
            with pytest.raises(ClientError, match="-32802"):
                await stream.call.result(timeout_s=LONG_S)
        else:
            return stream


async def _killed(ground: Ground) -> None:
    pid = await anyio.to_thread.run_sync(lambda: end_daemon(ground.env, by=signal.SIGKILL))
    assert pid is not None


def test_a_runtime_folder_too_deep_for_a_socket_is_served_as_well(ground: Ground) -> None:
    deep = ground.root / ("d" * 120)
    env = {**ground.env, "TILLER_RUNTIME_DIR": str(deep)}
    folder = Path(paths.runtime_folder(env))
    assert folder != deep

    async def meet() -> None:
        async with shim(ground, env=env) as client:
            await client.initialize(root=ground.root, timeout_s=LONG_S)
            assert daemon_pid(env) is not None

    try:
        anyio.run(meet)
    finally:
        end_daemon(env)
        for left in folder.iterdir():
            left.unlink()
        folder.rmdir()
    assert wait_gone(processes_with(str(deep))) == set()
