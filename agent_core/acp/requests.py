"""The requests of an external agent as calls of tools, and the results of these calls as answers to it."""

import re
import shlex
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from os.path import normpath
from pathlib import Path
from typing import Final

from msgspec import Struct

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.text import one_line
from agent_core.kernel.values import Value
from agent_core.messages import Image, ToolCall, ToolResultMessage, text_of

START: Final = "agent_start"
STEP: Final = "agent_step"
READ: Final = "agent_read"
WRITE: Final = "write"
TERMINAL: Final = "agent_terminal"
COMMAND: Final = "agent_permission_command"
EDIT: Final = "agent_permission_edit"
LOOK: Final = "agent_permission_read"
TODO_TOOL: Final = "todo"

PERMISSION: Final = "session/request_permission"
READ_FILE: Final = "fs/read_text_file"
WRITE_FILE: Final = "fs/write_text_file"
CREATE_TERMINAL: Final = "terminal/create"
OF_TERMINALS: Final = frozenset(
    {"terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"}
)
"""Requests about a terminal that is there; they are answered without a call."""
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
TITLE_CHARS: Final = 200
MOST_IMAGES: Final = 10
IMAGES: Final[Mapping[str, str]] = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""Kinds of images by their first bytes in base64."""
CHANGING: Final = frozenset({"edit", "delete", "move"})
LOOKING: Final = frozenset({"read", "search"})
REASON: Final = "tiller.dev/reason"
"""Key of `_meta` under which an answer says why permission was refused."""
NOTHING: Final[Mapping[str, JsonValue]] = {}


def other_tool(agent: str) -> str:
    """Return the name of the tool that stands for what no other tool stands for; rules of the user name it."""
    return f"external_{agent}"


class AskingAgent(Value, frozen=True, kw_only=True):
    """The agent whose requests are judged."""

    name: str
    cwd: Path
    tools: Sequence[str]
    """Tools of its task."""
    needs: Sequence[str]
    """Access that the agent has beyond containment, and so the commands that it runs."""


class Refused(Value, frozen=True, kw_only=True):
    """The answer to a request that is no call of a tool."""

    code: int
    message: str


class OpenRequest(Struct, kw_only=True):
    """A request of the agent that a call of a tool answers."""

    id: JsonValue
    method: str
    params: JsonObject
    content: str | None = None
    """The text that the tool `agent_read` has read, or the id of a new terminal."""


def call_for(
    method: str, params: JsonObject, *, id_: str, agent: AskingAgent
) -> ToolCall | Refused:
    """Return the call of a tool that a request of the agent amounts to, or the error with which it is answered.

    Args:
        method: Method of the request.
        params: Its parameters.
        id_: Id of the call; it is an argument too, so that no two calls look like a repetition.
        agent: The agent.
    """
    match method:
        case "session/request_permission":
            return _permission(params, id_, agent)
        case "fs/read_text_file" if READ in agent.tools:
            arguments: dict[str, JsonValue] = {"path": params.get("path"), "request": id_}
            arguments |= {
                key: params[key] for key in ("line", "limit") if params.get(key) is not None
            }
            return _file_call(READ, arguments, id_)
        case "fs/write_text_file" if WRITE in agent.tools:
            content = params.get("content")
            if not isinstance(content, str):
                return Refused(code=INVALID_PARAMS, message="content must be a string")
            return _file_call(WRITE, {"path": params.get("path"), "content": content}, id_)
        case "terminal/create" if TERMINAL in agent.tools:
            return _terminal(params, id_, agent)
        case _:
            return Refused(code=METHOD_NOT_FOUND, message=f"method {method!r} is not supported")


def _terminal(params: JsonObject, id_: str, agent: AskingAgent) -> ToolCall | Refused:
    """Return the call that starts a command; folder and variables are a part of its line, so that they are judged and shown."""
    line, listed, variables = params.get("command"), params.get("args"), params.get("env")
    rest = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    if not isinstance(line, str) or not line.strip():
        return Refused(code=INVALID_PARAMS, message="command must be a text")
    line = shlex.join([line, *rest]) if rest else line
    pairs: list[str] = []
    for one in variables if isinstance(variables, list | tuple) else ():
        name, value = (as_object(one).get(key) for key in ("name", "value"))
        if not isinstance(name, str) or not VARIABLE.fullmatch(name) or not isinstance(value, str):
            return Refused(code=INVALID_PARAMS, message="env must be names and values")
        pairs.append(f"{name}={value}")
    if pairs:
        line = shlex.join(["env", *pairs, "bash", "-c", line])
    cwd = params.get("cwd") or str(agent.cwd)
    if not isinstance(cwd, str) or not Path(cwd).is_absolute():
        return Refused(code=INVALID_PARAMS, message=f"cwd must be absolute, not {cwd!r}")
    if Path(normpath(cwd)) != agent.cwd:
        line = f"cd {shlex.quote(cwd)} && {line}"
    arguments: dict[str, JsonValue] = {
        "command": line,
        "needs": list(agent.needs),
        "request": id_,
    }
    limit = params.get("outputByteLimit")
    if isinstance(limit, int) and not isinstance(limit, bool):
        arguments["limit"] = limit
    return ToolCall(id=ToolCallId(id_), name=TERMINAL, arguments=arguments)


def _file_call(tool: str, arguments: JsonObject, id_: str) -> ToolCall | Refused:
    path = arguments.get("path")
    if not isinstance(path, str) or not Path(path).is_absolute():
        return Refused(code=INVALID_PARAMS, message=f"path must be absolute, not {path!r}")
    return ToolCall(id=ToolCallId(id_), name=tool, arguments=arguments)


def _permission(params: JsonObject, id_: str, agent: AskingAgent) -> ToolCall:
    """Return the call whose permission stands for that of the agent's own tool."""
    call = as_object(params.get("toolCall"))
    kind, raw = as_text(call.get("kind")), as_object(call.get("rawInput"))
    title = one_line(as_text(call.get("title")))[:TITLE_CHARS]
    command, paths = _command_in(raw), _paths_in(call)
    arguments: dict[str, JsonValue] = {"title": title, "request": id_}
    path = paths[0] if len(paths) == 1 else ""
    if kind == "execute" and command:
        name = COMMAND
        arguments |= {"command": command, "needs": list(agent.needs)}
    elif kind in CHANGING and path:
        name = EDIT
        arguments["path"] = path
    elif kind in LOOKING and path and Path(normpath(path)).is_relative_to(agent.cwd):
        name = LOOK
        arguments["path"] = path
    else:
        name = other_tool(agent.name)
        arguments |= {"kind": kind or "other", "input": raw}
    return ToolCall(id=ToolCallId(id_), name=name, arguments=arguments)


def _command_in(raw: JsonObject) -> str:
    command = raw.get("command", raw.get("cmd"))
    if isinstance(command, str):
        return command
    argv = command if isinstance(command, list | tuple) else ()
    if not argv or not all(isinstance(one, str) for one in argv):
        return ""
    return shlex.join(as_text(one) for one in argv)


def _paths_in(call: JsonObject) -> Sequence[str]:
    """Return the files that a tool call names in its places and differences."""
    found: list[str] = []
    for key in ("locations", "content"):
        listed = call.get(key)
        for one in listed if isinstance(listed, list | tuple) else ():
            path = as_object(one).get("path")
            if isinstance(path, str) and path not in found:
                found.append(path)
    return found


def answer_to(request: OpenRequest, result: ToolResultMessage) -> JsonObject:
    """Return the answer to a request by the result of its call."""
    if request.method == PERMISSION:
        reason = text_of(result.content)
        chosen = _outcome(request.params, allowed=not result.is_error)
        meta = {"_meta": {REASON: reason}} if result.is_error else NOTHING
        return reply(request.id, {"outcome": chosen, **meta})
    if result.is_error:
        return error(request.id, INTERNAL, text_of(result.content))
    if request.method == READ_FILE:
        return reply(request.id, {"content": request.content or ""})
    if request.method == CREATE_TERMINAL:
        return reply(request.id, {"terminalId": request.content or ""})
    return reply(request.id, {})


def cancelled_answer(request: OpenRequest) -> JsonObject:
    """Return the answer to a request of a task that was stopped."""
    if request.method == PERMISSION:
        return reply(request.id, {"outcome": {"outcome": "cancelled"}})
    return error(request.id, INTERNAL, "the task was stopped")


def _outcome(params: JsonObject, *, allowed: bool) -> JsonObject:
    """Return the answer to a question for permission.

    A yes is for this call alone, whatever the user chose: a rule for longer is kept here and answers the next question.
    """
    listed = params.get("options")
    options = [as_object(one) for one in listed] if isinstance(listed, list | tuple) else []
    kinds = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            id_ = option.get("optionId")
            if option.get("kind") == kind and isinstance(id_, str):
                return {"outcome": "selected", "optionId": id_}
    return {"outcome": "cancelled"}


def reply(id_: JsonValue, result: JsonObject) -> JsonObject:
    """Return the response to a request."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def error(id_: JsonValue, code: int, message: str) -> JsonObject:
    """Return the response to a request that failed."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def image_in(block: JsonValue) -> Image | None:
    """Return the image in a content block; None: it has none, or not a whole one of a known kind."""
    content = as_object(block)
    data = content.get("data")
    if content.get("type") != "image" or not isinstance(data, str):
        return None
    mime = next((mime for begin, mime in IMAGES.items() if data.startswith(begin)), None)
    try:
        _ = b64decode(data, validate=True)
    except ValueError:
        return None
    return None if mime is None else Image(mime=mime, data=data)


def images_of_call(call: JsonObject) -> tuple[Image, ...]:
    """Return the images that a tool call of the agent has put out, at most `MOST_IMAGES`."""
    listed = call.get("content")
    parts = [as_object(one) for one in listed] if isinstance(listed, list | tuple) else []
    found = (image_in(one.get("content")) for one in parts if one.get("type") == "content")
    return tuple(islice((image for image in found if image is not None), MOST_IMAGES))


def text_of_block(block: JsonValue) -> str:
    """Return the text of a content block; of another kind of block, its name."""
    content = as_object(block)
    match content.get("type"):
        case "text":
            return as_text(content.get("text"))
        case "resource_link":
            return as_text(content.get("uri"))
        case "resource":
            return as_text(as_object(content.get("resource")).get("text"))
        case kind:
            return f"[{one_line(as_text(kind)) or 'content'}]"


def text_of_call(call: JsonObject, terminal: Callable[[str], str]) -> str:
    """Return what a tool call of the agent has put out, as far as it is text.

    Args:
        call: The tool call, or an update of it.
        terminal: Returns the output of a terminal by its id.
    """
    listed = call.get("content")
    texts: list[str] = []
    for one in listed if isinstance(listed, list | tuple) else ():
        part = as_object(one)
        match part.get("type"):
            case "content":
                texts.append(text_of_block(part.get("content")))
            case "diff":
                texts.append(f"changed {as_text(part.get('path'))}")
            case "terminal":
                texts.append(terminal(as_text(part.get("terminalId"))))
            case _:
                pass
    return "\n".join(text for text in texts if text)


def todo_items(entries: JsonValue) -> Sequence[JsonValue]:
    """Return a plan of the agent as items of a todo list; only one step of it is active."""
    found: list[JsonValue] = []
    active = False
    for one in entries if isinstance(entries, list | tuple) else ():
        if not is_object(one):
            continue
        status = {"completed": "done", "in_progress": "active"}.get(
            as_text(one.get("status")), "pending"
        )
        if status == "active" and active:
            status = "pending"
        active = active or status == "active"
        text = one_line(as_text(one.get("content")))[:TITLE_CHARS]
        if text:
            found.append({"text": text, "status": status})
    return found
