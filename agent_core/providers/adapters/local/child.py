"""The process that runs the model: a server with the wire of Chat Completions, for one parent.

It says its address on standard output, or behind a `!` why it cannot start. It ends when its standard input does.

    python -m agent_core.providers.adapters.local.child WEIGHTS CONTEXT
"""

import ctypes
import os
import signal
import sys
import threading

import anyio
import anyio.abc

from agent_core.providers.adapters.local.answering import NotARequest, answer_request, read_request
from agent_core.providers.adapters.local.runtime import Runtime, start_runtime

HERE = "127.0.0.1"
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the parent is gone."""
    _end_with_parent()
    weights, context = sys.argv[1], int(sys.argv[2])
    # Native code writes to standard output as it likes; the parent reads it for one line.
    out = os.dup(1)
    _ = os.dup2(2, 1)
    try:
        runtime = start_runtime(weights, context=context)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent is to say it
        why = " ".join(str(error).split()) or type(error).__name__
        _ = os.write(out, f"!{why}\n".encode())
        os._exit(1)
    # The runtime's own threads would be waited for, and there is nothing to save: end hard, however it ends.
    try:
        anyio.run(_serve, runtime, out)
    finally:
        os._exit(0)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        # The kernel ends us even when native code holds the interpreter; the pipe serves every other system.
        _ = ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # pyright: ignore[reportAny] - C has no types
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    # Not by `sys.stdin`, whose lock the end of the interpreter wants too.
    while os.read(0, 1024):
        pass
    os._exit(0)


async def _serve(runtime: Runtime, out: int) -> None:
    turns = anyio.Lock()

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                body = await read_request(stream)
            except NotARequest:
                return
            await answer_request(stream, body, runtime=runtime, turns=turns)

    async with await anyio.create_tcp_listener(local_host=HERE) as listener:
        port = int(listener.extra(anyio.abc.SocketAttribute.local_port))  # noqa: S610 - not Django
        # The socket listens already: whoever reads this may connect, even before `serve` accepts.
        _ = os.write(out, f"http://{HERE}:{port}/v1\n".encode())
        os.close(out)
        await listener.serve(answer)


if __name__ == "__main__":
    main()
