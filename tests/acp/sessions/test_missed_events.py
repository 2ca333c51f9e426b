"""A prompt is answered also when the event that answers it was missed, and a snapshot took its place."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typing_extensions import override

from agent_core.kernel.json import as_object
from tests.support.acp.client import AcpClient, opener, result, served, states_of
from tests.support.clients.server import Ground, says
from tiller_server.agent_client.connection import AgentClient, RequestHandler
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

Json = dict[str, Any]
LONG = "A long answer. " * 400


class ForgetfulAgent:
    """A connection on which a kind of event is lost once: a snapshot comes instead, as after a new epoch."""

    def __init__(
        self, agent: AgentClient, lost: Callable[[Json], bool], tasks: asyncio.TaskGroup
    ) -> None:
        self._agent = agent
        self._lost = lost
        self._tasks = tasks
        self.has_lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "on_notification":
            self._agent.on_notification = lambda method, params: self._pass(method, params, value)
        else:
            object.__setattr__(self, name, value)

    def _pass(self, method: str, params: Any, to: Callable[[str, Any], None]) -> None:
        frame = as_object(params.get("value"))
        events: Any = frame.get("events") or []
        if not self.has_lost and any(self._lost(dict(one)) for one in events):
            self.has_lost = True
            self._tasks.create_task(self._send_snapshot(method, params, to))
        else:
            to(method, params)

    async def _send_snapshot(
        self, method: str, params: Any, to: Callable[[str, Any], None]
    ) -> None:
        session = params["value"]["session"]
        snapshot = await self._agent.request("agent/session/open", {"session": session})
        to(
            method,
            {
                **params,
                "value": {"kind": "agent/snapshot", "session": session, "snapshot": snapshot},
            },
        )


@asynccontextmanager
async def forgetful_client(
    ground: Ground, lost: Callable[[Json], bool], *, version: int = 1
) -> AsyncGenerator[tuple[AcpClient, list[ForgetfulAgent]]]:
    agents: list[ForgetfulAgent] = []
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with asyncio.TaskGroup() as tasks, Runtime(config) as runtime:
        opened = opener(runtime)

        @asynccontextmanager
        async def open_agent(
            handlers: Mapping[str, RequestHandler], servers: Any
        ) -> AsyncGenerator[Any]:
            async with opened(handlers, servers) as agent:
                agents.append(ForgetfulAgent(agent, lost, tasks))
                yield agents[-1]

        async with served(
            open_agent, env=ground.env, client_id="client", version=version
        ) as client:
            yield client, agents


def of_type(name: str, **fields: str) -> Callable[[Json], bool]:
    return lambda event: event["type"] == name and all(event.get(k) == v for k, v in fields.items())


@pytest.mark.parametrize("lost", ["run.started", "message.ended", "run.ended"])
async def test_a_prompt_whose_end_was_missed_is_answered(ground: Ground, lost: str) -> None:
    ground.provider.script([says("Hello."), says("Again.")])
    async with forgetful_client(ground, of_type(lost)) as (client, agents):
        await client.initialize()
        session = await client.new(ground.root)
        answer = await result(client.prompt(session, "hello"))
        assert agents[-1].has_lost
        assert answer["stopReason"] == "end_turn"
        assert (await result(client.prompt(session, "again")))["stopReason"] == "end_turn"


async def test_a_failed_run_whose_end_was_missed_answers_with_its_error(ground: Ground) -> None:
    ground.configure(retry={"maxRetries": 0})
    ground.provider.script([{"status": 400, "body": {"error": {"message": "No such model."}}}])
    async with forgetful_client(ground, of_type("run.ended")) as (client, agents):
        await client.initialize()
        session = await client.new(ground.root)
        message = await client.prompt(session, "hello")
        assert agents[-1].has_lost
        assert "No such model." in message["error"]["message"]


@pytest.mark.parametrize("lost", ["message.ended", "run.ended"])
async def test_a_prompt_of_version_2_that_was_missed_is_answered_and_its_run_ends(
    ground: Ground, lost: str
) -> None:
    ground.provider.script([says("Hello.")])
    async with forgetful_client(ground, of_type(lost), version=2) as (client, agents):
        await client.initialize()
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "hello")))["messageId"]
        await client.until(
            lambda: states_of(client)[-1:] and states_of(client)[-1].startswith("idle")
        )
        assert agents[-1].has_lost


async def test_a_compaction_whose_end_was_missed_is_answered(ground: Ground) -> None:
    ground.configure(compaction={"keepRecentTokens": 10})
    ground.provider.script([says(LONG), says(LONG), {**says("The summary."), "repeat": -1}])
    async with forgetful_client(ground, of_type("compaction.ended")) as (client, agents):
        await client.initialize()
        session = await client.new(ground.root)
        for text in ("one", "two"):
            await result(client.prompt(session, text))
        assert (await result(client.prompt(session, "/compact")))["stopReason"] == "end_turn"
        assert agents[-1].has_lost
