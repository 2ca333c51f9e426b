"""A program and an extension of a user are checked by mypy and pyright against the types of the wheel."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT

pytestmark = [pytest.mark.timeout(300)]

PROGRAM = """
import anyio
from pydantic import Field

from agent_core import AgentSession, create_session, export_session
from agent_core.extensions import Context, ExtensionApi, ToolArguments, ToolCallContext
from agent_core.hooks import Compacting, CutChosen, GoOn, MessageGrown, TextGrowth, ToolBlocked, ToolCalled


class TicketArguments(ToolArguments):
    number: int = Field(description="Number of the ticket")


def extension(api: ExtensionApi) -> None:
    @api.tool(kind="read")
    async def ticket(arguments: TicketArguments, ctx: ToolCallContext) -> str:
        "Read a ticket."
        ctx.call.output("reading")
        return str(arguments.number + 1)

    @api.on(ToolCalled)
    async def check(event: ToolCalled, ctx: Context) -> GoOn | ToolBlocked:
        header, leaf = ctx.session.header, ctx.session.leaf
        known = {tool.name: tool.source for tool in api.describe_tools()}
        model = ctx.models.find("small")
        if header.cwd == "/" or leaf is None or model is None:
            return ToolBlocked(reason=known.get(event.tool, "unknown").upper())
        return GoOn()

    @api.on(Compacting)
    def cut(event: Compacting) -> CutChosen | GoOn:
        return CutChosen(first_kept=event.cut_points[-1]) if event.cut_points else GoOn()

    @api.on(MessageGrown)
    def show(event: MessageGrown) -> None:
        for more in event.growth:
            if isinstance(more, TextGrowth):
                print(more.text.upper())


async def setup(session: AgentSession) -> None:
    await session.programs.record_bash("make", "ok", exit_code=0)


async def main() -> None:
    async with create_session(
        workspace=".", store="memory", extensions=[extension], title="Tickets", setup=setup
    ) as session:
        await session.prompt("Read ticket 7.")
        result = await session.wait_idle()
        print(result.text.upper() if result else "")
        document: bytes = await export_session(session, "md")
        print(len(document))


anyio.run(main)
"""
MISTAKE = """
from agent_core import create_session

create_session(workspace=".", sesion="new")
"""
Check = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel alone; its dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("typing")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    site.joinpath("tests.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return venv / "bin" / "python"


@pytest.fixture(params=["mypy", "pyright"])
def check(request: pytest.FixtureRequest, installed: Path, tmp_path: Path) -> Check:
    """Return the check of a program by one checker, in its strictest mode, outside of the checkout."""
    python = str(installed)
    # The checkout of the tests is on PYTHONPATH of some runs.
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}  # noqa: TID251 - as installed
    tmp_path.joinpath("pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', "utf-8")
    argv = {
        "mypy": [sys.executable, "-m", "mypy", "--strict", "--python-executable", python],
        "pyright": [str(Path(sys.executable).parent / "basedpyright"), "--pythonpath", python],
    }[request.param]

    def run(program: str) -> "subprocess.CompletedProcess[str]":
        file = tmp_path / "program.py"
        file.write_text(program, encoding="utf-8")
        return subprocess.run(
            [*argv, file.name], cwd=tmp_path, env=env, check=False, capture_output=True, text=True
        )

    return run


def test_a_program_of_a_user_has_no_type_error(check: Check) -> None:
    checked = check(PROGRAM)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_mistake_of_a_user_is_found(check: Check) -> None:
    checked = check(MISTAKE)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "sesion" in checked.stdout
