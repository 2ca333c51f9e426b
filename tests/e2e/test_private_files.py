"""What we write of a user's is for that user alone, whatever the umask of who started us."""

import asyncio
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.clients.server import SERVER, TILLER, Ground, calls, prompt, says
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
OPEN_HANDED = ("/bin/sh", "-c", 'umask 000; exec "$@"', "sh")
"""Runs a program that leaves everything it makes to everyone."""


def _others_can(top: Path) -> Iterator[str]:
    for path in (top, *top.rglob("*")):
        facts = path.lstat()
        if not stat.S_ISLNK(facts.st_mode) and facts.st_mode & 0o077:
            yield f"{stat.filemode(facts.st_mode)} {path}"


async def _run(ground: Ground, *argv: str) -> None:
    child = await asyncio.create_subprocess_exec(
        *OPEN_HANDED, *TILLER, *argv, env=dict(ground.env), cwd=ground.root,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    told, _ = await child.communicate(b"sk-not-real-0123456789\n")
    assert child.returncode == 0, told.decode()


async def test_no_other_user_can_read_what_is_stored(ground: Ground, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    data, runtime, config = mine / "share" / "d", mine / "run" / "r", mine / "etc" / "c"
    places = {"TILLER_DATA_DIR": str(data), "TILLER_RUNTIME_DIR": str(runtime)}
    ground = replace(ground, env={**ground.env, **places})
    ground.file("a.py", "x = 1\n")
    ground.provider.script(
        [
            calls(("bash", {"command": "seq 1 40000"})),
            calls(("write", {"path": "b.py", "content": "y = 2\n"})),
            calls(("edit", {"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "x = 3"}]})),
            says("done"),
        ]
    )
    async with await RawClient.spawn(
        (*OPEN_HANDED, *SERVER), env=ground.env, cwd=ground.root
    ) as client:
        await client.initialize(PANEL, root=ground.root)
        await client.request("agent/session/open", {})
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go"))
        await stream.wait(type="run.ended")
    ground = replace(ground, env={**ground.env, "TILLER_CONFIG_DIR": str(config)})
    await _run(ground, "trust", "add")
    await _run(ground, "auth", "login", "together", "--key")
    assert list(data.rglob("*.jsonl"))
    assert list(data.rglob("bash-*.log")) or list(runtime.rglob("bash-*.log"))
    assert not list(_others_can(mine))
