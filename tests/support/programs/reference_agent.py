"""Another agent that keeps its sessions in the same format: npm's pi-coding-agent, spoken to over its own protocol."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.support.clients.server import Ground
from tests.support.provider import write_config

Json = dict[str, Any]
VERSION = "0.73.1"
PACKAGE = Path(sys.prefix) / "reference-agent/node_modules/@mariozechner/pi-coding-agent"
NEWEST_VERSION = "1.5.2"
NEWEST = Path(sys.prefix) / "pi/node_modules/@earendil-works/pi-coding-agent"
NODE = Path(sys.prefix) / "node/bin/node"
"""The pinned Node, which the newest release needs."""
STOP_S = 5.0
_ENVIRONMENT: Mapping[str, str] = os.environ  # noqa: TID251 - to find node, and to know whether this is CI


def reference_agent() -> Path:
    """Give the folder of the package; skips the test without it, fails where it has to be installed.

    Raises:
        AssertionError: It is missing in CI, or of another version.
    """
    if not is_reference_agent_installed():
        reason = "the reference agent is not installed: `make e2e-setup` with CI=true installs it"
        assert _ENVIRONMENT.get("CI") != "true", reason
        pytest.skip(reason)
    found = json.loads((PACKAGE / "package.json").read_text("utf-8"))["version"]
    assert found == VERSION, f"the reference agent is {found}, not {VERSION}"
    return PACKAGE


def is_reference_agent_installed() -> bool:
    """Say whether it is there, with the program that runs it."""
    return shutil.which("node") is not None and (PACKAGE / "package.json").is_file()


def newest_agent() -> Path:
    """Give the folder of the newest release; skips the test without it, fails where it has to be installed.

    Raises:
        AssertionError: It is missing in CI, or of another version.
    """
    if not (NODE.is_file() and (NEWEST / "package.json").is_file()):
        reason = "pi 1.5.2 is not installed: `make e2e-setup` with CI=true installs it"
        assert _ENVIRONMENT.get("CI") != "true", reason
        pytest.skip(reason)
    found = json.loads((NEWEST / "package.json").read_text("utf-8"))["version"]
    assert found == NEWEST_VERSION, f"pi is {found}, not {NEWEST_VERSION}"
    return NEWEST


def rpc_command(version: str) -> Sequence[str]:
    """Give the command that starts a release in its RPC mode; skips the test where it is not installed."""
    if version == VERSION:
        command = ["node", str(reference_agent() / "dist/cli.js")]
    else:
        command = [str(NODE), str(newest_agent() / "dist/bundle/cli.js")]
    return (*command, "--mode", "rpc", "--model", "lab/m")


def reference_environment(home: Path) -> dict[str, str]:
    """Give an environment in which it lives in a folder of its own and asks nobody on the network."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: _ENVIRONMENT[name] for name in ("PATH", "LANG") if name in _ENVIRONMENT}
    return {
        **kept,
        "HOME": str(home),
        "PI_CODING_AGENT_DIR": str(home / "agent"),
        "PI_OFFLINE": "1",
    }


class ReferenceAgent:
    """The other agent in its RPC mode, working on one session; a context manager that ends it.

    Args:
        ground: The workspace and the provider that it shares with ours.
        home: Its own folder.
        arguments: Of the command: which session, for one.
    """

    def __init__(self, ground: Ground, home: Path, arguments: Sequence[str]) -> None:
        self._cli = reference_agent() / "dist/cli.js"
        self._env = reference_environment(home)
        self._arguments = list(arguments)
        self._root = ground.root
        self._process: subprocess.Popen[bytes] | None = None
        settings = {"compaction": {"keepRecentTokens": 1, "reserveTokens": 1000}}
        write_config(home / "agent", ground.provider, settings=settings)

    def __enter__(self) -> Self:
        command = ["node", str(self._cli), "--mode", "rpc", "--model", "lab/m", *self._arguments]
        self._process = subprocess.Popen(
            command,
            cwd=self._root,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._running
        try:
            # It ends when nobody speaks to it any more.
            process.communicate(timeout=STOP_S)
        finally:
            process.kill()
            process.wait()

    def ask(self, kind: str, /, **fields: Any) -> Any:
        """Send a command and give the data of its answer."""
        process = self._running
        assert process.stdin is not None
        process.stdin.write(json.dumps({"id": "1", "type": kind, **fields}).encode() + b"\n")
        process.stdin.flush()
        answer = self.until("response")
        assert (answer["command"], answer["success"]) == (kind, True), answer
        return answer.get("data")

    def prompt(self, text: str) -> None:
        """Say something and wait until all is done."""
        self.ask("prompt", message=text)
        self.until("agent_end")

    def until(self, kind: str) -> Json:
        """Read up to the first line of a kind, and give it."""
        process = self._running
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line)
            if told["type"] == kind:
                return told
        message = f"the reference agent ended without {kind!r}"
        raise AssertionError(message)

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process


def heard(request: Json) -> str:
    """Give everything that a request told the model, as one text to look for words in."""
    return json.dumps(request["body"]["messages"], ensure_ascii=False)
