"""Relay logic between a client of the Agent Client Protocol and its current daemon. Pure: lines in, lines out, no waiting.

As in `proxy.py`, a message is passed on first and read afterwards. When a daemon dies, the next one is introduced to the
client again: `initialize`, then `session/resume` for each session, from the last update that the client was sent. Every
request of the client is answered once: it is sent again, or answered with an error.
"""

from collections.abc import Callable

from tiller_server.daemon.shim.message import (
    JsonDict,
    RelayedMessage,
    as_object,
    error,
    key_of,
    notification,
    read,
    request,
    result,
)
from tiller_server.daemon.shim.proxy import ATTACHED, GONE, NEW, REPLAYING, RelayProxy

CANCEL_REQUEST = "$/cancel_request"
CANCELLED = -32800
INTERNAL_ERROR = -32603
OPENING = frozenset({"session/new", "session/load", "session/resume"})
ENDING = frozenset({"session/close", "session/delete"})
_SHOWN = "tiller.dev/shown"
_RECREATE = "tiller.dev/recreate"
_CONTINUE = "tiller.dev/continue"
_PROMPTED = "tiller.dev/prompted"
_RUN = "tiller.dev/run"
_INITIALIZE = "tiller-initialize"
_RESUME = "tiller-resume-"
"""Ids of our own requests; no answer to them is passed on."""


class ResumableSession:
    """A session that the client has open, and how far it was told of it."""

    __slots__ = ("is_new", "meta", "params", "run", "shown")

    def __init__(self, params: JsonDict, *, is_new: bool) -> None:
        self.params = params
        self.is_new = is_new
        """Whether the client made it, and no prompt of it has been answered: perhaps nothing is stored."""
        self.meta: JsonDict = {}
        self.shown: JsonDict = {}
        """Characters of unfinished texts, by item."""
        self.run: object = None
        """Run of a prompt of the client that goes on, where the protocol reports it: its prompt is answered before its end."""

    def follow(self, meta: JsonDict, update: JsonDict) -> None:
        """Record an update that the client was sent, and its `_meta`."""
        self.meta = meta
        self.shown |= as_object(meta.get(_SHOWN)) or {}
        if update.get("sessionUpdate") == "state_update":
            self.run = (as_object(update.get("_meta")) or {}).get(_RUN)

    def resumed(self, session: str, *, is_prompted: bool) -> JsonDict:
        """Return the params of a `session/resume` that goes on after the last update.

        Args:
            session: Id by which the client knows it.
            is_prompted: Whether a prompt follows that was not answered.
        """
        names = ("cwd", "mcpServers", "additionalDirectories")
        params = {name: self.params[name] for name in names if name in self.params}
        meta: JsonDict = {**self.meta, _SHOWN: self.shown, _RECREATE: self.is_new}
        if self.run is not None:
            meta[_CONTINUE] = self.run
        if is_prompted:
            meta[_PROMPTED] = True
        return {**params, "sessionId": session, "_meta": meta}


class AcpProxy(RelayProxy):
    """One client's conversation, over as many daemons as it takes."""

    def __init__(self, *, note: Callable[[str], None]) -> None:
        """Begin without a daemon."""
        super().__init__(note=note)
        self._initialize: RelayedMessage | None = None
        self._sessions: dict[str, ResumableSession] = {}
        self._asked: dict[str, object] = {}
        """Open requests of the daemon to the client."""
        self._resuming: set[str] = set()
        self._version: object = 1

    @property
    def exit_code(self) -> int | None:
        """Always None: a client leaves by closing its end."""
        return None

    @property
    def editors_pid(self) -> int | None:
        """Always None: a client does not say which process it is."""
        return None

    # ------------------------------------------------------------------ what is said

    def on_client(self, body: bytes) -> None:
        """Accept a message from the client."""
        if self.stage in {GONE, REPLAYING}:
            self._hold(body)
            return
        self.to_daemon.put(body + b"\n")
        self._passed.append((self._look_at_client, body))

    def on_server(self, body: bytes) -> None:
        """Accept a message from the daemon."""
        if self.stage == REPLAYING and (message := read(body)) is not None and message.is_response:
            self._continue_replay(message)
            return
        self.has_answered = True
        self.to_editor.put(body + b"\n")
        self._passed.append((self._look_at_daemon, body))

    # ------------------------------------------------------------------ daemons come and go

    def daemon_came(self, handshake: bytes) -> None:
        """Begin to talk to a daemon."""
        self.inspect_forwarded()
        self.to_daemon.take_unsent()
        self.to_daemon.put(handshake)
        if self.stage == NEW:
            for body in self.held.bodies():
                self.to_daemon.put(body + b"\n")
            return
        params = self._initialize.params if self._initialize is not None else None
        self._tell(request(_INITIALIZE, "initialize", params or {}))
        self._resuming = {_INITIALIZE}
        for number, (session, opened) in enumerate(self._sessions.items()):
            name = f"{_RESUME}{number}"
            is_prompted = self._held_prompt(session) is not None
            params = opened.resumed(session, is_prompted=is_prompted)
            self._tell(request(name, "session/resume", params))
            self._resuming.add(name)
        self.stage = REPLAYING

    def daemon_gone(self) -> None:
        """Settle what the daemon has left behind."""
        self.inspect_forwarded()
        unsent = [read(line) for line in self.to_daemon.take_unsent()]
        if self.stage == ATTACHED:
            late = [one for one in unsent if one is not None]
            self._settle_calls({one.key for one in late if one.is_request})
            for message in late:
                if not message.is_response:
                    self.held.add(message.body, message)
        if self.stage != NEW:
            for id_ in self._asked.values():
                self._show(notification(CANCEL_REQUEST, {"requestId": id_}))
            self._asked.clear()
            self.stage = GONE

    def give_up(self, why: str) -> None:
        """Answer what is held: there will be no daemon."""
        for _, message, _ in self.held.take_all():
            if message is not None and message.is_request:
                self._fail(message, why)

    def _settle_calls(self, late: set[str | None]) -> None:
        for call in self._calls.take_all():
            message = call.message
            if message.key in late:
                continue  # it never began to go out, and is held
            if call.again or self._is_half_loaded(message):
                self._fail(message, "it ended before it could answer")
            else:
                self.held.add(message.body, message, again=True)

    def _is_half_loaded(self, message: RelayedMessage) -> bool:
        """Return whether the client has a part of a replay, which a second one would repeat."""
        if message.method != "session/load":
            return False
        opened = self._sessions.get(_session_of(message))
        return opened is not None and bool(opened.meta)

    def _continue_replay(self, answer: RelayedMessage) -> None:
        """Pass on what was held once the new daemon has all sessions; the next request to one that it cannot open fails."""
        self._resuming.discard(str(answer.id))
        if (failure := as_object(answer.error)) is not None:
            self._note(f"the new daemon cannot go on with a session: {failure.get('message')}")
        if self._resuming:
            return
        self.stage = ATTACHED
        for body, message, again in self.held.take_all():
            self.to_daemon.put(body + b"\n")
            if message is not None and message.is_request:
                self._calls.begin(message, again=again)

    # ------------------------------------------------------------------ messages

    def _look_at_client(self, body: bytes) -> None:
        message = read(body)
        if self.stage == NEW:
            self.held.add(body, message)
        if message is None:
            return
        if message.is_request:
            if message.method == "initialize" and self._initialize is None:
                self._initialize = message
            elif message.method == "session/load" and (params := message.params) is not None:
                self._sessions[_session_of(message)] = ResumableSession(params, is_new=False)
            self._calls.begin(message)
        elif message.is_response and (key := message.key) is not None:
            self._asked.pop(key, None)

    def _look_at_daemon(self, body: bytes) -> None:
        message = read(body)
        if message is None:
            return
        if message.method == "session/update":
            opened = self._sessions.get(_session_of(message))
            if opened is not None:
                params = message.params or {}
                meta, update = (as_object(params.get(name)) or {} for name in ("_meta", "update"))
                opened.follow(meta, update)
        elif message.is_request and (key := message.key) is not None:
            self._asked[key] = message.id
        elif message.is_response:
            self._answered(message)

    def _answered(self, answer: RelayedMessage) -> None:
        asked = self._calls.end(answer.key)
        if self.stage == NEW:
            self.held.drop(answer.key)
        if asked is None:
            return
        session = _session_of(asked)
        if answer.error is not None:
            if asked.method == "session/load":
                self._sessions.pop(session, None)
            return
        if asked.method == "initialize":
            self._version = (as_object(answer.result) or {}).get("protocolVersion")
            self.held.take_all()
            self.stage = ATTACHED
        elif asked.method in OPENING:
            opened = str((as_object(answer.result) or {}).get("sessionId") or session)
            is_new = asked.method == "session/new"
            made = ResumableSession(asked.params or {}, is_new=is_new)
            self._sessions.setdefault(opened, made)
        elif asked.method in ENDING:
            self._sessions.pop(session, None)
        elif asked.method == "session/prompt" and session in self._sessions:
            self._prompt_answered(self._sessions[session], as_object(answer.result) or {})

    def _prompt_answered(self, opened: ResumableSession, result: JsonDict) -> None:
        opened.is_new = False
        if "stopReason" in result:
            # With the answer the client has all of each text before it.
            opened.shown.clear()
            opened.follow(as_object(result.get("_meta")) or {}, {})

    def _hold(self, body: bytes) -> None:
        """Hold a message for the next daemon, unless it is about what has ended."""
        message = read(body)
        if message is None:
            self.held.add(body)
        elif message.is_request:
            self.held.add(body, message)
        elif message.method == CANCEL_REQUEST:
            self._withdraw(self.held.drop(key_of((message.params or {}).get("requestId"))))
        elif message.method == "session/cancel":
            session = _session_of(message)
            while (prompt := self._held_prompt(session)) is not None:
                self._withdraw(self.held.drop(prompt.key))
            self.held.add(body, message)
        elif message.method is not None:
            self.held.add(body, message)

    def _held_prompt(self, session: str) -> RelayedMessage | None:
        for message in self.held.messages():
            if message.method == "session/prompt" and _session_of(message) == session:
                return message
        return None

    def _withdraw(self, message: RelayedMessage | None) -> None:
        if message is None:
            return
        if message.method == "session/prompt" and self._version == 1:
            self._show(result(message.id, {"stopReason": "cancelled"}))
        else:
            self._show(error(message.id, CANCELLED, "The request was cancelled."))

    def _fail(self, message: RelayedMessage, why: str) -> None:
        data: JsonDict = {"kind": "Internal", "retryable": True}
        self._show(error(message.id, INTERNAL_ERROR, f"Tiller's daemon: {why}. Ask again.", data))

    def _show(self, body: bytes) -> None:
        self.to_editor.put(body + b"\n")

    def _tell(self, body: bytes) -> None:
        self.to_daemon.put(body + b"\n")


def _session_of(message: RelayedMessage) -> str:
    return str((message.params or {}).get("sessionId") or "")
