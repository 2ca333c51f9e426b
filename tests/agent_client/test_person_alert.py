"""The webhook that is told when a person is needed: when, what, how often, and what it does with a bad receiver."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_core.events import ChangeCounts, Event, RunEnded, RunStarted, RunStatus, UsageReport
from agent_core.events.values import PermissionResolved
from agent_core.kernel import RunId
from agent_core.kernel.json import as_object
from agent_core.messages import Usage
from agent_core.providers.http.client import HttpPool
from agent_core.resources.settings.values import NotifySettings
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.harness.clock import FakeClock
from tiller_server.agent_client.connection import AgentClient
from tiller_server.agent_client.in_process import attached
from tiller_server.lsp.app import App
from tiller_server.lsp.events.person_alert import AlertSchedule, Webhook
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig
from tiller_server.process.web_servers import WebServerRecord, encoded_record

pytestmark = [pytest.mark.timeout(60)]

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
WITHIN_S = 15.0


@dataclass(slots=True)
class Received:
    """A message as the receiver got it."""

    path: str
    headers: dict[str, str]
    body: str


@dataclass(slots=True)
class Receiver:
    """An HTTP server that keeps what it gets."""

    url: str = ""
    answers: list[str] = field(default_factory=list)
    got: "asyncio.Queue[Received]" = field(default_factory=asyncio.Queue)

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.url).port or 0

    async def next(self) -> Received:
        """Wait for the next message."""
        async with asyncio.timeout(WITHIN_S):
            return await self.got.get()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request with the next answer, or 200."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            writer.close()  # it was only looked whether somebody listens
            return
        first, *lines = head.strip().splitlines()
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.got.put_nowait(Received(first.split()[1], headers, body.decode()))
        answer = self.answers.pop(0) if self.answers else "200 OK"
        if answer:
            writer.write(f"HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n".encode())
        writer.close()


@asynccontextmanager
async def receiving(*answers: str) -> AsyncGenerator[Receiver]:
    """Serve a receiver."""
    receiver = Receiver(answers=[*answers])
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    async with server:
        receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/my-topic"
        yield receiver


@asynccontextmanager
async def client_of(ground: Ground, **env: str) -> AsyncGenerator[tuple[AgentClient, str]]:
    """Serve an agent; yield a client and its new session."""
    runtime = Runtime(ServerConfig(env={**ground.env, **env}, home=ground.dirs.home))
    async with runtime, attached(App(runtime)) as client:
        described = {"name": "a test", "version": "1", "role": "panel"}
        await client.introduce(described, (ground.root,), capabilities={"v": 1, "permission": {}})
        opened = as_object(await client.request("agent/session/open", {"session": "new"}))
        yield client, str(opened["session"])


def notify(receiver: Receiver, **more: Any) -> dict[str, Any]:
    """Return the settings of a webhook that waits for nothing."""
    return {"url": receiver.url, "requestAfterS": 0, "runAfterS": 0, **more}


def write_record(runtime: Path, port: int, *, origin: str, is_public: bool = False) -> None:
    """Write the file of a server."""
    record = WebServerRecord(
        port=port,
        address="127.0.0.1",
        origin=origin,
        host=origin.rpartition("/")[2],
        is_public=is_public,
        token_file=runtime / f"web-{port}.token",
    )
    (runtime / f"web-{port}.json").write_text(encoded_record(record), encoding="utf-8")


async def test_a_permission_is_sent_without_what_was_said(ground: Ground) -> None:
    async with receiving() as receiver:
        ground.configure(
            permission={"mode": "ask"},
            sandbox="off",
            titles="off",
            notify=notify(receiver, tokenVariable="MY_HOOK"),
        )
        command = calls(("bash", {"command": f"echo {SECRET}"}))
        ground.provider.script([command])
        runtime = ground.dirs.runtime
        runtime.mkdir(parents=True, exist_ok=True)
        write_record(runtime, receiver.port, origin=f"http://127.0.0.1:{receiver.port}")
        write_record(runtime, 1, origin="https://left-behind.example", is_public=True)
        (runtime / "web-2.json").write_text("{", encoding="utf-8")
        async with client_of(ground, MY_HOOK="bearer-of-mine") as (client, session):
            renamed = {"session": session, "title": f"Tötals {SECRET}"}
            await client.request("agent/session/rename", renamed)
            asked = {"session": session, **prompt("secret words")}
            await client.request("agent/prompt", asked)
            first = await receiver.next()
            link = f"http://127.0.0.1:{receiver.port}/#session={session}"
            assert first.path == "/my-topic"
            assert first.body == f"A permission is needed.\n{link}"
            assert first.headers["click"] == link
            assert first.headers["authorization"] == "Bearer bearer-of-mine"
            assert first.headers["title"].startswith("=?UTF-8?B?")
            assert first.headers["title"].isascii()
            for text in (SECRET, "secret words", "echo"):
                assert text not in str(first)
            await client.request("agent/run/cancel", {"session": session})


async def test_the_link_is_that_of_the_server_which_other_machines_reach(ground: Ground) -> None:
    async with receiving() as receiver, receiving() as other:
        ground.configure(retry={"maxRetries": 0}, notify=notify(receiver))
        ground.provider.script([{"status": 400, "body": {"error": {"message": "no"}}}])
        runtime = ground.dirs.runtime
        runtime.mkdir(parents=True, exist_ok=True)
        write_record(runtime, receiver.port, origin=f"http://127.0.0.1:{receiver.port}")
        write_record(runtime, other.port, origin="https://tiller.example.com", is_public=True)
        async with client_of(ground) as (client, session):
            asked = {"session": session, **prompt("go"), "wait": True}
            await client.request("agent/prompt", asked)
            failed = await receiver.next()
    assert failed.headers["click"] == f"https://tiller.example.com/#session={session}"


async def test_nothing_is_sent_without_the_setting_nor_by_a_project(ground: Ground) -> None:
    async with receiving() as receiver:
        ground.configure()
        ground.file(".tiller/settings.json", f'{{"notify": {{"url": "{receiver.url}"}}}}')
        ground.provider.script([{"status": 400, "body": {"error": {"message": "no"}}}])
        async with client_of(ground) as (client, session):
            asked = {"session": session, **prompt("go"), "wait": True}
            result = as_object(await client.request("agent/prompt", asked))
            assert result["status"] == "failed"
        assert receiver.got.empty()


async def test_a_failed_run_is_sent(ground: Ground) -> None:
    async with receiving() as receiver:
        ground.configure(retry={"maxRetries": 0}, notify=notify(receiver))
        ground.provider.script([{"status": 400, "body": {"error": {"message": "no"}}}, says("x")])
        async with client_of(ground) as (client, session):
            asked = {"session": session, **prompt("go"), "wait": True}
            await client.request("agent/prompt", asked)
            failed = await receiver.next()
            assert failed.body == "The run has failed."
            assert failed.headers["title"] == f"Tiller: {ground.root.name}"
            assert "authorization" not in failed.headers


async def test_a_receiver_that_is_down_is_tried_three_times_and_a_redirect_is_not_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    pool = HttpPool(clock=clock)
    try:
        async with receiving(
            "503 Busy", "", "200 OK", *["500 Broken"] * 3, "404 No", "302 Found\r\nlocation: /other"
        ) as receiver:
            hook = Webhook(pool=pool, url=receiver.url, token=lambda: None, clock=clock)
            assert await hook.send("title", "text", link=None)
            assert (receiver.got.qsize(), clock.slept) == (3, [1.0, 4.0])
            assert not await hook.send("a\r\nx-evil: 1", "text", link=None)
            assert receiver.got.qsize() == 6
            assert not await hook.send("title", "text", link=None)
            assert not await hook.send("title", "text", link=None)
            messages = [receiver.got.get_nowait() for _ in range(8)]
            assert receiver.got.empty()
            assert {one.path for one in messages} == {"/my-topic"}
            assert messages[3].headers["title"] == "a  x-evil: 1"
        assert not await hook.send("title", "text", link=None)
    finally:
        await pool.aclose()
    assert "my-topic" not in caplog.text


RUN = RunId("r-1")
COUNTS = ChangeCounts(files=0, additions=0, deletions=0, unreviewed=0)


def started() -> Event:
    """Return the beginning of a run."""
    return RunStarted(run=RUN, message_id=None, model="m")


def ended(status: RunStatus) -> Event:
    """Return the end of a run."""
    return RunEnded(
        run=RUN,
        status=status,
        usage=UsageReport(tokens=Usage(), context_used=None, context_size=1),
        changes=COUNTS,
    )


def answered(by: str) -> Event:
    """Return the end of a request."""
    return PermissionResolved(run=RUN, request="p-1", option=None, by=by)


@pytest.mark.parametrize(
    ("status", "after_s", "kinds"),
    [
        ("completed", 60.0, ["ended"]),
        ("completed", 59.0, []),
        ("failed", 0.0, ["failed"]),
        ("budget", 0.0, ["failed"]),
        ("cancelled", 99.0, []),
    ],
)
def test_an_end_is_sent_when_nobody_was_there(
    status: RunStatus, after_s: float, kinds: list[str]
) -> None:
    schedule = AlertSchedule(NotifySettings.model_validate({"runAfterS": 60}), now_s=0)
    schedule.see(started(), now_s=1000)
    schedule.see(ended(status), now_s=1000 + after_s)
    assert [*schedule.take(now_s=1000 + after_s)] == kinds


def test_an_answer_of_a_person_begins_the_time_anew_and_silence_does_not() -> None:
    for by, kinds in (("VS Code", []), ("timeout", ["ended"])):
        schedule = AlertSchedule(NotifySettings.model_validate({"runAfterS": 60}), now_s=0)
        schedule.see(started(), now_s=0)
        schedule.see(answered(by), now_s=50)
        schedule.see(ended("completed"), now_s=100)
        assert [*schedule.take(now_s=100)] == kinds


def test_messages_of_a_session_are_ten_seconds_apart() -> None:
    schedule = AlertSchedule(NotifySettings.model_validate({"runAfterS": 0}), now_s=0)
    schedule.see(ended("failed"), now_s=1)
    assert schedule.due_s == 1
    assert schedule.take(now_s=1) == ["failed"]
    schedule.see(ended("completed"), now_s=2)
    assert (schedule.due_s, schedule.take(now_s=10.9)) == (11, ())
    assert schedule.take(now_s=11) == ["ended"]
    assert (schedule.due_s, schedule.take(now_s=99)) == (None, ())
