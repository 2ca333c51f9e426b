"""`tiller acp` as a client starts it."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.acp.client import LINE_BYTES, AcpClient

ACP = (sys.executable, "-P", "-m", "tiller_server.cli.entry", "acp")


@asynccontextmanager
async def acp_process(
    env: Mapping[str, str], cwd: Path, options: Sequence[str] = (), *, version: int = 1
) -> AsyncGenerator[tuple[AcpClient, asyncio.subprocess.Process]]:
    """Start `tiller acp` and speak a version of the protocol with it; it is ended however the test ends."""
    options = options if version == 1 else ("--experimental-v2", *options)
    async with agent_process((*ACP, *options), env, cwd, version=version) as started:
        yield started


@asynccontextmanager
async def agent_process(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, version: int = 1
) -> AsyncGenerator[tuple[AcpClient, asyncio.subprocess.Process]]:
    """Start an agent that speaks the protocol over its standard streams; it is ended however the test ends."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = AcpClient(process.stdout, process.stdin, version=version)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.read())
        try:
            yield client, process
        finally:
            if process.returncode is None:
                process.stdin.close()
                try:
                    async with asyncio.timeout(20):
                        await process.wait()
                except TimeoutError:
                    process.kill()
