"""What a served workspace writes about things that go wrong holds no secret: neither its standard error nor its log file."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import SERVER, Ground, prompt, says
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

HELD = "held-Value-" + "8c1e5d3f9b"
"""Of the environment."""
KEY = "lab-Key-" + "77aa01c9e4"
"""Of the user's own models.json."""
SINKS = ("stderr", "file")
REFUSED = {
    "status": 401,
    "body": {"error": {"message": f"Incorrect API key provided: {KEY}, also {HELD}"}},
}


def _broken_frame(client: RawClient) -> None:
    body = b'{"jsonrpc": "2.0", "method": "agent/prompt", "params": {"text": "%s",}}'
    body %= HELD.encode()
    client.send_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


HOSTILE: dict[str, Callable[[RawClient], object]] = {
    "an unknown notification": lambda one: one.notify(f"agent/{HELD}", {"key": HELD}),
    "params of another kind": lambda one: one.notify("textDocument/didOpen", {"textDocument": HELD}),
    "a path of a document": lambda one: one.notify(
        "textDocument/didChange", {"textDocument": {"uri": f"file:///{HELD}", "version": 1}, "contentChanges": [{"text": HELD}]}
    ),
    "no JSON": _broken_frame,
    "an answer to nothing": lambda one: one.send_raw(_frame({"jsonrpc": "2.0", "id": HELD, "result": HELD})),
    "an error to nothing": lambda one: one.send_raw(_frame({"jsonrpc": "2.0", "id": 99_999, "error": {"code": 1, "message": HELD}})),
}  # fmt: skip


def _frame(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


async def _refused(client: RawClient, method: str, params: Any) -> str:
    """Send what cannot be done, and give the words of the refusal."""
    with pytest.raises(ClientError) as why:
        await client.request(method, params)
    return str(why.value)


def _configured(ground: Ground) -> None:
    ground.configure(retry={"maxRetries": 0}, permission={"mode": HELD}, oddWord=f"say {HELD}")
    models = ground.dirs.config / "models.json"
    models.write_text(models.read_text("utf-8").replace('"x"', f'"{KEY}"'), encoding="utf-8")
    ground.file(".tiller/settings.json", f'{{"steer": "{HELD}", "{HELD}": 1}}')
    ground.provider.script([REFUSED, says(f"never {HELD}")])


@pytest.mark.parametrize("sink", SINKS)
async def test_nothing_that_went_wrong_is_told_with_its_secrets(
    ground: Ground, sink: str, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    _configured(ground)
    words = ("--log-level", "debug", *(("--log-file", str(log)) if sink == "file" else ()))
    env = {**ground.env, "LAB_TOKEN": HELD}
    client = await RawClient.spawn((*SERVER, *words), env=env, cwd=ground.root)
    async with client:
        await client.initialize(PANEL, root=ground.root, options={"apiKey": HELD})
        stream = client.subscribe()
        await stream.ready()
        for send in HOSTILE.values():
            send(client)
        said = [
            await _refused(client, "agent/prompt", {"content": {"words": HELD}}),
            await _refused(client, "agent/prompt", {"content": [], "session": HELD}),
            await _refused(client, f"agent/{HELD}", {}),
            await _refused(client, "agent/subscribe", {"session": HELD}),
        ]
        accepted = await client.request("agent/prompt", prompt(f"my key is {HELD}"))
        ended = await stream.wait(type="run.ended", run=accepted["run"], timeout_s=30)
        assert ended["status"] == "failed"
        await client.shutdown()
        await client.exit()
        written = client.stderr + (log.read_text("utf-8") if sink == "file" else "")
    told = "\n".join((*said, *map(repr, stream.events)))
    assert written.strip()
    for secret in (HELD, KEY):
        assert secret not in written
        assert secret not in told
    if sink == "file":
        assert os.stat(log).st_mode & 0o777 == 0o600  # noqa: PTH116 - the mode alone
