"""Paths of a user's daemon. Pure, with hardly any imports: the start of every editor waits for this module."""

import os
import sys
from collections.abc import Mapping

MAX_SOCKET_PATH_BYTES = 100
"""Linux takes 107 bytes, macOS and the BSDs 103."""
SOCKET = "daemon.sock"


def runtime_folder(env: Mapping[str, str]) -> str:
    """Return the folder that holds the socket, the token, the lock and the log: the same as `app_paths(env).runtime`.

    Raises:
        ValueError: `TILLER_RUNTIME_DIR` is a relative path, or there is no home; the text says so.
    """
    folder = _named(env)
    if len(os.fsencode(f"{folder}/{SOCKET}")) <= MAX_SOCKET_PATH_BYTES or sys.platform == "win32":
        return folder
    return short_folder(folder)


def socket_path(env: Mapping[str, str]) -> str:
    """Return where the daemon listens."""
    return f"{runtime_folder(env)}/{SOCKET}"


def token_path(env: Mapping[str, str]) -> str:
    """Return the file with the token that a client shows."""
    return f"{runtime_folder(env)}/daemon.token"


def lock_path(env: Mapping[str, str]) -> str:
    """Return the file that the daemon holds locked for as long as it lives."""
    return f"{runtime_folder(env)}/daemon.lock"


def log_path(env: Mapping[str, str]) -> str:
    """Return the file that the daemon writes its log to."""
    return f"{runtime_folder(env)}/daemon.log"


def short_folder(folder: str) -> str:
    """Return the stand-in for a folder whose socket would have too long a path; one for each user and folder."""
    import hashlib  # noqa: PLC0415 - hardly anybody needs it

    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return f"/tmp/tiller-{os.getuid()}-{digest}"  # noqa: S108 - its owner and mode are checked before it is used


def _named(env: Mapping[str, str]) -> str:
    return _override(env, "TILLER_RUNTIME_DIR") or _usual(env)


def _usual(env: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        return f"{_local_data(env)}\\tiller\\Temp"
    if sys.platform == "darwin":
        return f"{_home(env)}/Library/Caches/TemporaryItems/tiller"
    if (xdg := env.get("XDG_RUNTIME_DIR", "")).startswith("/"):
        return f"{xdg.rstrip('/')}/tiller"
    # Without it the usual guess is a shared folder below /tmp; a private one is better.
    if data := _override(env, "TILLER_DATA_DIR"):
        return f"{data}/runtime"
    if (xdg := env.get("XDG_DATA_HOME", "")).startswith("/"):
        return f"{xdg.rstrip('/')}/tiller/runtime"
    return f"{_home(env)}/.local/share/tiller/runtime"


def _override(env: Mapping[str, str], name: str) -> str:
    given = env.get(name, "")
    if given == "~" or given.startswith("~/"):
        given = env.get("HOME", "~") + given[1:]
    if given and not os.path.isabs(given):  # noqa: PTH117 - pathlib costs an editor 5 ms
        message = f"{name} is {given!r}, a relative path: give an absolute one, or unset it"
        raise ValueError(message)
    return given.rstrip("/") or given


def _home(env: Mapping[str, str]) -> str:
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - pathlib costs an editor 5 ms
    if home.startswith("/"):
        return home.rstrip("/") or "/"
    raise ValueError(
        "there is no home folder to keep the daemon's files in: set HOME or TILLER_RUNTIME_DIR"
    )


def _local_data(env: Mapping[str, str]) -> str:
    return env.get("LOCALAPPDATA") or f"{os.path.expanduser('~')}\\AppData\\Local"  # noqa: PTH111 - as above
