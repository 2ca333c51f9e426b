"""The answer to a request depends on who cancelled it: the client, or the end of the connection."""

import asyncio

from tiller_server.lsp.jsonrpc.errors import REQUEST_CANCELLED, SERVER_CANCELLED, RpcError
from tiller_server.lsp.jsonrpc.messages import RequestId
from tiller_server.lsp.jsonrpc.request_queue import RequestQueue


async def test_a_request_that_the_client_did_not_cancel_is_to_be_sent_again() -> None:
    answers: dict[RequestId, object] = {}
    queue = RequestQueue(answers.__setitem__)
    for request_id in (1, 2):
        queue.start_request(request_id, method="agent/subscribe", work=asyncio.Event().wait())
    await asyncio.sleep(0)
    assert queue.cancel(1)
    await asyncio.sleep(0)
    await queue.close(grace_s=1)
    cancelled, ended = answers[1], answers[2]
    assert isinstance(cancelled, RpcError)
    assert cancelled.code == REQUEST_CANCELLED
    assert isinstance(ended, RpcError)
    assert ended.code == SERVER_CANCELLED
    assert ended.data == {"kind": "Internal", "retryable": True, "retriggerRequest": True}
