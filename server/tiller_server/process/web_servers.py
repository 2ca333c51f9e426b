"""The servers of `tiller web` that run, by the files with their tokens."""

from collections.abc import Sequence
from pathlib import Path
from socket import create_connection
from typing import Final

CONNECT_S: Final = 1.0


def web_ports(runtime: Path) -> Sequence[int]:
    """Return the ports that are served, lowest first. Blocking.

    Args:
        runtime: Folder of the token files; each is named after its port, and stays behind when its server is killed.
    """
    names = [one.stem.removeprefix("web-") for one in runtime.glob("web-*.token")]
    ports = sorted(int(one) for one in names if one.isascii() and one.isdigit())
    return [one for one in ports if one < 1 << 16 and _is_served(one)]


def _is_served(port: int) -> bool:
    try:
        create_connection(("127.0.0.1", port), timeout=CONNECT_S).close()
    except OSError:
        return False
    return True
