"""The relay of `tiller acp` between daemons: each request has one answer, and a new daemon is introduced to the client."""

import json
from typing import Any

from tiller_server.daemon.shim.acp_proxy import AcpProxy
from tiller_server.daemon.shim.send_queue import Outgoing

Json = dict[str, Any]
HELLO = b'{"v":1}\n'
NEW = {"cwd": "/x", "mcpServers": []}


def written(outgoing: Outgoing) -> list[Json]:
    """Return what was written since; the first line of a connection is left out."""
    out = bytearray()

    def write(piece: memoryview) -> int:
        out.extend(piece)
        return len(piece)

    outgoing.send(write)
    lines = [json.loads(line) for line in bytes(out).splitlines()]
    return [one for one in lines if "jsonrpc" in one]


def call(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def answer(number: int | str, result: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def tell(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def opened() -> AcpProxy:
    """Make a proxy whose client has a session `s` and a prompt, number 2, without an answer."""
    proxy = AcpProxy(note=print)
    proxy.daemon_came(HELLO)
    proxy.on_client(call(0, "initialize", protocolVersion=1))
    written(proxy.to_daemon)
    proxy.on_server(answer(0, {"protocolVersion": 1}))
    proxy.on_client(call(1, "session/new", **NEW))
    proxy.inspect_forwarded()
    proxy.on_server(answer(1, {"sessionId": "s"}))
    proxy.on_client(call(2, "session/prompt", sessionId="s", prompt=[]))
    update = {"sessionUpdate": "agent_message_chunk"}
    meta = {"tiller.dev/seq": 7, "tiller.dev/epoch": "e", "tiller.dev/shown": {"i": 3}}
    proxy.on_server(tell("session/update", sessionId="s", update=update, _meta=meta))
    written(proxy.to_daemon)
    written(proxy.to_editor)
    proxy.inspect_forwarded()
    return proxy


def test_a_new_daemon_is_introduced_and_gets_the_prompt_again() -> None:
    proxy = opened()
    proxy.daemon_gone()
    proxy.daemon_came(HELLO)
    introduction, resume = written(proxy.to_daemon)
    assert introduction["method"] == "initialize"
    assert resume["method"] == "session/resume"
    assert resume["params"] == {
        **NEW,
        "sessionId": "s",
        "_meta": {
            "tiller.dev/seq": 7,
            "tiller.dev/epoch": "e",
            "tiller.dev/shown": {"i": 3},
            "tiller.dev/recreate": True,
            "tiller.dev/prompted": True,
        },
    }
    proxy.on_server(answer(introduction["id"], {"protocolVersion": 1}))
    assert written(proxy.to_daemon) == []
    proxy.on_server(answer(resume["id"], {}))
    (again,) = written(proxy.to_daemon)
    assert (again["id"], again["method"]) == (2, "session/prompt")
    assert written(proxy.to_editor) == []
    proxy.on_server(answer(2, {"stopReason": "end_turn"}))
    assert [one["id"] for one in written(proxy.to_editor)] == [2]


def test_a_session_with_an_answered_prompt_is_never_made_anew() -> None:
    proxy = opened()
    proxy.on_server(answer(2, {"stopReason": "end_turn"}))
    proxy.inspect_forwarded()
    proxy.daemon_gone()
    proxy.daemon_came(HELLO)
    _, resume = written(proxy.to_daemon)
    assert resume["params"]["_meta"]["tiller.dev/recreate"] is False
    assert "tiller.dev/prompted" not in resume["params"]["_meta"]


def test_a_prompt_on_which_two_daemons_die_is_answered_with_an_error() -> None:
    proxy = opened()
    proxy.daemon_gone()
    proxy.daemon_came(HELLO)
    introduction, resume = written(proxy.to_daemon)
    proxy.on_server(answer(introduction["id"], {}))
    proxy.on_server(answer(resume["id"], {}))
    written(proxy.to_daemon)
    proxy.daemon_gone()
    (failed,) = written(proxy.to_editor)
    assert (failed["id"], failed["error"]["code"]) == (2, -32603)


def test_a_cancel_without_a_daemon_answers_the_prompt() -> None:
    proxy = opened()
    proxy.daemon_gone()
    proxy.on_client(tell("session/cancel", sessionId="s"))
    assert written(proxy.to_editor) == [
        {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "cancelled"}}
    ]


def test_a_withdrawn_request_without_a_daemon_is_answered() -> None:
    proxy = opened()
    proxy.daemon_gone()
    proxy.on_client(call(3, "session/list"))
    proxy.on_client(tell("$/cancel_request", requestId=3))
    proxy.on_client(tell("$/cancel_request", requestId=2))
    first, second = written(proxy.to_editor)
    assert (first["id"], first["error"]["code"]) == (3, -32800)
    assert second["result"] == {"stopReason": "cancelled"}


def test_a_dialog_of_a_dead_daemon_is_withdrawn() -> None:
    proxy = opened()
    proxy.on_server(call(70, "session/request_permission", sessionId="s"))
    written(proxy.to_editor)
    proxy.inspect_forwarded()
    proxy.daemon_gone()
    assert written(proxy.to_editor) == [
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 70}}
    ]


def test_all_is_answered_when_there_will_be_no_daemon() -> None:
    proxy = opened()
    proxy.daemon_gone()
    proxy.on_client(call(3, "session/list"))
    proxy.give_up("it cannot be started")
    assert [one["id"] for one in written(proxy.to_editor)] == [2, 3]
