"""A server that does little more than the connection itself, for tests of the connection."""

import argparse
import asyncio
import logging
import sys
from typing import Any

from lsprotocol import types

from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.exports import stdio_streams


async def echo(params: dict[str, Any]) -> object:
    return params


async def wait_for_ever(_: dict[str, Any]) -> object:
    await asyncio.Event().wait()
    return None


async def give_part_when_cancelled(_: dict[str, Any]) -> object:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return {"partial": True}
    return None


async def fail(_: dict[str, Any]) -> object:
    message = "cannot read /home/someone/secret.txt"
    raise ValueError(message)


async def print_something(_: dict[str, Any]) -> object:
    print("a stray line")
    sys.stdout.flush()
    return {"printed": True}


async def open_session(params: dict[str, Any]) -> object:
    if "\x00" in params.get("session", ""):
        raise RpcError(INVALID_PARAMS, "agent/session/open: session must be an id.")
    return {"session": "s1"}


async def repeat_command(arguments: tuple[Any, ...]) -> object:
    return list(arguments)


async def stuck_command(_: tuple[Any, ...]) -> object:
    return await wait_for_ever({})


def make_connection() -> LspConnection:
    """Make a connection with a handler of each kind."""
    connection = LspConnection("echo", "1")
    methods = {
        "agent/echo": echo,
        "agent/wait": wait_for_ever,
        "agent/partial": give_part_when_cancelled,
        "agent/fail": fail,
        "agent/print": print_something,
        "agent/session/list": echo,
        "agent/session/open": open_session,
        "agent/prompt": echo,
    }
    for name, handler in methods.items():
        connection.add_agent_method(name, handler)
    connection.add_command("repeat", repeat_command)
    connection.add_command("stuck", stuck_command)

    @connection.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover:
        text = f"{params.text_document.uri}:{params.position.line}"
        return types.Hover(contents=types.MarkupContent(types.MarkupKind.PlainText, text))

    return connection


async def serve_stdio() -> int:
    """Serve one client over standard input and output."""
    reader, sink = await stdio_streams()
    return await make_connection().serve(reader, sink, parent="watch")


async def serve_socket(path: str) -> int:
    """Serve any number of clients, each with a connection of its own."""

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await make_connection().serve(reader, writer)

    server = await asyncio.start_unix_server(serve_one, path)
    print("listening", file=sys.stderr, flush=True)
    async with server:
        await server.serve_forever()
    return 0


def main() -> None:
    """Run as a process: over stdio, or on a Unix socket."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr)
    work = serve_socket(options.socket) if options.socket else serve_stdio()
    raise SystemExit(asyncio.run(work))


if __name__ == "__main__":
    main()
