"""Requests to an external agent and their answers, up to an open session."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from agent_core.acp.port import AgentFailed, AgentLaunch, AgentLink
from agent_core.acp.requests import INVALID_PARAMS, PERMISSION, OpenRequest, cancelled_answer, error
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.text import one_line

PROTOCOL: Final = 1
AUTH_REQUIRED: Final = -32000
CANCEL_S: Final = 1.0
"""How long an agent may take to end its prompt after it was cancelled."""
ERROR_CHARS: Final = 300


class AgentPeer:
    """The agent at the other end of a connection."""

    def __init__(self, launch: AgentLaunch, link: AgentLink, *, version: str) -> None:
        """Create it; nothing is started.

        Args:
            launch: The agent.
            link: Connection to it; its owner ends it.
            version: Version of Tiller.
        """
        self.launch = launch
        self.session = ""
        """Id of the agent's session; empty: none is open."""
        self._link = link
        self._version = version
        self._count = 0

    @property
    def setting(self) -> str:
        """Key of its settings, for messages."""
        return f"externalAgents.{self.launch.name}"

    def send(self, message: JsonObject) -> None:
        """Send a message."""
        self._link.send(message)

    def request(self, method: str, params: JsonObject) -> int:
        """Send a request; return its id."""
        self._count += 1
        self.send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        return self._count

    async def receive(self) -> JsonObject:
        """Wait for the next message while the agent works.

        Raises:
            AgentFailed: It was silent for too long, or is gone.
        """
        limit_s = self.launch.idle_timeout_s
        with anyio.move_on_after(limit_s):
            return await self._link.receive()
        message = f"it sent nothing for {limit_s:g} s and was stopped ({self.setting}.idleTimeoutS)"
        raise AgentFailed(message)

    async def open(self, cwd: Path, *, can_read: bool, can_write: bool, before: str) -> bool:
        """Start the agent and open a session; return whether it is the one before.

        Args:
            cwd: Folder in which it works.
            can_read: Whether it may read files through Tiller.
            can_write: Whether it may write them.
            before: Id of the session of an earlier process of the agent, which is opened again if the agent can; empty: none.

        Raises:
            AgentFailed: It cannot be started, or does not answer as the protocol defines.
        """
        await self._link.start(self.launch, cwd=cwd)
        files = {"readTextFile": can_read, "writeTextFile": can_write}
        answer = await self._ask(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "clientCapabilities": {"fs": files, "terminal": True},
                "clientInfo": {"name": "tiller", "title": "Tiller", "version": self._version},
            },
        )
        version = answer.get("protocolVersion")
        if version != PROTOCOL:
            message = f"it speaks version {version!r} of the Agent Client Protocol, Tiller speaks {PROTOCOL}"
            raise AgentFailed(message)
        folder: JsonObject = {"cwd": str(cwd), "mcpServers": []}
        if before and as_object(answer.get("agentCapabilities")).get("loadSession") is True:
            # What it sends before its answer is the conversation that the task has stored already.
            with suppress(AgentFailed):
                opened = await self._ask("session/load", {"sessionId": before, **folder})
                await self._set_options(before, opened)
                self.session = before
                return True
        opened = await self._ask("session/new", folder)
        session = opened.get("sessionId")
        if not isinstance(session, str) or not session:
            message = f"it opened a session without an id: {session!r}"
            raise AgentFailed(message)
        await self._set_options(session, opened)
        self.session = session
        return False

    async def cancel(self, prompt: int, requests: Sequence[OpenRequest]) -> None:
        """Cancel a prompt and wait a moment for its end; the agent's requests are answered, as the protocol wants it."""
        try:
            for request in requests:
                self.send(cancelled_answer(request))
            params = {"sessionId": self.session}
            self.send({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
            with anyio.move_on_after(CANCEL_S):
                while not is_answer(message := await self._link.receive(), prompt):
                    if message.get("method") == PERMISSION:
                        asked = OpenRequest(id=message.get("id"), method=PERMISSION, params={})
                        self.send(cancelled_answer(asked))
        except AgentFailed:
            return  # it is gone, or is ended now

    async def _set_options(self, session: str, opened: JsonObject) -> None:
        options = _options_in(opened)
        for name, value in self.launch.options.items():
            option = _option(options, name)
            params: dict[str, JsonValue] = {"sessionId": session}
            if option is not None:
                method = "session/set_config_option"
                params |= {"configId": option.get("id"), "value": value}
                if isinstance(value, bool):
                    params["type"] = "boolean"
            elif name == "mode" and is_object(opened.get("modes")):
                method = "session/set_mode"
                params["modeId"] = value
            else:
                names = ", ".join(as_text(one.get("id")) for one in options) or "none"
                message = f"it has no option {name!r} ({self.setting}.options); there are: {names}"
                raise AgentFailed(message)
            options = _options_in(await self._ask(method, params)) or options

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and return its result; requests of the agent are refused meanwhile.

        Raises:
            AgentFailed: It was refused, or not answered in time.
        """
        id_, limit_s = self.request(method, params), self.launch.start_timeout_s
        with anyio.move_on_after(limit_s):
            while not is_answer(message := await self._link.receive(), id_):
                if "method" in message and "id" in message:
                    text = f"{message.get('method')!r} is not expected before the session is open"
                    self.send(error(message.get("id"), INVALID_PARAMS, text))
            return result_in(message, method)
        why = f"it did not answer {method} within {limit_s:g} s; check {self.setting}.command"
        raise AgentFailed(why)


def is_answer(message: JsonObject, id_: int | None) -> bool:
    """Return whether a message is the answer to a request."""
    return id_ is not None and "method" not in message and message.get("id") == id_


def result_in(message: JsonObject, method: str) -> JsonObject:
    """Return the result in an answer.

    Raises:
        AgentFailed: It is an error.
    """
    if "error" not in message:
        return as_object(message.get("result"))
    failure = as_object(message.get("error"))
    text = one_line(as_text(failure.get("message")))[:ERROR_CHARS]
    if failure.get("code") == AUTH_REQUIRED:
        why = (
            f"it wants a login first ({text}); log in with its own command, or name its key in env"
        )
        raise AgentFailed(why)
    why = f"it answered {method} with error {failure.get('code')}: {text}"
    raise AgentFailed(why)


def _options_in(answer: JsonObject) -> Sequence[JsonObject]:
    listed = answer.get("configOptions")
    return [as_object(one) for one in listed] if isinstance(listed, list | tuple) else []


def _option(options: Sequence[JsonObject], name: str) -> JsonObject | None:
    """Return a config option by its id, else the first of a category."""
    for key in ("id", "category"):
        for option in options:
            if option.get(key) == name:
                return option
    return None
