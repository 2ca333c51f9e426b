"""The values of a subscription's token, put together from events that are bytes already."""

import asyncio
from collections.abc import Sequence
from typing import Final

from agent_core.kernel import JsonValue
from agent_core.kernel.json import encode as to_json
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.outbox import Lane
from tiller_server.lsp.transport.progress import ProgressToken

FRAME_EVENTS: Final = 256
"""A frame with more events is split, so that a client can work in between."""
FRAME_BYTES: Final = 128 * 1024
"""And one that is larger, so that little more than the high-water mark is ever held for a client that does not read."""


class FrameWriter:
    """Sends values on one token of one client."""

    def __init__(self, connection: LspConnection, *, token: ProgressToken, session: str) -> None:
        self._connection = connection
        self._token = to_json(token)
        self._session = to_json(session)
        self.sent_at_s = asyncio.get_running_loop().time()
        """When the last value went out, on the loop's clock."""

    def events(
        self, epoch: str, first: int, to: int, bodies: Sequence[bytes], *, lane: Lane
    ) -> bool:
        """Send events that stand for `first..to`; False when the connection refused them."""
        rest = b',"from":%d,"to":%d,"events":[%b]' % (first, to, b",".join(bodies))
        return self._send(b"agent/events", epoch, rest, lane)

    def snapshot(self, epoch: str, seq: int, snapshot: JsonValue) -> bool:
        """Send the picture that the events after `seq` continue."""
        rest = b',"seq":%d,"snapshot":%b' % (seq, to_json(snapshot))
        return self._send(b"agent/snapshot", epoch, rest, Lane.CONTROL)

    def gap(self, epoch: str, first: int, to: int, *, lane: Lane) -> bool:
        """Return which deltas were dropped; the ended events still have the whole."""
        return self._send(b"agent/gap", epoch, b',"from":%d,"to":%d' % (first, to), lane)

    def heartbeat(self, epoch: str, seq: int) -> None:
        """Send a heartbeat on the delta lane; a client that reads too slowly to need one gets none."""
        _ = self._send(b"agent/heartbeat", epoch, b',"seq":%d' % seq, Lane.DELTA)

    def _send(self, kind: bytes, epoch: str, rest: bytes, lane: Lane) -> bool:
        body = (
            b'{"jsonrpc":"2.0","method":"$/progress","params":{"token":%b,"value":'
            b'{"kind":"%b","session":%b,"epoch":%b%b}}}'
        ) % (self._token, kind, self._session, to_json(epoch), rest)
        self.sent_at_s = asyncio.get_running_loop().time()
        return self._connection.send_encoded(body, lane)
