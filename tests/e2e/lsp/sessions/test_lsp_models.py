"""What the user writes into models.json, and the model servers of this machine, count without a restart."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import anyio
import pytest
from typing_extensions import override

from tests.support.clients.server import Ground, prompt, says
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


async def write(ground: Ground, models: dict[str, Any] | None, **settings: Any) -> None:
    """Write the user's two files as an editor would; None leaves models.json as it is."""
    if models is not None:
        path = anyio.Path(ground.dirs.config / "models.json")
        await path.write_text(json.dumps({"providers": models}), encoding="utf-8")
    if settings:
        path = anyio.Path(ground.dirs.config / "settings.json")
        chosen = {"defaultProjectTrust": "always", "titles": "off", **settings}
        await path.write_text(json.dumps(chosen), "utf-8")


def lab(url: str) -> dict[str, Any]:
    return {
        "lab": {
            "baseUrl": url,
            "api": "openai-completions",
            "apiKey": "k",
            "models": [{"id": "big", "contextWindow": 32000, "maxTokens": 4096}],
        }
    }


async def test_a_model_that_is_written_down_while_the_server_runs_can_be_asked(
    ground: Ground,
) -> None:
    ground.provider.script([says("hello")])
    address = ground.provider.base_url
    await write(ground, {}, permission={"mode": "ask"})
    async with ground.client(PANEL) as client:
        snapshot = await client.request("agent/session/open", {})
        assert snapshot["config"]["model"] is None
        await write(ground, lab(address), defaultProvider="lab", defaultModel="big")
        listed = await client.request("agent/model/list", {"scope": "usable"})
        assert "lab/big" in [one["model"] for one in listed["models"]]
        result = await client.request("agent/prompt", prompt("go", wait=True))
        assert result["status"] == "completed"


async def test_a_corrected_address_counts_when_the_run_is_tried_again(ground: Ground) -> None:
    ground.provider.script([says("hello")])
    await write(
        ground,
        lab("http://127.0.0.1:9/v1"),
        defaultProvider="lab",
        defaultModel="big",
        retry={"enabled": False},
    )
    async with ground.client(PANEL) as client:
        failed = await client.request("agent/prompt", prompt("go", wait=True))
        assert failed["status"] == "failed"
        await write(ground, lab(ground.provider.base_url))
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/run/retry", {"run": failed["run"]})
        ended = await stream.wait(type="run.ended")
        assert ended["status"] == "completed"


async def test_a_server_of_this_machine_is_found_and_leaves_with_its_models(
    ground: Ground,
) -> None:
    with model_server() as (url, stop):
        await write(ground, {"ollama": {"baseUrl": url}}, permission={"mode": "ask"})
        async with ground.client(PANEL) as client:
            listed = await client.request("agent/model/list", {"scope": "usable"})
            found = [one for one in listed["models"] if one["provider"] == "ollama"]
            shown = [(one["model"], one["auth"], one["contextWindow"]) for one in found]
            assert shown == [("ollama/qwen3:8b", "ok", 32_768)]
            chosen = {"set": {"model": "ollama/qwen3:8b"}}
            config = (await client.request("agent/session/configure", chosen))["config"]
            assert config["model"] == "ollama/qwen3:8b"
            await anyio.to_thread.run_sync(stop)
            listed = await client.request("agent/model/list", {"scope": "usable"})
            assert [one for one in listed["models"] if one["provider"] == "ollama"] == []


async def test_the_first_model_that_is_chosen_is_that_of_new_sessions(ground: Ground) -> None:
    with model_server() as (url, _):
        await write(ground, {"ollama": {"baseUrl": url}}, permission={"mode": "ask"})
        async with ground.client(PANEL) as client:
            chosen = {"set": {"model": "ollama/qwen3:8b"}}
            await client.request("agent/session/configure", chosen)
            for other in ("qwen3:4b", "qwen3:1b"):
                # Another choice is one of this session alone.
                chosen = {"set": {"model": f"ollama/{other}"}}
                await client.request("agent/session/configure", chosen)
            fresh = await client.request("agent/session/open", {"session": "new"})
            assert fresh["config"]["model"] == "ollama/qwen3:8b"
    settings = json.loads((ground.dirs.config / "settings.json").read_text("utf-8"))
    assert settings == {
        "defaultProjectTrust": "always",
        "titles": "off",
        "permission": {"mode": "ask"},
        "defaultProvider": "ollama",
        "defaultModel": "qwen3:8b",
    }


async def test_a_default_that_cannot_be_used_now_is_not_replaced(ground: Ground) -> None:
    with model_server() as (url, _):
        await write(ground, {"ollama": {"baseUrl": url}}, defaultProvider="gone", defaultModel="x")
        before = (ground.dirs.config / "settings.json").read_bytes()
        async with ground.client(PANEL) as client:
            chosen = {"set": {"model": "ollama/qwen3:8b"}}
            await client.request("agent/session/configure", chosen)
        assert (ground.dirs.config / "settings.json").read_bytes() == before


@contextmanager
def model_server() -> Generator[Any]:
    """Run a server that lists a model that embeds and one that chats, as Ollama, LM Studio, llama.cpp and vLLM do."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            models = [{"id": "text-embedding-nomic-v1.5"}, {"id": "qwen3:8b"}]
            body = json.dumps({"data": models}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            _ = self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()

    def stop() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    try:
        yield f"http://127.0.0.1:{server.server_port}", stop
    finally:
        stop()
