"""Servers for tests: real ones of the library, over stdio and HTTP, started as programs of their own."""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

server = MCPServer("workshop", version="1.2")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(word: str) -> str:
    """Say a word again."""
    return f"you said {word}"


@server.tool()
def meta(context: Context) -> str:
    """Give what the request has in `_meta`."""
    return json.dumps(dict(context.request_context.meta or {}), default=str)


@server.tool()
def environment() -> dict[str, str]:
    """Give the whole environment."""
    return dict(os.environ)  # noqa: TID251 - the environment is what the test wants to know


@server.tool()
async def count(to: int, context: Context) -> str:
    """Count, and tell how far it is."""
    for number in range(to):
        await context.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


def left(path: str, text: str) -> None:
    """Leave a file: whole, or not at all."""
    half = Path(f"{path}.half")
    half.write_text(text, "utf-8")
    half.rename(path)


@server.tool()
async def wait(marker: str) -> str:
    """Wait for ever; leaves a file when it begins, and another when it is cancelled."""
    left(marker, str(os.getpid()))
    try:
        await anyio.sleep(1000)
    except asyncio.CancelledError:
        left(f"{marker}.cancelled", "")
        raise
    return "never"


@server.tool()
def picture() -> Image:
    """Give a picture."""
    return Image(data=PNG, format="png")


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def die() -> str:
    """End the server in the middle of the call."""
    print("I am gone", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def write(path: str, text: str) -> str:
    """Write a file."""
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        return f"not written: {error.strerror}"
    return "written"


@server.tool()
def much(size: int) -> str:
    """Give a long text."""
    return "x" * size


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(server.run_streamable_http_async(port=int(sys.argv[1])))
    else:
        server.run("stdio")
