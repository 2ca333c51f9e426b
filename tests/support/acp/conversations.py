"""Generated conversations: what a client may do, in any order, with a model that does anything."""

import asyncio
from random import Random
from typing import Any

from typing_extensions import override

from tests.support.acp.client import AcpClient, AcpRefused, result, states_of
from tests.support.clients.server import Ground, calls, says

Json = dict[str, Any]
TURNS: tuple[Json, ...] = (
    says("Short."),
    says("A longer answer with ümlauts and 🎉.\nAnd lines."),
    {"text": "Answer.", "thinking": "Let me think."},
    {"text": "Cut off", "stop": "length"},
    calls(("ls", {"path": "."})),
    calls(("read", {"path": "a.txt"}), text="Reading."),
    calls(("read", {"path": "missing.txt"})),
    calls(("write", {"path": "b.txt", "content": "new\n"})),
    calls(("write", {"path": "a.txt", "content": "other\n"})),
    calls(("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]})),
    calls(("bash", {"command": "echo hello"})),
    calls(("bash", {"command": "exit 3"}), ("ls", {"path": "."})),
    calls(
        ("todo", {"items": [{"text": "a", "status": "active"}, {"text": "b", "status": "done"}]})
    ),
    calls(
        (
            "ask",
            {"questions": [{"question": "Which?", "options": [{"label": "x"}, {"label": "y"}]}]},
        )
    ),
    calls(("nothing", {"x": 1})),
    {"status": 400, "body": {"error": {"message": "bad request"}}},
)
CAPABILITIES: tuple[Json, ...] = (
    {},
    {"session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}},
    {"elicitation": {"form": {}}, "auth": {"terminal": True}},
    {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False, "session": None},
)
BLOCKS: tuple[Json, ...] = (
    {"type": "text", "text": "go on"},
    {"type": "resource_link", "uri": "file:///etc/hostname", "name": "hostname"},
    {"type": "resource_link", "uri": "https://example.com/x", "name": "x"},
    {
        "type": "resource",
        "resource": {"uri": "file:///x/y.py", "text": "print()", "mimeType": "text/x-python"},
    },
)
UNKNOWN = ("session/fork", "terminal/create", "nope")


class Conversation:
    """One generated conversation, told by its seed."""

    capabilities = CAPABILITIES

    def __init__(self, client: AcpClient, ground: Ground, random: Random) -> None:
        self._client = client
        self._ground = ground
        self._random = random
        self._sessions: list[str] = []
        self._prompts: list[asyncio.Future[Json]] = []

    async def hold(self) -> None:
        client, random = self._client, self._random
        client.answers["session/request_permission"] = self._permission
        client.answers["elicitation/create"] = self._form
        turns = [random.choice(TURNS) for _ in range(random.randint(0, 4))]
        self._ground.provider.script([*turns, {**says("The end."), "repeat": -1}])
        await client.initialize(random.choice(self.capabilities))
        self._sessions.append(await client.new(self._ground.root))
        for _ in range(random.randint(1, 5)):
            await self._step()
        for prompt in self._prompts:
            await _settled(prompt)
        await self._end()

    async def _end(self) -> None:
        """End the conversation once all prompts are answered."""

    async def _step(self) -> None:
        client, random = self._client, self._random
        session = {"sessionId": random.choice(self._sessions)}
        match random.randint(0, 11):
            case 0 | 1 | 2 | 3 | 4:
                blocks = random.sample(BLOCKS, random.randint(1, 2))
                prompt = client.begin("session/prompt", {**session, "prompt": blocks})
                self._prompts.append(prompt)
                if random.random() < 0.6:
                    await _settled(prompt)
            case 5:
                client.notify("session/cancel", session)
            case 6:
                mode = random.choice(["plan", "ask", "auto", "yolo", "none"])
                await self._set_mode(session, mode)
            case 7:
                change: Json = random.choice(
                    [
                        {"configId": "mode", "value": "plan"},
                        {"configId": "thinking", "value": "high"},
                    ]
                )
                await self._configure({**session, **change})
            case 8:
                await _settled(client.begin("session/list", {}))
            case 9:
                await self._open({**session, "cwd": str(self._ground.root), "mcpServers": []})
            case 10:
                await _settled(client.begin("_example/none", session))
            case _:
                client.notify("$/cancel_request", {"requestId": random.randint(0, 9)})

    async def _set_mode(self, session: Json, mode: str) -> None:
        await _settled(self._client.begin("session/set_mode", {**session, "modeId": mode}))

    async def _configure(self, change: Json) -> None:
        await _settled(self._client.begin("session/set_config_option", change))

    async def _open(self, opened: Json) -> None:
        method = self._random.choice(["session/load", "session/resume"])
        await _settled(self._client.begin(method, opened))

    def _permission(self, params: Json) -> Json:
        if self._random.random() < 0.2:
            return {"outcome": {"outcome": "cancelled"}}
        option = self._random.choice(params["options"])
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    def _form(self, params: Json) -> Json:
        action = self._random.choice(["accept", "decline", "cancel"])
        return {"action": action, "content": {}} if action == "accept" else {"action": action}


class Version2Conversation(Conversation):
    """One of version 2, the draft."""

    capabilities = (
        {},
        {"auth": {"terminal": {}}},
        {"elicitation": {"form": {}}, "auth": None},
    )

    @override
    async def _set_mode(self, session: Json, mode: str) -> None:
        await self._configure({**session, "configId": "mode", "value": mode})

    @override
    async def _configure(self, change: Json) -> None:
        await super()._configure({**change, "type": "id"})

    @override
    async def _open(self, opened: Json) -> None:
        more: Json = self._random.choice([{}, {"replayFrom": {"type": "start"}}])
        await _settled(self._client.begin("session/resume", {**opened, **more}))

    @override
    async def _end(self) -> None:
        # A prompt is answered before its run has ended: nothing is left running.
        client = self._client
        await client.until(
            lambda: not states_of(client) or states_of(client)[-1].startswith("idle")
        )


async def _settled(response: "asyncio.Future[Json]") -> None:
    try:
        await result(response)
    except AcpRefused:
        return
