"""A served workspace for tests: a loopback provider, a configuration that names it, a server process, a client."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.harness.isolation import TillerDirs
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import MINIMAL, Profile
from tests.support.provider import LoopbackProvider, write_config

Json = dict[str, Any]
SERVER = (sys.executable, "-P", "-m", "tiller_server.cli.entry", "lsp", "--in-process")
TILLER = (sys.executable, "-P", "-m", "tiller_server.cli.entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a test plays: folders, environment, provider."""

    dirs: TillerDirs
    env: Mapping[str, str]
    provider: LoopbackProvider
    root: Path
    runs_below: int | None = None
    """Process below which its runs go on; None: they do in the command itself."""

    def configure(self, *, api: str = "openai-completions", **settings: Any) -> None:
        """Write the user's configuration; commands are allowed unless `permission` says otherwise."""
        chosen = {
            "defaultProjectTrust": "always",
            "permission": {"mode": "yolo"},
            "steer": {"graceS": 0},
            **settings,
        }
        write_config(self.dirs.config, self.provider, api=api, settings=chosen)

    def show_images(self) -> None:
        """Configure a model that takes images and PDF files."""
        path = self.dirs.config / "models.json"
        models = json.loads(path.read_text("utf-8"))
        models["providers"]["lab"]["models"][0]["input"] = ["text", "image", "pdf"]
        path.write_text(json.dumps(models), encoding="utf-8")

    def file(self, name: str, text: str) -> Path:
        """Write a file of the workspace."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    def commit(self) -> None:
        """Make the workspace a git repository with one commit."""
        who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        for words in (
            ("init", "-q", "-b", "main"),
            ("add", "-A"),
            ("commit", "--allow-empty", "-qm", "first"),
        ):
            argv = ("git", *who, *words)
            subprocess.run(argv, cwd=self.root, check=True, env=dict(self.env))

    def sessions(self) -> list[Path]:
        """Give the session files, without the caches of events beside them."""
        found = self.dirs.data.glob("sessions/*/*.jsonl")
        return sorted(path for path in found if not path.name.endswith(".events.jsonl"))

    def entries(self) -> list[Json]:
        """Give the lines of the only session file."""
        (path,) = self.sessions()
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    @asynccontextmanager
    async def client(
        self, caps: Profile | Json = MINIMAL, *, options: Json | None = None
    ) -> AsyncGenerator[RawClient]:
        """Start a server and introduce an editor to it; the server is ended however the test ends."""
        client = await RawClient.spawn(SERVER, env=self.env, cwd=self.root)
        async with client:
            await client.initialize(caps, root=self.root, options=options)
            yield client


def says(text: str) -> Json:
    """Make a turn of words."""
    return {"text": text}


def calls(*named: tuple[str, Json], text: str = "") -> Json:
    """Make a turn of tool calls."""
    listed = [{"name": name, "arguments": arguments} for name, arguments in named]
    return {"text": text, "tool_calls": listed}


def prompt(text: str, **more: Any) -> Json:
    """Make the params of `agent/prompt`."""
    return {"content": [{"type": "text", "text": text}], **more}


def tool_texts(request: Json) -> Sequence[str]:
    """Give what a request of the OpenAI shape says of tool results."""
    return [one["content"] for one in request["body"]["messages"] if one["role"] == "tool"]
