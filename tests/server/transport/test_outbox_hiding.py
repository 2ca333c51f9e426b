"""The last net before the wire: no message holds a secret of the program, whoever sends it."""

import json
from typing import Any

import pytest

from agent_core.kernel.redaction.redactor import HeldValues, Redactor
from tiller_server.lsp.transport.outbox import Lane, Outbox

SECRET_SAMPLE = "held-Value-0123456789"


class _Sink:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> None:
        self.data += data

    async def drain(self) -> None:
        return

    def close(self) -> None:
        return

    async def wait_closed(self) -> None:
        return


async def _sent(message: dict[str, Any], redactor: Redactor) -> Any:
    outbox, sink = Outbox(on_overflow=lambda: None), _Sink()
    outbox.hide(redactor)
    assert outbox.put(json.dumps(message).encode(), Lane.CONTROL)
    outbox.finish()
    await outbox.drain_to(sink)
    head, _, body = sink.data.partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(body)
    return json.loads(body)


async def test_no_message_holds_a_held_value() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"text": f"say {SECRET_SAMPLE}\n"}}
    sent = await _sent(message, Redactor([SECRET_SAMPLE]))
    assert sent["result"] == {"text": "say [redacted:secret]\n"}


async def test_an_edit_keeps_the_users_text() -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "workspace/applyEdit",
        "params": {"t": SECRET_SAMPLE},
    }
    assert await _sent(message, Redactor([SECRET_SAMPLE])) == message


async def test_an_answer_that_cannot_be_looked_through_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_self: HeldValues, text: str) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr(HeldValues, "spans", broken)
    redactor = Redactor([SECRET_SAMPLE])
    sent = await _sent({"jsonrpc": "2.0", "id": "a", "result": SECRET_SAMPLE}, redactor)
    assert sent == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32603, "message": "[withheld: the redactor failed]"},
    }
    told = await _sent(
        {"jsonrpc": "2.0", "method": "agent/event", "params": SECRET_SAMPLE}, redactor
    )
    assert told == {"jsonrpc": "2.0", "method": "$/withheld"}
