"""Process that a client of the Agent Client Protocol starts: relays lines to the daemon, as `shim.py` relays LSP's frames."""

import os
from collections.abc import Callable, Mapping

from tiller_server.daemon.shim.acp_proxy import AcpProxy
from tiller_server.daemon.shim.connection import handshake_line
from tiller_server.daemon.shim.discovery import DaemonDiscovery
from tiller_server.daemon.shim.endpoints import EditorEnd
from tiller_server.daemon.shim.relay import Relay
from tiller_server.daemon.shim.shim import StopSignals, check_platform, relay_services
from tiller_server.lsp.transport.framing import LineCutter

ID_BYTES = 8


def serve(env: Mapping[str, str], *, cwd: str, note: Callable[[str], None], newest: int = 1) -> int:
    """Serve the client on standard input and output through the daemon; gives the exit code.

    Args:
        env: The environment of the client.
        cwd: The folder it started us in.
        note: Takes a sentence for the log.
        newest: Newest version of the protocol that is served.

    Raises:
        Unserved: There is no daemon for it; nothing was said to the client yet.
        OSError: Standard input or output is closed.
    """
    check_platform()
    pid, client = os.getpid(), os.urandom(ID_BYTES).hex()

    def introduce(token: str) -> bytes:
        return handshake_line(
            env, token=token, cwd=cwd, pid=pid, ask="acp", client=client, newest=newest
        )

    stop = StopSignals()
    means = relay_services(env, introduce=introduce, note=note, stop=stop)
    search = DaemonDiscovery(env, clock=means.clock)
    editor = EditorEnd(cutter=LineCutter())
    relay = Relay(editor, search, means, proxy=AcpProxy(note=note), cutter=LineCutter)
    return relay.run(stopped=stop.code, wake_fd=stop.wake_fd)
