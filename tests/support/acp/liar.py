"""An agent that keeps to nothing: plain lines, one bad habit for each word on its command line."""

import json
import os
import signal
import sys
from typing import Any

HABIT = sys.argv[1]


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(**fields: Any) -> None:
    say(method="session/update", params={"sessionId": "s", "update": fields})


def prompt(id_: int) -> None:
    """Answer a prompt in the way of the habit."""
    match HABIT:
        case "dies":
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(3)
        case "huge line":
            sys.stdout.write('{"a": "' + "x" * (9 << 20))
            sys.stdout.flush()
        case "no json":
            print('{"jsonrpc": "2.0", "method": ', flush=True)
        case "noise":
            print("\n".join(["hello"] * 200), flush=True)
        case "endless text":
            while True:
                update(
                    sessionUpdate="agent_message_chunk",
                    content={"type": "text", "text": "x" * 9999},
                )
        case "unknown end":
            say(id=id_, result={"stopReason": "tired"})
        case "refuses":
            say(id=id_, result={"stopReason": "refusal"})
        case "wrong types":
            update(sessionUpdate=7)
            update(
                sessionUpdate="tool_call", toolCallId=[], title={}, content=3, status="completed"
            )
            update(sessionUpdate="agent_message_chunk", content={"type": "hologram"})
            update(sessionUpdate="plan", entries={"a": 1})
            update(sessionUpdate="usage_update", cost={"amount": "much", "currency": "USD"})
            say(method="session/update", params=[])
            say(method="_own/thing", params={})
            say(id="odd", method="_own/request", params={})
            say(
                id="two",
                method="fs/write_text_file",
                params={"sessionId": "other", "path": "/x", "content": ""},
            )
            say(id="three", method="fs/read_text_file", params={"sessionId": "s", "path": "a.txt"})
            say(id=99, result={})
            answered = [json.loads(sys.stdin.readline()) for _ in range(3)]
            codes = [one["error"]["code"] for one in answered]
            update(
                sessionUpdate="agent_message_chunk",
                content={"type": "text", "text": f"answered {codes}"},
            )
            say(id=id_, result={"stopReason": "end_turn"})
        case _:
            pass


def opened(id_: int, method: str) -> None:
    """Answer what comes before the prompts."""
    match HABIT, method:
        case "silent", "initialize":
            pass
        case "error", "initialize":
            say(id=id_, error={"code": -32603, "message": "no disk"})
        case "version", "initialize":
            say(id=id_, result={"protocolVersion": 7})
        case "login", "session/new":
            say(id=id_, error={"code": -32000, "message": "Authentication required"})
        case "no session", "session/new":
            say(id=id_, result={"sessionId": None})
        case _:
            say(id=id_, result={"protocolVersion": 1, "sessionId": "s"})


def main() -> None:
    if HABIT == "never ends":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        method, id_ = message.get("method"), message.get("id")
        if method == "session/prompt":
            prompt(id_)
        elif method is not None and id_ is not None:
            opened(id_, method)
    while HABIT == "never ends":
        signal.pause()


main()
