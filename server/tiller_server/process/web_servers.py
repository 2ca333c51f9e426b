"""The servers of `tiller web` that run: each leaves a file that says how it is reached, for commands and for the daemon."""

from collections.abc import Sequence
from pathlib import Path
from socket import create_connection
from typing import Final

import msgspec

from agent_core.kernel.values import Value, threadsafe

CONNECT_S: Final = 1.0
NAME: Final = "web-{port}.json"


class WebServerRecord(Value, frozen=True, kw_only=True):
    """A running server."""

    port: int
    address: str
    """Where this machine connects to it."""
    origin: str
    """Where browsers reach it, on other machines too if it serves them: links begin with it."""
    host: str
    """Host that its requests name."""
    is_public: bool
    """Whether other machines reach it."""
    token_file: Path
    certificate: Path | None = None
    """File with the certificate that it shows; None: it speaks HTTP."""


def encoded_record(record: WebServerRecord) -> str:
    """Return the content of the file of a server."""
    return msgspec.json.encode(record, enc_hook=str).decode()


def web_servers(runtime: Path) -> Sequence[WebServerRecord]:
    """Return the servers that are running, those that other machines reach first. Blocking.

    Args:
        runtime: Folder of the files; one stays behind when its server is killed.
    """
    found: list[WebServerRecord] = []
    for file in runtime.glob(NAME.format(port="*")):
        try:
            record = msgspec.json.decode(
                file.read_bytes(),
                type=threadsafe(WebServerRecord),
                dec_hook=lambda kind, text: kind(text),
            )
        except (OSError, msgspec.MsgspecError):
            continue
        if _is_served(record):
            found.append(record)
    return sorted(found, key=lambda one: (not one.is_public, one.port))


def _is_served(record: WebServerRecord) -> bool:
    try:
        create_connection((record.address, record.port), timeout=CONNECT_S).close()
    except (OSError, OverflowError):
        return False
    return True
