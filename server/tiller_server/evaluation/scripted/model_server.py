"""The scripted model: a server on this machine that plays a script over the wire of OpenAI's chat completions.

It shows that an agent with the right answers passes. It has no state: the next call follows from the conversation, so
that a run which was killed goes on where it was.
"""

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final

from typing_extensions import override

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, decode
from agent_core.session.runs.recovery import INTERRUPTED
from tiller_server.evaluation.scripted.script import CLOSING, ModelScript

PROVIDER: Final = "scripted"
MODEL: Final = "reference"
CONTEXT_WINDOW: Final = 200_000
CHARS_PER_TOKEN: Final = 4


class ScriptedModel:
    """The server with the scripts that it plays, by model."""

    def __init__(self, port: int, scripts: dict[str, ModelScript]) -> None:
        self._port = port
        self._scripts = scripts

    def play(self, model: str, script: ModelScript) -> JsonObject:
        """Play a script under a name; return the providers of a models.json that has it."""
        self._scripts[model] = script
        return {
            PROVIDER: {
                "baseUrl": f"http://127.0.0.1:{self._port}/v1",
                "api": "openai-completions",
                "apiKey": "none",
                "models": [
                    {
                        "id": model,
                        "contextWindow": CONTEXT_WINDOW,
                        "cost": {"input": 0, "output": 0},
                    }
                ],
            }
        }


@contextmanager
def serve_scripts() -> Generator[ScriptedModel]:
    """Serve scripts on a port of this machine until the context ends."""
    scripts: dict[str, ModelScript] = {}

    class Handler(_ScriptHandler):
        played = scripts

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield ScriptedModel(int(server.server_port), scripts)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _ScriptHandler(BaseHTTPRequestHandler):
    played: ClassVar[Mapping[str, ModelScript]] = {}

    def do_POST(self) -> None:
        """Answer a request for a completion."""
        length = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            return  # its agent was killed
        request = as_object(decode(body))
        script = self.played.get(as_text(request.get("model")), ModelScript(calls=()))
        answer = "".join(
            f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(request, script, size=length)
        )
        content = f"{answer}data: [DONE]\n\n".encode()
        with suppress(ConnectionError):  # as above
            self.send_response(HTTPStatus.OK)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            _ = self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: standard error belongs to the report."""


def _chunks(request: JsonObject, script: ModelScript, *, size: int) -> list[JsonObject]:
    model = request.get("model")
    step = steps_done(request.get("messages"))
    delta: dict[str, JsonValue] = {"role": "assistant"}
    reason = "stop"
    if request.get("tools") and step < len(script.calls):
        call = script.calls[step]
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        function: JsonObject = {"name": call.tool, "arguments": arguments}
        delta["content"] = call.text
        delta["tool_calls"] = [
            {"index": 0, "id": f"call_{step}", "type": "function", "function": function}
        ]
        reason = "tool_calls"
    else:
        delta["content"] = script.closing or CLOSING
    common: Mapping[str, JsonValue] = {
        "id": f"scripted-{step}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
    }
    tokens: JsonObject = {
        "prompt_tokens": size // CHARS_PER_TOKEN,
        "completion_tokens": len(json.dumps(delta)) // CHARS_PER_TOKEN,
    }
    return [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**common, "choices": [], "usage": tokens},
    ]


def steps_done(messages: JsonValue) -> int:
    """Return how many calls of the script a conversation holds; one that a kill interrupted is made again. Pure."""
    done = 0
    for message in messages if isinstance(messages, list) else ():
        fields = as_object(message)
        calls = fields.get("tool_calls")
        if fields.get("role") == "assistant" and isinstance(calls, list):
            done += len(calls)
        if fields.get("role") == "tool" and INTERRUPTED[:20] in json.dumps(fields.get("content")):
            done -= 1
    return done
