"""State that the commands of one client share, and reading of their fields."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import anyio

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_object, as_text
from agent_core.providers.messages.request_options import LEVELS
from tiller_server.rpc.files import session_file
from tiller_server.rpc.records import model_record, split_model
from tiller_server.rpc.session import RpcSession


class RpcContext:
    """The session in context, and what is kept beside it."""

    def __init__(self, session: RpcSession, *, sessions: Path) -> None:
        """Prepare it.

        Args:
            session: The session in context.
            sessions: Folder of the session files.
        """
        self.session = session
        self.sessions = sessions
        self.bash: asyncio.Task[JsonObject] | None = None
        """The user's command that runs."""
        self._models: Sequence[JsonObject] = ()

    async def file(self) -> str | None:
        """Return the path of the session file; None: nothing was said yet."""
        return await anyio.to_thread.run_sync(session_file, self.sessions, self.session.id)

    async def list_models(self) -> Sequence[JsonObject]:
        """Return the models that can be used, as the server lists them.

        Raises:
            AgentRefused: The server has gone.
        """
        listed = await self.session.request("agent/model/list", scope="usable")
        self._models = objects(listed.get("models"))
        return self._models

    async def listed_model(self, ref: str | None) -> JsonObject:
        """Return what the server lists for a model; nothing where it does not.

        Raises:
            AgentRefused: The server has gone.
        """
        for models in (self._models, None):
            rows = await self.list_models() if models is None else models
            if listed := next((one for one in rows if one.get("model") == ref), None):
                return listed
        return {}

    async def thinking_levels(self) -> Sequence[ThinkingLevel]:
        """Return the thinking levels of the session's model, the lowest first.

        Raises:
            AgentRefused: The server has gone.
        """
        listed = (await self.listed_model(self.session.state.config.model)).get("thinking")
        has = rows(listed)
        return [one for one in LEVELS if one in has] or ["off"]

    async def model(self, ref: str) -> JsonObject:
        """Return a model in pi's form.

        Raises:
            AgentRefused: The server has gone.
        """
        provider, name = split_model(ref)
        listed = await self.listed_model(ref)
        return model_record({"model": ref, "name": name, "provider": provider, **listed})


Handler = Callable[[RpcContext, JsonObject], Awaitable[JsonObject]]
"""Runs a command; returns `{"data": …}`, or nothing where the response has no data.

Raises UsageError (a field is wrong, or Tiller has nothing that the command maps to), AgentRefused (the server refused it, or has gone) and
OSError (a file cannot be written).
"""


def text_field(command: JsonObject, name: str) -> str:
    """Return a field that must be text.

    Raises:
        UsageError: It is not.
    """
    value = command.get(name)
    if not isinstance(value, str):
        message = f"{name} must be a string"
        raise UsageError(message)
    return value


def choice_field(command: JsonObject, name: str, choices: Collection[str]) -> str:
    """Return a field that must be one of some words.

    Raises:
        UsageError: It is not.
    """
    value = text_field(command, name)
    if value not in choices:
        message = f"{name} must be one of {', '.join(choices)}, got {value[:80]!r}"
        raise UsageError(message)
    return value


def flag_field(command: JsonObject, name: str) -> bool:
    """Return a field that must be true or false.

    Raises:
        UsageError: It is not.
    """
    value = command.get(name)
    if not isinstance(value, bool):
        message = f"{name} must be true or false"
        raise UsageError(message)
    return value


def rows(value: JsonValue) -> Sequence[JsonValue]:
    """Return a list as it is, and anything else as an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def objects(value: JsonValue) -> Sequence[JsonObject]:
    """Return the items of a list as objects."""
    return [as_object(one) for one in rows(value)]


def text_of_blocks(blocks: JsonValue) -> str:
    """Return the text of content blocks, or of a text."""
    if isinstance(blocks, str):
        return blocks
    return "".join(as_text(one.get("text")) for one in objects(blocks))
