"""The loaded half of a connection: which session it has, and what it gets to see of it."""

import importlib
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio

from agent_core.assembly.library import SessionLibrary
from agent_core.events import Reader, RunStarted
from agent_core.kernel import JsonValue, RunId, SessionId
from agent_core.kernel.errors import TillerError
from agent_core.providers import ModelFacts
from agent_core.session import AgentSession
from agent_core.session.changes import FileChange
from server.lsp import pictures
from server.lsp.asking import Dialogs
from server.lsp.codec import as_array, as_object
from server.lsp.documents import Mirror
from server.lsp.editor import Editor
from server.lsp.failures import rpc_error
from server.lsp.progress import Subscription
from server.lsp.protocol import Connection
from server.lsp.rpc import INVALID_PARAMS, REQUEST_FAILED, RpcError
from server.lsp.uris import path_of
from server.lsp.wire import AgentOptions, SessionById
from server.lsp.work_line import show_run

_log = logging.getLogger(__name__)


class Hosted(Protocol):
    """A session that is loaded."""

    session: AgentSession
    root: Path
    epoch: str


class Sessions(Protocol):
    """Where a connection gets its sessions."""

    started_ms: int

    async def accounts(self) -> tuple[tuple[str, str], ...]:
        """Give the providers there are, and whether each can be asked."""
        ...

    async def models(self) -> tuple[ModelFacts, ...]:
        """Give every model there is."""
        ...

    async def open(
        self, root: Path, *, which: str, settings: Mapping[str, JsonValue], front: "Front"
    ) -> Any:
        """Give a session of a folder, attached to the connection."""
        ...

    async def library(self) -> SessionLibrary:
        """Give the stored sessions."""
        ...

    async def release(self, session: SessionId) -> None:
        """Settle one session and let it go, when it is loaded."""
        ...

    def now_ms(self) -> int:
        """Give the time, in Unix milliseconds."""
        ...

    def sessions(self) -> tuple[Any, ...]:
        """Give what is loaded."""
        ...

    def detach(self, front: "Front") -> None:
        """Forget a connection."""
        ...


class Front:
    """What the features of one connection share."""

    def __init__(self, connection: Connection, mirror: Mirror, *, host: Sessions) -> None:
        self.connection = connection
        self.host = host
        self.options = _read_options(connection)
        self.editor = Editor.of(connection, mirror)
        self.subscriptions: dict[int | str, Subscription] = {}
        self.dialogs = Dialogs(
            connection,
            mirror,
            name=self.editor.name,
            role=self.options.client.role if self.options.client else None,
            shows=self.editor.abilities.shows_permissions,
            blocking=self.editor.blocking_dialogs,
        )
        self._hosted: Hosted | None = None
        self._binding = anyio.Lock()
        self._watching: list[Reader] = []
        self._waited: set[RunId] = set()

    async def hosted(self, session: str | None = None) -> Any:
        """Give the session that a request means: by id, else the one of this connection, opened on demand.

        Raises:
            RpcError: There is none of that id, or no folder to open one in.
        """
        bound = self._hosted
        if bound is not None and session in {None, bound.session.id}:
            return bound
        async with self._binding:
            if self._hosted is not None and session in {None, self._hosted.session.id}:
                return self._hosted
            return await self.bind(session or self._default(), root=None)

    async def bind(self, which: str, *, root: Path | None) -> Any:
        """Open a session and make it the one of this connection.

        Raises:
            RpcError: It cannot be opened.
        """
        try:
            hosted = await self.host.open(
                root or self.root(), which=which, settings=self._settings(), front=self
            )
        except TillerError as error:
            raise rpc_error(error) from error
        self._hosted = hosted
        return hosted

    async def open_beside(self, root: Path) -> Any:
        """Open a new session of a folder; the one of this connection stays what it is."""
        return await self.host.open(root, which="new", settings=self._settings(), front=self)

    async def release(self, session: str | None) -> None:
        """Close a session, the one of this connection unless it is named."""
        bound = self._hosted
        which = session or (bound.session.id if bound is not None else None)
        if which is not None:
            await self.host.release(SessionId(which))

    def forget(self, hosted: Hosted) -> None:
        """Take note that a session was closed: the next request opens another."""
        if self._hosted is hosted:
            self._hosted = None

    def root(self) -> Path:
        """Give the folder that the client opened first.

        Raises:
            RpcError: It opened none.
        """
        return first_folder(self.connection.client_params)

    def subscribe(
        self, hosted: Hosted, token: int | str, *, detail: str, flush_ms: int | None
    ) -> Subscription:
        """Begin to send a session's events on a token; an older subscription of that token ends."""
        older = self.subscriptions.pop(token, None)
        if older is not None:
            older.close()
        subscription = Subscription(
            self.connection,
            hosted.session,
            token=token,
            epoch=hosted.epoch,
            detail=detail,
            flush_ms=flush_ms,
        )
        self.subscriptions[token] = subscription
        return subscription

    async def show_runs(self, hosted: Hosted) -> None:
        """Show every run as a line of progress, in clients that show such and do not listen themselves."""
        reader = hosted.session.subscribe()
        self._watching.append(reader)
        async for stamped in reader:
            if not isinstance(stamped.event, RunStarted) or self.subscriptions:
                continue
            run = stamped.event.run
            if run not in self._waited:
                await show_run(self.connection, hosted.session, run, reader=reader)

    @contextmanager
    def waits_for(self, run: RunId) -> Generator[None, None, None]:
        """Say that a request of this client waits for a run and shows it in its own way."""
        self._waited.add(run)
        try:
            yield
        finally:
            self._waited.discard(run)

    def flush(self) -> None:
        """Send what was told so far before the answer that comes next."""
        for subscription in self.subscriptions.values():
            subscription.flush_now()

    def snapshot(self, hosted: Hosted) -> dict[str, JsonValue]:
        """Give the picture of a session as this client gets it."""
        return pictures.snapshot(
            hosted.session.info.snapshot(),
            epoch=hosted.epoch,
            roots=(hosted.root,),
            trusts=(hosted.session.permissions.trust,),
            clients=[{"role": "editor", "name": self.editor.name}],
        )

    async def result(self, hosted: Hosted, run: RunId) -> dict[str, JsonValue]:
        """Wait for a run and give what it came to."""
        outcome = await hosted.session.wait(run)
        if outcome is None:
            message = f"run {run!r} is not known any more; read the session instead"
            raise RpcError(REQUEST_FAILED, message, {"kind": "RunNotActive", "retryable": False})
        return pictures.result(outcome, _change_set(run, hosted.session.info.changes))

    async def command(self, name: str, arguments: tuple[Any, ...]) -> object:
        """Run a command of `workspace/executeCommand`."""
        module = importlib.import_module("server.lsp.features.commands")
        return await module.run(self, name, arguments)

    async def detach(self) -> None:
        """The client has left: its subscriptions end, its sessions and their runs go on."""
        for subscription in self.subscriptions.values():
            subscription.close()
        for reader in self._watching:
            reader.close()
        self.dialogs.close()
        self.host.detach(self)

    def _default(self) -> str:
        chosen = self.options.session.open if self.options.session else None
        if isinstance(chosen, SessionById):
            return chosen.id
        return "new" if chosen == "new" else "latest"

    def _settings(self) -> Mapping[str, JsonValue]:
        """Give what the editor's configuration says, as a layer of settings."""
        permission, budgets = self.options.permission, self.options.budgets
        groups: dict[str, dict[str, JsonValue]] = {"permission": {}, "budgets": {}}
        if permission is not None:
            groups["permission"] = {
                "mode": permission.mode,
                "fallback": permission.fallback,
                "timeoutS": permission.timeout_s,
            }
        if budgets is not None:
            groups["budgets"] = {
                "usd": budgets.usd,
                "tokens": budgets.tokens,
                "turns": budgets.turns,
                "minutes": budgets.minutes,
            }
        said: dict[str, JsonValue] = {}
        for name, group in groups.items():
            if given := {key: value for key, value in group.items() if value is not None}:
                said[name] = given
        return said


def first_folder(client_params: object) -> Path:
    """Give the folder that a client names first in `initialize`.

    Raises:
        RpcError: It names none.
    """
    params = as_object(client_params) or {}
    folders = as_array(params.get("workspaceFolders")) or [None]
    first = as_object(folders[0]) or {}
    for uri in (first.get("uri"), params.get("rootUri")):
        path = path_of(uri) if isinstance(uri, str) else None
        if path is not None:
            return path
    legacy = params.get("rootPath")
    if isinstance(legacy, str) and legacy:
        return Path(legacy)
    message = (
        "no folder is open, so there is no workspace to work in; open a folder or give `folders`"
    )
    raise RpcError(REQUEST_FAILED, message, {"kind": "RootNotAllowed", "retryable": False})


def _read_options(connection: Connection) -> AgentOptions:
    """Read what the client said at the start; a client that says it wrong is served all the same."""
    try:
        return AgentOptions.model_validate(_agent_options(connection))
    except ValueError as error:
        _log.warning("initializationOptions.agent cannot be read and is left out: %s", error)
        return AgentOptions()


def _agent_options(connection: Connection) -> Mapping[str, object]:
    params = as_object(connection.client_params) or {}
    given = as_object(params.get("initializationOptions")) or {}
    return as_object(given.get("agent")) or {}


def _change_set(run: RunId, changes: tuple[FileChange, ...]) -> dict[str, JsonValue]:
    files: list[JsonValue] = []
    for change in changes:
        hashes: dict[str, JsonValue] = {"after": change.sha256_after}
        if change.sha256_before is not None:
            hashes["before"] = change.sha256_before
        files.append(
            {
                "uri": change.path.as_uri(),
                "op": change.op,
                "sha256": hashes,
                "state": "onDisk" if change.saved else "unsaved",
                "hunks": [],
            }
        )
    return {"id": run, "base": run, "files": files}


def bad(message: str) -> RpcError:
    """Make the answer for params that cannot be used."""
    return RpcError(INVALID_PARAMS, message)
