"""Version 2 of ACP, a draft: messages of version 1 in its form, and the state of a session that it reports. No I/O.

The sessions and their projector know version 1; this module converts messages of it. The life of a prompt, which is answered when it is
in the conversation, is in `Turns.insert`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.events import (
    CommandSubject,
    CompactionEnded,
    CompactionStarted,
    Event,
    MessageEnded,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolRunning,
    TurnEnded,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from tiller_server.acp.errors import INVALID_PARAMS, NOT_FOUND, AcpError
from tiller_server.acp.peer import PeerHandler, PeerReply, Request
from tiller_server.acp.sessions.prompts import end_of_compaction, end_of_run
from tiller_server.acp.updates.tool_calls import MAX_TEXT_BYTES, NO_NEWLINE, OWN_DIFF

VERSION: Final = 2
PLAN: Final = "todo"
"""Id of the one plan of a session."""
RUN: Final = "tiller.dev/run"
"""Key of `_meta` of a state: the run."""
WHOLE: Final[Mapping[str, str]] = {
    "user_message_chunk": "user_message",
    "agent_message_chunk": "agent_message",
    "agent_thought_chunk": "agent_thought",
}
"""Updates that replace a message, by the update that continues it."""
VALUE_TYPES: Final[Mapping[str, type]] = {"id": str, "boolean": bool}
"""Types of values of options, by their name."""


# ------------------------------------------------------------------ requests and their results


def initialize_params(params: JsonObject) -> JsonObject:
    """Return the params of `initialize` in the form of version 1, where support of a part was declared otherwise."""
    declared = as_object(params.get("capabilities"))
    has_terminal = is_object(as_object(declared.get("auth")).get("terminal"))
    capabilities: JsonObject = {
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
        "auth": {"terminal": has_terminal},
        "elicitation": as_object(declared.get("elicitation")),
    }
    return {
        "protocolVersion": VERSION,
        "clientInfo": params.get("info"),
        "clientCapabilities": capabilities,
    }


def initialize_result(result: JsonObject) -> JsonObject:
    """Return the result of `initialize`."""
    methods = result.get("authMethods")
    session: JsonObject = {
        "prompt": {"image": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
        "_meta": as_object(as_object(result.get("agentCapabilities")).get("_meta")),
    }
    return {
        "protocolVersion": VERSION,
        "info": result.get("agentInfo"),
        "capabilities": {"session": session},
        "authMethods": [
            _sign_in(as_object(one)) for one in (methods if isinstance(methods, list) else [])
        ],
    }


def _sign_in(method: JsonObject) -> JsonObject:
    rest = {name: one for name, one in method.items() if name not in {"id", "env"}}
    return {**rest, "methodId": method.get("id"), "env": []}


def request_handlers(version1: Mapping[str, PeerHandler]) -> dict[str, PeerHandler]:
    """Return the handlers of requests by method, made of those of version 1."""
    new, load, resume = (version1[f"session/{one}"] for one in ("new", "load", "resume"))
    close, configure = version1["session/close"], version1["session/set_config_option"]

    async def open_new(request: Request) -> JsonObject | PeerReply:
        request.params = {"mcpServers": [], **request.params}
        return _described(await new(request))

    async def open_stored(request: Request) -> JsonObject | PeerReply:
        match request.params.get("replayFrom"):
            case None:
                return _described(await resume(request))
            case {"type": "start"}:
                return _described(await load(request))
            case other:
                message = f"session/resume: replayFrom has the type 'start', not {other!r:.200}"
                raise AcpError(INVALID_PARAMS, message)

    async def end(request: Request) -> JsonObject | PeerReply:
        try:
            return await close(request)
        except AcpError as error:
            if error.code != NOT_FOUND:
                raise
            return {}  # a session that is not open is closed

    async def set_option(request: Request) -> JsonObject | PeerReply:
        kind, value = request.params.get("type"), request.params.get("value")
        shape = VALUE_TYPES.get(as_text(kind))
        if shape is None or not isinstance(value, shape):
            message = f"session/set_config_option: a value has the type 'id' and is a text, or 'boolean', not {kind!r:.80}"
            raise AcpError(INVALID_PARAMS, message)
        return _described(await configure(request))

    kept = ("initialize", "session/list", "session/delete", "session/prompt")
    return {
        **{name: version1[name] for name in kept},
        "auth/login": version1["authenticate"],
        "auth/logout": version1["logout"],
        "session/new": open_new,
        "session/resume": open_stored,
        "session/close": end,
        "session/set_config_option": set_option,
    }


def _described(reply: JsonObject | PeerReply) -> JsonObject | PeerReply:
    if isinstance(reply, PeerReply):
        return PeerReply(result=_description_of(reply.result), then=reply.then)
    return _description_of(reply)


def _description_of(result: JsonObject) -> JsonObject:
    """Return the description of a session."""
    described = {name: one for name, one in result.items() if name != "modes"}
    if "configOptions" in described:
        described["configOptions"] = _options(described["configOptions"])
    return described


def permission_params(asked: JsonObject, request: PermissionRequest | None) -> JsonObject:
    """Return the params of `session/request_permission`.

    Args:
        asked: Those of version 1.
        request: The permission request; None: a line of a question.
    """
    call = as_object(asked.get("toolCall"))
    more: dict[str, JsonValue] = {}
    if request is not None:
        if text := _description(call.get("content"), request):
            more["description"] = text
        if (subject := _subject(call, request)) is not None:
            more["subject"] = subject
    return {
        "sessionId": asked.get("sessionId"),
        "title": as_text(call.get("title")),
        "options": asked.get("options"),
        **more,
    }


def _description(content: JsonValue, request: PermissionRequest) -> str:
    if isinstance(request.subject, CommandSubject):
        return request.description or ""  # the command is the subject
    parts = content if isinstance(content, list) else []
    return "\n\n".join(
        as_text(as_object(as_object(one).get("content")).get("text")) for one in parts
    )


def _subject(call: JsonObject, request: PermissionRequest) -> JsonObject | None:
    if isinstance(request.subject, CommandSubject):
        command: JsonObject = {
            "type": "command",
            "command": request.subject.command,
            "cwd": str(request.subject.cwd),
        }
        return {**command, "toolCallId": request.item} if request.item else command
    if not request.item:
        return None
    shown = {name: one for name, one in call.items() if name not in {"content", "status"}}
    return {"type": "tool_call", "toolCall": shown}


# ------------------------------------------------------------------ updates


class Version2Updates:
    """Updates of one session, and its state: whether the agent works, waits for the user, or is idle."""

    def __init__(self, client_id: str) -> None:
        """Create one for a session in which nothing runs.

        Args:
            client_id: Id of the client process, with which the ids of its prompts begin.
        """
        self._own = f"{client_id}:"
        self._is_active = False
        """Whether a run or a compaction is going on."""
        self._run = ""
        """Run that has a prompt of the client; `tiller acp` has it continued when the daemon has ended."""
        self._is_continued = False
        """Whether the run was interrupted by the end of the daemon, and goes on."""
        self._is_prompted = False
        """Whether a prompt of the client is sent again, which continues a run that was interrupted."""
        self._asked: dict[str, str | None] = {}
        """Tool calls that wait for an open request, by request; None: which one is not known."""
        self._working: set[str] = set()
        """Tool calls that run."""
        self._stop = ""
        """Stop reason of the last answer of the model."""
        self._reported = "idle"

    def restart(self, snapshot: JsonObject) -> None:
        """Begin at a snapshot of the session."""
        pending = snapshot.get("pending")
        requests = [as_object(one) for one in (pending if isinstance(pending, list) else [])]
        self._is_active = is_object(snapshot.get("run"))
        self._asked = {
            as_text(one.get("request")): as_text(one.get("item")) or None for one in requests
        }
        self._working.clear()
        self._reported = self._state

    def state(self, *, is_continued: bool = False, is_prompted: bool = False) -> list[JsonObject]:
        """Return the update that reports the state.

        Args:
            is_continued: Whether an interrupted run goes on, of which no event has come yet.
            is_prompted: Whether a prompt is about to be sent again, which continues a run that was interrupted.
        """
        self._is_prompted = self._is_prompted or is_prompted
        if is_continued:
            self._is_continued, self._is_active, self._reported = True, True, "running"
        update: JsonObject = {"sessionUpdate": "state_update", "state": self._reported}
        return [{**update, "_meta": {RUN: self._run}} if self._run else update]

    def local(self, message_id: str, content: JsonValue) -> list[JsonObject]:
        """Return the updates for a prompt that was handled without a run: its echo, and that it is done."""
        echo: JsonObject = {
            "sessionUpdate": "user_message",
            "messageId": message_id,
            "content": content,
        }
        if self._is_active:
            return [echo]
        running: JsonObject = {"sessionUpdate": "state_update", "state": "running"}
        return [running, echo, _idle("end_turn")]

    def end(self) -> list[JsonObject]:
        """Return the update that reports that an interrupted run has nothing more to do."""
        return self._ended("end_turn")

    def live(self, event: Event | None, updates: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the updates for an event, and the state if it changes.

        Args:
            event: The event; None: the updates have another cause.
            updates: Updates of version 1.
        """
        shown = [one for update in _whole(updates, only="user") for one in _update(event, update)]
        return shown if event is None else [*shown, *self._states(event)]

    def replayed(self, event: Event, updates: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the updates for a stored event; one that the client has seen before replaces what it has."""
        return [one for update in _whole(updates) for one in _update(event, update)]

    @property
    def _state(self) -> str:
        if not self._is_active:
            return "idle"
        waiting = set(self._asked.values())
        unnamed = sum(call is None for call in self._asked.values())
        is_blocked = bool(self._asked) and len(self._working - waiting) <= unnamed
        return "requires_action" if is_blocked else "running"

    def _states(self, event: Event) -> list[JsonObject]:
        """Follow an event; return the state if it has changed."""
        if (end := self._end_of(event)) is not None:
            return self._ended(end)
        run = self._run
        self._follow_run(event)
        self._follow_calls(event)
        if self._reported == self._state and run == self._run:
            return []
        self._reported = self._state
        return self.state()

    def _end_of(self, event: Event) -> str | AcpError | None:
        """Return the stop reason or the error with which the work ends; None: it does not end."""
        match event:
            case RunEnded(status="interrupted", run=run) if run == self._run or self._is_continued:
                # Only the end of the daemon interrupts a run; `tiller acp` has it continued.
                self._is_continued = True
                return None
            case RunEnded(status="interrupted") if self._is_prompted:
                return None
            case RunEnded():
                return end_of_run(event, last_stop=self._stop)
            case CompactionEnded(run=None):
                return end_of_compaction(event)
            case _:
                return None

    def _follow_run(self, event: Event) -> None:
        match event:
            case RunStarted(run=run, message_id=message):
                is_own = self._is_continued or (message or "").startswith(self._own)
                self._is_active, self._is_continued, self._stop = True, False, ""
                self._is_prompted = False
                self._run = run if is_own else ""
            case MessageEnded(run=run, message_id=message) if run and (message or "").startswith(
                self._own
            ):
                self._run = run  # a prompt of the client steers it
            case CompactionStarted(run=None):
                self._is_active = True
            case TurnEnded(stop_reason=stop):
                self._stop = stop
            case _:
                pass

    def _follow_calls(self, event: Event) -> None:
        match event:
            case ToolRunning(item=item):
                self._working.add(item)
            case ToolEnded(item=item):
                self._working.discard(item)
            case PermissionRequested(request=request):
                self._asked[request.request] = request.item or None
            case QuestionRequested(request=question) if question.blocking:
                self._asked[question.request] = None
            case PermissionResolved(request=name) | QuestionResolved(request=name):
                _ = self._asked.pop(name, None)
            case _:
                pass

    def _ended(self, end: str | AcpError) -> list[JsonObject]:
        self._is_active, self._is_continued, self._run, self._reported = False, False, "", "idle"
        self._working.clear()
        return [_idle(end)]


def _idle(end: str | AcpError) -> JsonObject:
    idle: JsonObject = {"sessionUpdate": "state_update", "state": "idle"}
    if isinstance(end, AcpError):
        error: JsonObject = {"code": end.code, "message": str(end), "data": end.data}
        return {**idle, "stopReason": "error", "error": error}
    return {**idle, "stopReason": end}


def _whole(updates: Sequence[JsonObject], *, only: str = "") -> list[JsonObject]:
    """Return the updates of one event, the chunks of each message as one update that replaces the message.

    Args:
        updates: The updates.
        only: Beginning of the names of the messages; the chunks of others stay. Empty: all.
    """
    whole: list[JsonObject] = []
    for update in updates:
        kind = as_text(update.get("sessionUpdate"))
        if kind not in WHOLE or not kind.startswith(only):
            whole.append(update)
            continue
        message: JsonObject = {
            "sessionUpdate": WHOLE[kind],
            "messageId": update.get("messageId"),
        }
        parts: list[JsonValue] = []
        if whole and message.items() <= whole[-1].items():
            before = whole.pop().get("content")
            parts = before if isinstance(before, list) else []
        whole.append({**message, "content": [*parts, update.get("content")]})
    return whole


def _update(event: Event | None, update: JsonObject) -> list[JsonObject]:
    """Return an update in the form of version 2; none for one that it does not have."""
    match update.get("sessionUpdate"):
        case "current_mode_update":
            return []  # the option of that name has changed, too
        case "tool_call" | "tool_call_update":
            return [{**_call(event, update), "sessionUpdate": "tool_call_update"}]
        case "plan":
            plan: JsonObject = {"type": "items", "planId": PLAN, "entries": update.get("entries")}
            return [{"sessionUpdate": "plan_update", "plan": plan}]
        case "config_option_update":
            return [{**update, "configOptions": _options(update.get("configOptions"))}]
        case "available_commands_update":
            listed = update.get("availableCommands")
            commands: list[JsonValue] = [
                _command(as_object(one)) for one in (listed if isinstance(listed, list) else [])
            ]
            return [{**update, "availableCommands": commands}]
        case _:
            return [update]


def _call(event: Event | None, update: JsonObject) -> JsonObject:
    if not isinstance(event, ToolEnded) or "content" not in update:
        return update
    if event.status == "cancelled":
        return {**update, "status": "cancelled"}
    difference = _difference(event, update.get("content"))
    return update if difference is None else {**update, "content": [difference]}


def _difference(event: ToolEnded, content: JsonValue) -> JsonObject | None:
    """Return the change of a file that a call has made; None: it has made none.

    Args:
        event: The end of the call.
        content: Its content in version 1.
    """
    details = as_object(event.details)
    path, patch = as_text(details.get("path")), as_text(details.get("patch"))
    if event.status != "ok" or event.name not in OWN_DIFF or not path:
        return None
    is_new = details.get("created") is True
    change: JsonObject = {"operation": "add" if is_new else "modify", "path": path}
    difference: JsonObject = {"type": "diff", "changes": [change]}
    first: JsonObject = as_object(content[0]) if isinstance(content, list) and content else {}
    if is_new and isinstance(text := first.get("newText"), str):
        return {**difference, "patch": _new_file(path, text)}
    if not patch or details.get("truncated") is True or len(patch) > MAX_TEXT_BYTES:
        return difference
    named = patch.partition("\n")[0].removeprefix("--- a/")
    return {**difference, "patch": _git_patch(f"diff --git a/{named} b/{named}\n{patch}")}


def _new_file(path: str, text: str) -> JsonObject:
    named, lines = path.lstrip("/"), text.splitlines(keepends=True)
    rows = "".join(f"+{line}" for line in lines)
    if rows and not rows.endswith("\n"):
        rows += f"\n{NO_NEWLINE}\n"
    head = f"diff --git a/{named} b/{named}\nnew file mode 100644\n"
    body = f"--- /dev/null\n+++ b/{named}\n@@ -0,0 +1,{len(lines)} @@\n{rows}" if lines else ""
    return _git_patch(f"{head}{body}")


def _git_patch(text: str) -> JsonObject:
    return {"format": "git_patch", "text": text}


def _options(options: JsonValue) -> list[JsonValue]:
    return [
        {("configId" if name == "id" else name): value for name, value in as_object(one).items()}
        for one in (options if isinstance(options, list) else [])
    ]


def _command(command: JsonObject) -> JsonObject:
    shown: JsonObject = {"type": "command", **command}
    hint = command.get("input")
    return {**shown, "input": {"type": "text", **hint}} if is_object(hint) else shown
