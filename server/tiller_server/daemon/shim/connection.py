"""Calls the daemon: finds its socket, makes sure whose it is, and says who calls. Imports next to nothing."""

import os
import stat
import sys

# The modules around these cost an editor 7 ms each, and there is no more in them that is needed here.
from _json import encode_basestring_ascii as quoted
from _socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET, socket
from collections.abc import Mapping

from tiller_server import VERSION
from tiller_server.daemon import paths

SPOKEN = 1
_TOKEN_BYTES = 4096
_OTHERS = 0o077


class Unreachable(Exception):
    """No daemon can be reached; the message is the reason.

    Attributes:
        code: Code of the daemon's refusal; empty when no daemon has refused.
    """

    def __init__(self, why: str, *, code: str = "") -> None:
        super().__init__(why)
        self.code = code


def call(env: Mapping[str, str]) -> tuple[socket, str] | None:
    """Connect to the daemon and give its token with the socket, which does not block; None when nobody answers.

    Raises:
        Unreachable: Its place cannot be trusted with an environment, or cannot be used.
    """
    try:
        folder = os.lstat(paths.runtime_folder(env))
        _check_folder(folder, paths.runtime_folder(env))
        token = _token(paths.token_path(env))
        sock = _connected(paths.socket_path(env))
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
        return None
    except ValueError as error:
        raise Unreachable(str(error)) from error
    except OSError as error:
        why = f"its socket cannot be used ({error.strerror}: {error.filename or paths.socket_path(env)!r})"
        raise Unreachable(why) from error
    return sock, token


def handshake_line(
    env: Mapping[str, str],
    *,
    token: str,
    cwd: str,
    pid: int,
    ask: str = "",
    client: str = "",
    newest: int = 1,
) -> bytes:
    """Return the first line of a connection, with the identity and the environment of the client. Pure.

    Args:
        env: Environment of the client.
        token: Token of the daemon.
        cwd: Folder of the client.
        pid: Process of the client.
        ask: Protocol that it speaks; empty: LSP.
        client: Id of the client, the same when it connects again; empty: it has none.
        newest: Newest version of the protocol that is served to it.
    """
    variables = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in env.items())
    head = f'{{"v":{SPOKEN},"token":{quoted(token)},"cwd":{quoted(cwd)},"pid":{pid:d}'
    if ask:
        head += f',"ask":{quoted(ask)},"client":{quoted(client)},"newest":{newest:d}'
    return f'{head},"version":{quoted(VERSION)},"env":{{{variables}}}}}\n'.encode()


def control_line(ask: str, *, token: str, pid: int) -> bytes:
    """Return the first line of a connection that asks the daemon itself for something. Pure."""
    head = f'{{"v":{SPOKEN},"token":{quoted(token)},"pid":{pid:d}'
    return f'{head},"version":{quoted(VERSION)},"ask":{quoted(ask)}}}\n'.encode()


def _check_folder(found: os.stat_result, folder: str) -> None:
    """Refuse to give keys to whoever may have put a socket into a folder that others can write to."""
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & _OTHERS
    if is_private and found.st_uid == os.geteuid():
        return
    from tiller_server.daemon.private_dir import objection  # noqa: PLC0415 - knows the words; seldom needed

    message = f"the folder {folder!r} {objection(found, uid=os.geteuid())}"
    raise Unreachable(message)


def _token(path: str) -> str:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(opened, _TOKEN_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(opened)


def _connected(path: str) -> socket:
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.settimeout(0)
        sock.connect(path)
        _check_uid(_uid_behind(sock), path)
    except BaseException:
        sock.close()
        raise
    return sock


def _check_uid(uid: int | None, path: str) -> None:
    if uid not in {None, os.geteuid()}:
        message = f"user {uid} listens at {path!r}; set TILLER_RUNTIME_DIR to a folder of your own"
        raise Unreachable(message)


def _uid_behind(sock: socket) -> int | None:
    """Return the user of the process that listens; None where the system does not say."""
    if sys.platform != "linux":
        return None
    from _socket import SO_PEERCRED  # noqa: PLC0415 - not every system has it

    credentials = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)  # pid, uid and gid, four bytes each
    return int.from_bytes(credentials[4:8], sys.byteorder)
