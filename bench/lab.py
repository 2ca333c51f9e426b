"""Where the measured programs run: folders of their own, a scripted provider, and the ways to start them."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.client import Client
from tests.support.harness.isolation import TillerDirs, isolated
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import VSCODE, Profile
from tests.support.provider import LoopbackProvider, write_config

ROOT = Path(__file__).resolve().parents[1]
START_S = 60.0
STOP_S = 15.0

_TILLER = "import sys; sys.path[:0] = [{root!r}, {root!r} + '/server']; from tiller_server.cli.entry import main; sys.exit(main())"
_PROFILED = (
    "import cProfile, sys; sys.path[:0] = [{root!r}, {root!r} + '/server']; from tiller_server.cli.entry import main; "
    "cProfile.run('main()', {into!r})"
)
_BARE_PYGLS = "from pygls.lsp.server import LanguageServer; LanguageServer('x', '1').start_io()"
_ANSWERING_PYGLS = """
from pygls.lsp.server import LanguageServer
server = LanguageServer('x', '1')
@server.feature('agent/prompt')
def prompt(params):
    return {'accepted': 'started', 'seq': 1}
server.start_io()
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its environment."""

    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What all benchmarks of a run share."""

    environ: Mapping[str, str]
    """The environment of this run."""
    profiles: Path | None = None
    """Where servers leave their cProfile statistics; None: they run as users run them."""
    peers: Sequence[str] = ()
    """Names of the other agents that are measured beside ours."""

    @asynccontextmanager
    async def lab(self, *, context_window: int = 1_000_000) -> AsyncGenerator["Lab"]:
        """Open a place of work; everything in it is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="tl-") as folder, LoopbackProvider() as provider:
            dirs, workspace = _furnished(Path(folder))
            settings = {"permission": {"mode": "yolo"}}
            write_config(dirs.config, provider, context_window=context_window, settings=settings)
            yield Lab(
                shop=self,
                dirs=dirs,
                workspace=workspace,
                provider=provider,
                env=child_environment(self.environ, dirs=dirs),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """One user's folders, an empty workspace and a provider without a script."""

    shop: Workshop
    dirs: TillerDirs
    workspace: Path
    provider: LoopbackProvider
    env: Mapping[str, str]

    @asynccontextmanager
    async def tiller(self, profile: Profile | None = VSCODE) -> AsyncGenerator[Client]:
        """Start our server, introduced to the editor of a profile unless that is None."""
        async with self._started(self._server_argv(), profile) as client:
            yield client
            if self.shop.profiles is not None:
                await client.shutdown(timeout_s=STOP_S)
                await client.exit(timeout_s=STOP_S)

    @asynccontextmanager
    async def bare_pygls(self, profile: Profile | None = VSCODE) -> AsyncGenerator[Client]:
        """Start pygls with nothing in it."""
        async with self._started([sys.executable, "-P", "-c", _BARE_PYGLS], profile) as client:
            yield client

    @asynccontextmanager
    async def answering_pygls(self) -> AsyncGenerator[Client]:
        """Start pygls with one handler, which answers `agent/prompt` at once and does nothing."""
        argv = [sys.executable, "-P", "-c", _ANSWERING_PYGLS]
        async with self._started(argv, VSCODE) as client:
            yield client

    @asynccontextmanager
    async def _started(
        self, argv: Sequence[str], profile: Profile | None
    ) -> AsyncGenerator[Client]:
        client = await Client.spawn(argv, env=self.env, cwd=self.workspace)
        async with client:
            try:
                if profile is not None:
                    await client.introduce(profile, self.workspace)
                yield client
            except (ClientError, ConnectionError, TimeoutError, AssertionError) as error:
                said = client.stderr[-2_000:].strip()
                message = f"{error}; the server said: {said or 'nothing'}"
                raise MeasurementFailedError(message) from error

    @asynccontextmanager
    async def shim(self) -> AsyncGenerator[Client]:
        """Start our shim, which starts the daemon if there is none; `end_daemon` ends that."""
        async with self._started(self.tiller_argv("lsp"), None) as client:
            yield client

    def tiller_argv(self, *arguments: str) -> list[str]:
        """Return a command line of ours: as the command that is installed does it, in at most as many lines."""
        return [sys.executable, "-P", "-c", _TILLER.format(root=str(ROOT)), *arguments]

    def _server_argv(self) -> list[str]:
        if self.shop.profiles is None:
            return self.tiller_argv("lsp", "--in-process")
        into = self.shop.profiles / f"{self.dirs.config.parent.name}.pstats"
        source = _PROFILED.format(root=str(ROOT), into=str(into))
        return [sys.executable, "-P", "-c", source, "lsp", "--in-process"]


def _furnished(folder: Path) -> tuple[TillerDirs, Path]:
    """Make the user's folders and an empty workspace; by their real names, as sessions record them."""
    dirs = TillerDirs.below(folder.resolve())
    dirs.make()
    workspace = folder.resolve() / "w"
    workspace.mkdir()
    return dirs, workspace


class MeasurementFailedError(Exception):
    """A benchmark could not be carried out."""


def child_environment(environ: Mapping[str, str], *, dirs: TillerDirs) -> dict[str, str]:
    """Give the environment of a measured process: it may write bytecode, as a user's does."""
    unwanted = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH"}
    kept = {name: value for name, value in environ.items() if name not in unwanted}
    return isolated(kept, dirs=dirs)


async def prepare_bytecode(environ: Mapping[str, str]) -> str:
    """Compile our code; one unmeasured start of each program compiles what it imports. Says so."""
    kept = {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    argv = [sys.executable, "-m", "compileall", "-q", "agent_core", "server"]
    process = await asyncio.create_subprocess_exec(*argv, env=kept, cwd=ROOT)
    if await process.wait() != 0:
        raise MeasurementFailedError("compileall failed; see above")
    return (
        "bytecode: compileall ran first, PYTHONDONTWRITEBYTECODE unset for every measured process, "
        "one unmeasured start of each before the measured ones"
    )


def answer_of(deltas: int, **more: Any) -> dict[str, Any]:
    """Give a turn of that many deltas, each `word `."""
    return {"deltas": deltas, "usage": {"input": 10, "output": deltas}, **more}
