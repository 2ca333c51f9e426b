"""State that a new daemon must receive so that the editor does not notice the change of daemon."""

from tiller_server.daemon.shim.message import (
    JsonDict,
    RelayedMessage,
    as_list,
    as_object,
    notification,
    read,
    write,
)
from tiller_server.daemon.shim.replayed_document import ReplayedDocument

_LAST = (
    "initialized",
    "$/setTrace",
    "workspace/didChangeConfiguration",
    "agent/editorContext",
)
"""Notifications of which the last one counts; told again in the order of this list, the last one after the documents."""
_FOLDERS = "workspace/didChangeWorkspaceFolders"
_TRUST = "agent/trust"
REPLAYED_METHODS = frozenset(
    {
        *_LAST,
        _FOLDERS,
        _TRUST,
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
    }
)
"""Methods whose messages a new daemon receives again, and which are not held while there is no daemon."""


class ClientState:
    """Follows what the editor tells, and says it anew."""

    def __init__(self) -> None:
        self.initialize: RelayedMessage | None = None
        self.answer: bytes | None = None
        """The answer to `initialize`."""
        self.session: str | None = None
        """The session that the editor has opened on this connection, as far as it was opened by name."""
        self.is_shut_down = False
        """Whether the editor has asked for it."""
        self.exit_code: int | None = None
        """Set when it has said `exit`."""
        self._documents: dict[str, ReplayedDocument] = {}
        self._last: dict[str, bytes] = {}
        self._folders: dict[str, JsonDict | None] = {}
        """Folders added after `initialize`, by URI; None: the folder was removed."""
        self._trust: dict[str, JsonDict] = {}
        self._encoding: str | None = None

    def record(self, message: RelayedMessage) -> None:
        """Record a notification that a new daemon needs; all others are ignored."""
        method, params = str(message.method), message.params or {}
        if method in _LAST:
            self._last[method] = message.body
        elif method == _FOLDERS:
            self._fold_folders(as_object(params.get("event")) or {})
        elif method == _TRUST:
            for item in as_list(params.get("items")):
                self._keep_trust(as_object(item) or {})
        elif method.startswith("textDocument/did"):
            self._follow(method, params, message)

    def introduction(self) -> bytes:
        """Return the `initialize` for a new daemon: the editor's own, but that what was new is the latest by now."""
        if self.initialize is None:
            return b""
        message = {"jsonrpc": "2.0", "id": self.initialize.id, "method": "initialize"}
        return write({**message, "params": _continued(self.initialize.params or {})})

    def replay(self) -> list[bytes]:
        """Return what follows the answer to `initialize`."""
        *before, after = _LAST
        messages = [self._last[name] for name in before if name in self._last]
        if self._folders:
            messages.append(self._folders_notification())
        if self._trust:
            messages.append(notification(_TRUST, {"items": list(self._trust.values())}))
        for document in self._documents.values():
            messages += document.messages()
        if after in self._last:
            messages.append(self._last[after])
        return messages

    def differs(self, answer: RelayedMessage) -> bool:
        """Return whether a new daemon can do other things than the one that the editor was introduced to."""
        first = read(self.answer or b"{}")
        return first is None or _capabilities(first) != _capabilities(answer)

    def _follow(self, method: str, params: JsonDict, message: RelayedMessage) -> None:
        uri = (as_object(params.get("textDocument")) or {}).get("uri")
        if not isinstance(uri, str):
            return
        if method == "textDocument/didOpen":
            self._documents[uri] = ReplayedDocument(message)
        elif method == "textDocument/didClose":
            self._documents.pop(uri, None)
        elif uri in self._documents and method == "textDocument/didChange":
            self._documents[uri].change(message, encoding=self._counted_in())
        elif uri in self._documents and method == "textDocument/didSave":
            self._documents[uri].save(params.get("text"))

    def _counted_in(self) -> str:
        if self._encoding is None:
            answer = read(self.answer or b"{}")
            self._encoding = str(_capabilities(answer).get("positionEncoding") or "utf-16")
        return self._encoding

    def _fold_folders(self, event: JsonDict) -> None:
        for folder in as_list(event.get("removed")):
            if isinstance(uri := (as_object(folder) or {}).get("uri"), str):
                self._folders[uri] = None
        for folder in as_list(event.get("added")):
            added = as_object(folder) or {}
            if isinstance(uri := added.get("uri"), str):
                self._folders[uri] = added

    def _folders_notification(self) -> bytes:
        added: list[object] = [one for one in self._folders.values() if one is not None]
        removed: list[object] = [
            {"uri": uri, "name": ""} for uri, one in self._folders.items() if one is None
        ]
        return notification(_FOLDERS, {"event": {"added": added, "removed": removed}})

    def _keep_trust(self, item: JsonDict) -> None:
        if isinstance(folder := item.get("folder"), str):
            self._trust[folder] = item


def _continued(params: JsonDict) -> JsonDict:
    options = as_object(params.get("initializationOptions")) or {}
    agent = as_object(options.get("agent")) or {}
    chosen = as_object(agent.get("session")) or {}
    if chosen.get("open") != "new":
        return params
    agent = {**agent, "session": {**chosen, "open": "latest"}}
    return {**params, "initializationOptions": {**options, "agent": agent}}


def _capabilities(answer: RelayedMessage | None) -> JsonDict:
    result = as_object(answer.result) if answer is not None else None
    return as_object((result or {}).get("capabilities")) or {}
