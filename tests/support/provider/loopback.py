"""The provider process as a test sees it: start it, point the product at it, read its log."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from tests.support.provider.script import Json

REPOSITORY = Path(__file__).resolve().parents[3]
START_S = 15.0
STOP_S = 5.0


class LoopbackProvider:
    """A provider in a process of its own; a context manager that ends it.

    Args:
        turns: The script, as `tests.support.provider.script.Turn` names its fields.
    """

    def __init__(self, turns: Sequence[Json] = ()) -> None:
        self._first = list(turns)
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.provider", "--until-eof"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert self._process.stdout is not None
            self._port = int(json.loads(self._process.stdout.readline())["port"])
            self.script(self._first)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """The base of the OpenAI-shaped API."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        """The base of the Anthropic-shaped API, whose paths begin with `/v1`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The provider's process."""
        assert self._process is not None
        return self._process.pid

    def script(self, turns: Sequence[Json]) -> None:
        """Replace what is left of the script.

        Raises:
            ValueError: A turn cannot be served; the message says which and why.
        """
        status, answer = self._control("POST", "/_ctl/script", list(turns))
        if status != 200:
            raise ValueError(answer["error"])

    def log(self, *, since: int = 0, bodies: Literal["with", "without"] = "with") -> list[Json]:
        """Return every request so far, as `Entry.as_json` shows it."""
        wanted = 1 if bodies == "with" else 0
        return self._control("GET", f"/_ctl/log?since={since}&bodies={wanted}")[1]

    @property
    def requests(self) -> list[Json]:
        """The log entries of all model requests so far; `["body"]` is what the model was sent."""
        return [entry for entry in self.log() if entry["method"] == "POST"]

    def wait_requests(self, count: int, *, timeout_s: float = 10.0) -> list[Json]:
        """Wait until `count` requests have come and give the log. Blocks: see `requests_arrived`.

        Raises:
            TimeoutError: They have not come in time.
        """
        return self._wait("requests", count, timeout_s)

    def wait_gone(self, count: int, *, timeout_s: float = 10.0) -> list[Json]:
        """Wait until `count` clients have left before their answer was whole, and give the log. Blocks."""
        return self._wait("gone", count, timeout_s)

    async def requests_arrived(self, count: int, *, timeout_s: float = 10.0) -> list[Json]:
        """Do as `wait_requests` without blocking the event loop."""
        return await asyncio.to_thread(self.wait_requests, count, timeout_s=timeout_s)

    async def clients_gone(self, count: int, *, timeout_s: float = 10.0) -> list[Json]:
        """Do as `wait_gone` without blocking the event loop."""
        return await asyncio.to_thread(self.wait_gone, count, timeout_s=timeout_s)

    def stop(self) -> None:
        """End the process now; its clients see their connections drop."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.communicate(timeout=STOP_S)

    def _wait(self, what: str, count: int, timeout_s: float) -> list[Json]:
        path = f"/_ctl/wait?{what}={count}&timeout={timeout_s}"
        answer = self._control("GET", path, timeout_s=timeout_s + START_S)[1]
        if not answer["reached"]:
            message = f"wanted {count} {what} within {timeout_s} s, got {answer}"
            raise TimeoutError(message)
        return self.log()

    def _control(
        self, method: str, path: str, body: object = None, *, timeout_s: float = START_S
    ) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=timeout_s)
        try:
            raw = None if body is None else json.dumps(body)
            connection.request(method, path, body=raw, headers={"connection": "close"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


def write_config(
    config_dir: Path,
    provider: LoopbackProvider,
    *,
    api: str = "openai-completions",
    context_window: int = 32_000,
    max_tokens: int = 4_096,
    settings: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
) -> None:
    """Write `models.json` and `settings.json` so that `lab/m`, served by the provider, is the default model.

    Workspaces are trusted unless the settings say otherwise, and no request for a title comes between those of a script.

    Args:
        settings: Further keys of `settings.json`.
        model: Further fields of the model, such as `reasoning`.
    """
    config_dir.mkdir(parents=True, exist_ok=True)
    listed = {"id": "m", "contextWindow": context_window, "maxTokens": max_tokens, **(model or {})}
    lab = {
        "baseUrl": provider.origin if api == "anthropic-messages" else provider.base_url,
        "api": api,
        "apiKey": "x",
        "models": [listed],
    }
    chosen = {
        "defaultProvider": "lab",
        "defaultModel": "m",
        "defaultProjectTrust": "always",
        "titles": "off",
        **(settings or {}),
    }
    _write(config_dir / "models.json", {"providers": {"lab": lab}})
    _write(config_dir / "settings.json", chosen)


def _write(path: Path, value: Json) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
