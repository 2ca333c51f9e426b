"""One hardened LSP connection, which the rest of the server uses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import cattrs
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.lifecycle import ConnectionStage
from tiller_server.lsp.jsonrpc.messages import Params, as_object
from tiller_server.lsp.jsonrpc.pygls_adapter import RawHandler, TillerProtocol
from tiller_server.lsp.jsonrpc.typed_params import make_converter
from tiller_server.lsp.jsonrpc.uri_mapping import Translation
from tiller_server.lsp.transport.framing import FrameError, FrameReader
from tiller_server.lsp.transport.outbox import Lane, Outbox, Sink
from tiller_server.lsp.transport.progress import ProgressToken, WorkDone
from tiller_server.lsp.transport.stdio import InputStream
from tiller_server.process.parent_watch import can_watch, wait_until_gone

__all__ = ["ConnectionStage", "LspConnection", "TillerProtocol"]

HANDLER_GRACE_S: Final = 3.0
CLOSER_GRACE_S: Final = 5.0
FLUSH_GRACE_S: Final = 2.0

_READ_BYTES: Final = 64 * 1024

_log = logging.getLogger(__name__)


class LspConnection(LanguageServer):
    """A language server for exactly one client.

    Standard methods are registered as in pygls (`feature`); everything else as raw handlers that
    get the params as they were sent. All methods belong to the loop that runs `serve`.
    """

    protocol: TillerProtocol  # pyright: ignore[reportIncompatibleVariableOverride] - set once, below

    def __init__(
        self, name: str, version: str, *, converter: cattrs.Converter | None = None
    ) -> None:
        """Create a connection that serves no client yet.

        Args:
            name: Name of the server in the answer to `initialize`.
            version: Version of the server in that answer.
            converter: One of `make_converter`, to share between connections: making one and
                warming it up costs some 15 ms.
        """
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - pygls types it in part
            name,
            version,
            protocol_cls=TillerProtocol,
            converter_factory=lambda: converter or make_converter(),
        )
        self.outbox: Final[Outbox] = self.protocol.outbox
        """The way out, for those who must know how full it is."""
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._uris = Translation()
        self.outbox.turn(self._uris.outward)

    # ------------------------------------------------------------------ what is registered

    def add_agent_method(self, name: str, handler: RawHandler) -> None:
        """Answer requests of this name with what the handler returns or raises.

        The handler gets the params exactly as sent, {} when there were none. Each call is a task
        of its own. `$/cancelRequest` cancels that task: a value that the handler still returns is
        the answer, and without a return the answer is -32800. When `is_closing` is true, the
        client has left and did not cancel. A `Reply` is a result with something to follow.

        Standard methods may be served this way as well; this handler then takes precedence.
        """
        _add(self.protocol.registry.requests, name, handler)

    def add_agent_notification(self, name: str, handler: RawHandler) -> None:
        """Run the handler for notifications of this name; params as for `add_agent_method`.

        Notifications start in the order of their arrival, each before the next message is read.
        """
        _add(self.protocol.registry.notifications, name, handler)

    def add_command(
        self, name: str, handler: Callable[[tuple[object, ...]], Awaitable[object]]
    ) -> None:
        """Run the handler for `workspace/executeCommand` with this name, on the arguments as sent."""

        # Any, not object: pygls hands the server to a first parameter that could hold one.
        async def run(*arguments: Any) -> object:
            return await handler(arguments)

        commands: Any = self.protocol.fm  # which pygls leaves untyped
        commands.command(name)(run)

    def amend_capabilities(self, amend: Callable[[types.InitializeResult], None]) -> None:
        """Register a function that changes the answer to `initialize` before it is sent."""
        self.protocol.registry.amendments.append(amend)

    def on_close(self, closer: Callable[[], Awaitable[object]]) -> None:
        """Run the callback when the connection has ended, last added first, each 5 s at most."""
        self._closers.append(closer)

    # ------------------------------------------------------------------ what is sent

    def notify(self, method: str, params: object = None, *, lane: Lane = Lane.CONTROL) -> bool:
        """Send a notification; say whether the outbox took it (it always takes CONTROL)."""
        return self.protocol.tell(method, params, lane)

    def send_encoded(self, body: bytes, lane: Lane) -> bool:
        """Send a whole message that is encoded already; say whether the outbox took it."""
        return self.outbox.put(body, lane)

    async def request(
        self, method: str, params: object = None, *, timeout_s: float | None
    ) -> object:
        """Ask the client and give its answer as plain JSON.

        Raises:
            RpcError: The client answered with an error.
            TimeoutError: It did not answer in time; the question has been withdrawn.
            ConnectionError: The connection is closed, or was while waiting.
        """
        return await self.protocol.requests.ask(method, params, timeout_s=timeout_s)

    async def create_progress(
        self, token: ProgressToken, *, on_cancel: Callable[[], None], timeout_s: float = 10.0
    ) -> WorkDone | None:
        """Open work-done progress under a token of ours; None when the client shows none.

        Raises:
            ConnectionError: The connection is closed, or was while waiting.
        """
        capabilities = as_object(self.client_params.get("capabilities")) or {}
        window = as_object(capabilities.get("window")) or {}
        if window.get("workDoneProgress") is not True:
            return None
        try:
            await self.request(
                types.WINDOW_WORK_DONE_PROGRESS_CREATE, {"token": token}, timeout_s=timeout_s
            )
        except (RpcError, TimeoutError) as error:
            _log.info("The client shows no progress for %r: %s", token, error)
            return None
        return self.protocol.work_done.open(token, on_cancel=on_cancel)

    # ------------------------------------------------------------------ its life

    @property
    def is_closing(self) -> bool:
        """Whether the client is leaving; a handler that is cancelled can tell why by it."""
        return self.protocol.lifecycle.stage in {ConnectionStage.SHUT_DOWN, ConnectionStage.CLOSED}

    @property
    def client_params(self) -> Params:
        """The params of `initialize` as they were sent; empty before."""
        return self.protocol.initialize_params

    def close(self, exit_code: int = 0) -> None:
        """End `serve`; the first reason counts."""
        self.protocol.lifecycle.end(exit_code)

    async def serve(
        self, reader: InputStream, sink: Sink, *, parent: Literal["watch", "ignore"] = "ignore"
    ) -> int:
        """Serve the client until it leaves; give the exit code that a process of its own would have.

        The code is 0 after `shutdown` and `exit`, and at the end of the input; 1 after `exit`
        alone, and when the stream cannot be read or the client does not read. On every way out
        handlers are cancelled, the callbacks of `on_close` run, and what is queued is written if
        the client takes it, all within bounded time. The sink is closed then.

        Args:
            reader: Where messages come from. The caller closes it.
            sink: Where messages go.
            parent: "watch" also ends the connection when the process that `initialize` names does.
        """
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(self._write(sink))
            others = [tasks.create_task(self._read(reader))]
            if parent == "watch":
                self.amend_capabilities(
                    lambda _: others.append(tasks.create_task(self._watch_parent()))
                )
            try:
                await self.protocol.lifecycle.ended.wait()
            finally:
                for task in others:
                    task.cancel()
                is_closed = False
                try:
                    await self._settle()
                    self.outbox.finish()
                    is_closed = await _close_when_written(sink, writing)
                finally:
                    writing.cancel()
                    if not is_closed:
                        _cut_off(sink)
        return self.protocol.lifecycle.exit_code

    async def _read(self, reader: InputStream) -> None:
        frames = FrameReader()
        try:
            while data := await reader.read(_READ_BYTES):
                frames.feed(data)
                await self._receive_all(frames)
        except FrameError as error:
            _log.error("Closing the connection, its input cannot be read: %s.", error)
            self.close(1)
        except OSError as error:
            _log.info("The client's input broke off: %s.", error)
        else:
            if not frames.is_between_frames:
                _log.warning("The client's input ended in the middle of a message.")
        self.close()

    async def _receive_all(self, frames: FrameReader) -> None:
        while not self.protocol.lifecycle.ended.is_set() and (body := frames.take()) is not None:
            self.protocol.receive(self._uris.inward(body))
            # One turn of the loop takes the handler up to its first wait: messages take effect
            # in the order in which they came, and a flood of them starves nobody.
            await asyncio.sleep(0)

    async def _write(self, sink: Sink) -> None:
        try:
            await self.outbox.drain_to(sink)
        except OSError as error:
            _log.info("The client is gone: %s.", error)
            self.close()

    async def _watch_parent(self) -> None:
        pid = self.process_id
        if pid is None or not can_watch(pid):
            return
        await wait_until_gone(pid)
        _log.info("The process %d that started this connection is gone.", pid)
        self.close()

    async def _settle(self) -> None:
        self.protocol.lifecycle.stage = ConnectionStage.CLOSED
        self.protocol.requests.close()
        await self.protocol.calls.close(grace_s=HANDLER_GRACE_S)
        if self._thread_pool is not None:
            self._thread_pool.shutdown(wait=False, cancel_futures=True)
        for closer in reversed(self._closers):
            try:
                async with asyncio.timeout(CLOSER_GRACE_S):
                    await closer()
            except TimeoutError:
                _log.error("A clean-up took longer than %s s and was given up.", CLOSER_GRACE_S)
            except Exception:  # noqa: BLE001 - the next clean-up must run whatever this one did
                _log.exception("A clean-up failed.")


def _add(handlers: dict[str, RawHandler], name: str, handler: RawHandler) -> None:
    if name in handlers:
        why = f"{name!r} has a handler already; give each method one"
        raise ValueError(why)
    handlers[name] = handler


async def _close_when_written(sink: Sink, writing: asyncio.Task[None]) -> bool:
    """Close the sink when the last of what is queued has gone out; say whether it has."""
    try:
        async with asyncio.timeout(FLUSH_GRACE_S):
            await asyncio.wait({writing})
            sink.close()
            await sink.wait_closed()
    except TimeoutError:
        _log.info("The client did not take the last of what was sent.")
        return False
    except OSError as error:
        _log.debug("The client was gone before the last of what was sent: %s.", error)
    return True


def _cut_off(sink: Sink) -> None:
    transport = getattr(sink, "transport", None)
    if isinstance(transport, asyncio.WriteTransport):
        # For a client that takes nothing a closed transport would stay open for ever.
        transport.abort()
    else:
        sink.close()
