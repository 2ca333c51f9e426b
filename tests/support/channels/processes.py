"""`tiller lark` and `tiller slack` as their own processes."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from tests.support.clients.server import TILLER


@asynccontextmanager
async def chat_process(
    command: str, env: Mapping[str, str], words: Sequence[str] = ()
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start a command; it is killed at the end, unless it has ended."""
    process = await asyncio.create_subprocess_exec(
        *TILLER, command, *words, env=dict(env), stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def output(command: str, env: Mapping[str, str], *words: str) -> tuple[int | None, str]:
    """Run a command to its end; return its exit code and its standard output."""
    async with chat_process(command, env, words) as process:
        out, _ = await process.communicate()
        return process.returncode, out.decode()


async def healthy_status(command: str, env: Mapping[str, str], *words: str) -> str:
    """Return the output of `status` once it is healthy: a process writes its state every second."""
    async with asyncio.timeout(20):
        while True:
            code, text = await output(command, env, "status", *words)
            if code == 0:
                return text
