"""A program that lies in the workspace is not started in the place of one of the system, wherever the PATH begins."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.workspace.sandbox import Prober, SandboxCapability
from tests.support.mcp.mcp_office import McpOffice
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import FAILED
from tiller_server.cli.subcommands import doctor

pytestmark = pytest.mark.timeout(60)

NAMES = ("rg", "git", "bash", "sh", "python3", "node", "bwrap", "env", "printkey")
NONE = SandboxCapability(
    level="none", how="nothing", why_not_full="bubblewrap is not installed: do so"
)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A workspace whose programs come first on the PATH, and leave a mark."""

    folder: Folder
    mark: Path
    path: str

    @property
    def env(self) -> Mapping[str, str]:
        return {**self.folder.env, "PATH": self.path}


@pytest.fixture(params=[".venv/bin", "node_modules/.bin"])
def planted(folder: Folder, tmp_path: Path, request: pytest.FixtureRequest) -> Planted:
    mark = tmp_path / "PWNED"
    bin_folder = folder.root / request.param
    bin_folder.mkdir(parents=True)
    for name in NAMES:
        path = bin_folder / name
        path.write_text(f"#!/bin/sh\n/usr/bin/touch {mark}\n", "utf-8")
        path.chmod(0o755)
    return Planted(folder=folder, mark=mark, path=f"{bin_folder}{os.pathsep}/usr/bin:/bin")


def configure(planted: Planted, lab: LoopbackProvider, **settings: object) -> None:
    """Write the user's configuration; nothing contains commands."""
    chosen = {"sandbox": "off", "permission": {"mode": "yolo"}, **settings}
    write_config(planted.folder.dirs.config, lab, settings=chosen)


async def session_says(planted: Planted, lab: LoopbackProvider, *calls: dict[str, object]) -> str:
    """Let the model call tools; gives all that it was told."""
    lab.script([{"tool_calls": list(calls)}, {"text": "done"}])
    request = SessionRequest(workspace=planted.folder.root, env=planted.env, store="memory")
    async with open_session(request) as session:
        receipt = await session.prompt("go")
        assert receipt.run is not None
        _ = await session.wait(receipt.run)
    return str(lab.requests[-1]["body"]["messages"])


async def test_searches_start_no_ripgrep_of_the_workspace(
    planted: Planted, lab: LoopbackProvider
) -> None:
    configure(planted, lab)
    (planted.folder.root / "a.txt").write_text("needle\n", "utf-8")
    told = await session_says(
        planted, lab,
        {"name": "grep", "arguments": {"pattern": "needle"}},
        {"name": "find", "arguments": {"pattern": "*.txt"}},
    )  # fmt: skip
    assert "a.txt:1: needle" in told
    assert not planted.mark.exists()


async def test_a_shell_without_its_folder_is_none_of_the_workspace(
    planted: Planted, lab: LoopbackProvider
) -> None:
    configure(planted, lab, bash={"shellPath": "bash"})
    told = await session_says(
        planted, lab, {"name": "bash", "arguments": {"command": "echo it is $0"}}
    )
    assert "it is /usr/bin/bash" in told
    assert not planted.mark.exists()


async def test_a_command_that_gives_a_key_finds_no_program_of_the_workspace(
    planted: Planted, lab: LoopbackProvider, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "printkey"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\necho sk-the-real-one\n", "utf-8")
    own.chmod(0o755)
    path = f"{planted.path}{os.pathsep}{own.parent}"
    there = Planted(folder=planted.folder, mark=planted.mark, path=path)
    configure(planted, lab)
    models = planted.folder.dirs.config / "models.json"
    text = models.read_text("utf-8")
    assert '"apiKey": "x"' in text
    models.write_text(text.replace('"apiKey": "x"', '"apiKey": "!printkey"'), "utf-8")
    told = await session_says(there, lab, {"name": "ls", "arguments": {}})
    assert told
    assert not planted.mark.exists()


@pytest.mark.parametrize("contained", ["auto", "off"])
async def test_a_server_that_nothing_contains_is_none_of_the_workspace(
    planted: Planted, lab: LoopbackProvider, contained: str
) -> None:
    office = McpOffice(planted.folder, lab)
    office.servers(docs={"command": "node", "args": [], "sandbox": contained})
    lab.script([{"text": "done"}])
    request = SessionRequest(workspace=planted.folder.root, env=planted.env, store="memory")
    async with open_session(request) as session:
        receipt = await session.prompt("go")
        assert receipt.run is not None
        _ = await session.wait(receipt.run)
    assert not planted.mark.exists()


def test_the_doctor_tries_no_program_of_the_workspace(
    planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(json=True, workspace=str(planted.folder.root), ask=False)
    env = Environment({**planted.env, "PATH": planted.path.partition(os.pathsep)[0]})
    # Git, which is required, is on that path alone.
    assert doctor.main(options, env, prober=Prober(NONE)) == FAILED
    assert "which the workspace can exchange" in capsys.readouterr().out
    assert not planted.mark.exists()
