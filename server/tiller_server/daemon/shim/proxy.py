"""Relay logic between an editor and its current daemon. Pure: bytes in, frames out, no waiting.

A message that can be forwarded unchanged is forwarded first and parsed afterwards, so that its receiver does not wait
for the parser. A message is parsed before it is forwarded only while no daemon is attached, or while the editor still
owes answers to a daemon that has died.
"""

from collections.abc import Callable

from tiller_server.daemon.shim.client_state import REPLAYED_METHODS, ClientState
from tiller_server.daemon.shim.message import (
    PROGRESS,
    JsonDict,
    RelayedMessage,
    as_object,
    is_work_done,
    key_of,
    notification,
    read,
    request,
    write,
)
from tiller_server.daemon.shim.pending_requests import (
    MessageBacklog,
    PendingClientRequests,
    PendingServerRequests,
    ended,
    gone,
    nothing,
    withdrawn,
)
from tiller_server.daemon.shim.send_queue import Outgoing
from tiller_server.lsp.transport.framing import frame

NEW = "new"
ATTACHED = "attached"
GONE = "gone"
REPLAYING = "retelling"
_OPEN = "tiller-open"
"""The id of the one request of our own."""
_LOST = frozenset({"agent/ack", "textDocument/willSave", "window/workDoneProgress/cancel"})
"""Notifications that mean nothing to another daemon."""


class RelayProxy:
    """The part of a proxy that no protocol changes: messages for both sides, and those passed on unread."""

    def __init__(self, *, note: Callable[[str], None]) -> None:
        """Begin without a daemon.

        Args:
            note: Writes a sentence to the log.
        """
        self._note = note
        self.stage = NEW
        self.to_editor = Outgoing()
        self.to_daemon = Outgoing()
        self.has_answered = False
        """Whether the client was given anything from a daemon."""
        self.held = MessageBacklog()
        """Messages for the next daemon. Before `initialize` is answered: all messages of the client."""
        self._calls = PendingClientRequests()
        self._passed: list[tuple[Callable[[bytes], None], bytes]] = []

    def inspect_forwarded(self) -> None:
        """Look at what was passed on. To be called when it has been written, before anything else is read."""
        passed, self._passed = self._passed, []
        for look, body in passed:
            look(body)


class LspProxy(RelayProxy):
    """One editor's conversation, over as many daemons as it takes."""

    def __init__(self, *, note: Callable[[str], None]) -> None:
        """Begin with neither a daemon nor a message."""
        super().__init__(note=note)
        self._state = ClientState()
        self._asks = PendingServerRequests()

    @property
    def exit_code(self) -> int | None:
        """Exit code, once the editor has sent `exit`; None before."""
        return self._state.exit_code

    @property
    def editors_pid(self) -> int | None:
        """The process that `initialize` says the editor is."""
        params = self._state.initialize.params if self._state.initialize else None
        pid = (params or {}).get("processId")
        return pid if isinstance(pid, int) and not isinstance(pid, bool) else None

    # ------------------------------------------------------------------ what is said

    def on_client(self, body: bytes) -> None:
        """Accept a message from the editor."""
        if self.stage in {GONE, REPLAYING} or self._asks.has_orphans:
            self._sort(body)
            return
        # Before the first daemon is there it goes nowhere: `daemon_came` sends what is held.
        self.to_daemon.put(frame(body))
        self._passed.append((self._editors, body))

    def on_server(self, body: bytes) -> None:
        """Accept a message from the daemon."""
        if self.stage == REPLAYING or (self._asks.has_orphans and not body.startswith(PROGRESS)):
            self._sort_down(body)
            return
        self.has_answered = True
        self.to_editor.put(frame(body))
        self._passed.append((self._daemons, body))

    # ------------------------------------------------------------------ daemons come and go

    def daemon_came(self, handshake: bytes) -> None:
        """Begin to talk to a daemon."""
        self.inspect_forwarded()
        self.to_daemon.take_unsent()
        self.to_daemon.put(handshake)
        if self.stage == NEW:
            for body in self.held.bodies():
                self.to_daemon.put(frame(body))
        else:
            self.to_daemon.put(frame(self._state.introduction()))
            self.stage = REPLAYING

    def daemon_gone(self) -> None:
        """Settle what the daemon has left behind."""
        self.inspect_forwarded()
        unsent = [read(one.partition(b"\r\n\r\n")[2]) for one in self.to_daemon.take_unsent()]
        if self.stage == ATTACHED:
            late = [one for one in unsent if one is not None]
            self._settle_calls({one.key for one in late if one.is_request})
            for message in late:
                if message.is_request or (not message.is_response and _is_kept(message)):
                    self.held.add(message.body, message)
        if self.stage != NEW:
            for body in self._asks.abandon():
                self.to_editor.put(frame(body))
            self.stage = GONE

    def give_up(self, why: str) -> None:
        """Answer what is held, and tell the user: there will be no daemon."""
        for _, message, _ in self.held.take_all():
            if message is not None and message.is_request:
                self.to_editor.put(frame(gone(message.id, what=why)))
        self.to_editor.put(frame(ended(why)))

    def _settle_calls(self, late: set[str | None]) -> None:
        for call in self._calls.take_all():
            message = call.message
            if message.key in late:
                continue  # it never began to go out, and is held
            if message.method == "shutdown":
                self.to_editor.put(frame(nothing(message.id)))
            elif call.may_be_sent_again:
                self.held.add(message.body, message, again=True)
            else:
                self.to_editor.put(frame(gone(message.id)))

    # ------------------------------------------------------------------ looked at afterwards

    def _editors(self, body: bytes) -> None:
        message = read(body)
        if self.stage == NEW:
            self.held.add(body, message)
        if message is None:
            return
        if message.is_request:
            if message.method == "initialize" and self.stage == NEW:
                self._state.initialize = message
            elif message.method == "shutdown":
                self._state.is_shut_down = True
            self._calls.begin(message)
        elif message.is_response:
            self._asks.settle(message.key)
        else:
            self._record_notification(message)

    def _record_notification(self, message: RelayedMessage) -> None:
        if message.method == "exit":
            self._state.exit_code = 0 if self._state.is_shut_down else 1
        else:
            self._state.record(message)

    def _daemons(self, body: bytes) -> None:
        if body.startswith(PROGRESS) and not is_work_done(body):
            return
        message = read(body)
        if message is None:
            return
        if message.is_request:
            self._asks.begin(message)
        elif message.is_response:
            self._answered(message)
        elif message.method == "$/progress":
            self._asks.progress(message)

    def _answered(self, message: RelayedMessage) -> None:
        asked = self._calls.end(message.key)
        if self.stage == NEW:
            self.held.drop(message.key)
        if asked is None or message.error is not None:
            return
        match asked.method:
            case "initialize":
                self._state.answer = message.body
                self.held.take_all()
                self.stage = ATTACHED
            case "agent/session/open":
                opened = (as_object(message.result) or {}).get("session")
                self._state.session = opened if isinstance(opened, str) else None
            case "agent/session/close":
                self._state.session = None
            case _:
                pass

    # ------------------------------------------------------------------ looked at beforehand

    def _sort(self, body: bytes) -> None:
        message = read(body)
        if message is not None and message.is_response:
            body = self._wanted(message)
            if not body:
                return
        if self.stage == ATTACHED:
            self.to_daemon.put(frame(body))
            self._passed.append((self._editors, body))
        elif message is None:
            self.held.add(body)
        elif message.is_request:
            self._sort_request(message)
        elif message.method is not None:
            self._sort_notification(message)

    def _wanted(self, message: RelayedMessage) -> bytes:
        """Return an answer as the daemon waits for it; nothing if it does not."""
        is_wanted, other_id = self._asks.settle(message.key)
        if not is_wanted or self.stage != ATTACHED:
            return b""
        return message.body if other_id is None else _with_id(message, other_id)

    def _sort_request(self, message: RelayedMessage) -> None:
        if message.method == "shutdown":
            self._state.is_shut_down = True
            self.to_editor.put(frame(nothing(message.id)))
        else:
            self.held.add(message.body, message)

    def _sort_notification(self, message: RelayedMessage) -> None:
        if message.method == "$/cancelRequest":
            dropped = self.held.drop(key_of((message.params or {}).get("id")))
            if dropped is not None:
                self.to_editor.put(frame(withdrawn(dropped.id)))
            return
        self._record_notification(message)
        if _is_kept(message):
            self.held.add(message.body, message)

    def _sort_down(self, body: bytes) -> None:
        message = read(body)
        introduced = self._state.initialize
        if message is None or introduced is None:
            return
        if self.stage == REPLAYING and message.is_response:
            self._continue_replay(message, introduced)
            return
        if message.is_request and (name := self._asks.renamed(message)) is not None:
            body = _with_id(message, name)
        elif message.method == "$/cancelRequest":
            id_ = (message.params or {}).get("id")
            if (client_id := self._asks.name_of(id_)) != id_:
                body = notification("$/cancelRequest", {"id": client_id})
        self.to_editor.put(frame(body))
        self._passed.append((self._daemons, body))

    def _continue_replay(self, answer: RelayedMessage, introduced: RelayedMessage) -> None:
        """Report a new daemon all that counts, open the session that was open, then give it what was held for it."""
        if answer.key == introduced.key:
            self._compare(answer)
            for body in self._state.replay():
                self.to_daemon.put(frame(body))
            if self._state.session is not None:
                params: JsonDict = {"session": self._state.session}
                self.to_daemon.put(frame(request(_OPEN, "agent/session/open", params)))
                return
        elif answer.error is not None:
            # Nothing was ever said in it: there is nothing to go on with.
            self._state.session = None
        self.stage = ATTACHED
        for body, message, again in self.held.take_all():
            self.to_daemon.put(frame(body))
            if message is not None and message.is_request:
                self._calls.begin(message, again=again)

    def _compare(self, answer: RelayedMessage) -> None:
        if answer.error is not None:
            self._note("the new daemon refuses what the one before it took")
        elif self._state.differs(answer):
            self._note(
                "the new daemon can do other things; restart the language server to use them"
            )


def _is_kept(message: RelayedMessage) -> bool:
    return message.method not in REPLAYED_METHODS and message.method not in _LOST


def _with_id(message: RelayedMessage, id_: object) -> bytes:
    fields: JsonDict = {"jsonrpc": "2.0", "id": id_}
    if message.method is not None:
        fields["method"] = message.method
        if message.params is not None:
            fields["params"] = message.params
    elif message.error is not None:
        fields["error"] = message.error
    else:
        fields["result"] = message.result
    return write(fields)
