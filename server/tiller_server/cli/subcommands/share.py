"""`tiller share`: shares a session as a read-only page behind a link that expires; `tiller web` serves it."""

import argparse
import re
import socket as sockets
import ssl
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio

from agent_core.assembly.library import unindexed_library
from agent_core.kernel import JsonObject, SystemClock
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import as_object, decode, encode
from agent_core.resources.paths import app_paths
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, code_of_error, complain
from tiller_server.cli.terminal.text import safe
from tiller_server.process.web_servers import web_servers

EXAMPLE: Final = (
    "examples: tiller share 01a2 · tiller share 01a2 --expires 7d --yes · tiller share --list · "
    "tiller share --revoke share-01a2"
)
WAIT_S: Final = 60
UNITS: Final[Mapping[str, int]] = {"m": 60, "h": 3600, "d": 24 * 3600}
_TIME: Final = re.compile(r"(\d{1,5})([mhd])")


class ShareRefused(TillerError):
    """`tiller web` does not run, or refuses the request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    forms = parser.add_mutually_exclusive_group(required=True)
    _ = forms.add_argument(
        "session", nargs="?", metavar="SESSION", help="id of the session, or its beginning or end"
    )
    _ = forms.add_argument("--list", action="store_true", help="show the links and their ends")
    _ = forms.add_argument("--revoke", metavar="ID", help="end a link now")
    _ = parser.add_argument(
        "--expires", default="24h", metavar="TIME", help="30m, 24h, 7d; at most 30d [%(default)s]"
    )
    _ = parser.add_argument("--yes", action="store_true", help="do not ask after the preview")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; return the exit code."""
    try:
        server = ShareClient(app_paths(environment.variables).runtime)
        if options.list:
            return _list(server)
        if options.revoke is not None:
            link = server.post(f"/api/shares/{options.revoke}/revoke", {})
            _ = sys.stdout.write(f"{_line(link)}\n")
            return DONE
        expires_s = seconds(options.expires)
        session = anyio.run(_find, environment, options.session)
        return _share(server, session, expires_s=expires_s, asks=not options.yes)
    except TillerError as error:
        complain("share", str(error))
        return code_of_error(error)


class ShareClient:
    """A client of the `tiller web` of this user. Blocking."""

    def __init__(self, runtime: Path) -> None:
        """Find the server.

        Args:
            runtime: Folder with the token of each.

        Raises:
            ShareRefused: None runs.
        """
        servers = web_servers(runtime)
        if not servers:
            message = "no tiller web runs, which serves the page; start it first"
            raise ShareRefused(message)
        self._server = servers[0]
        self._token = self._server.token_file.read_text("utf-8").strip()

    def get(self, path: str) -> JsonObject:
        """Send a GET request and return its answer.

        Raises:
            ShareRefused: The server refuses it, or has gone.
        """
        return self._send("GET", path, None)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """Send a POST request and return its answer.

        Raises:
            ShareRefused: The server refuses it, or has gone.
        """
        return self._send("POST", path, encode(body))

    def _send(self, method: str, path: str, body: bytes | None) -> JsonObject:
        headers = {
            "authorization": f"Bearer {self._token}",
            "content-type": "application/json",
            "host": self._server.host,
        }
        connection = HTTPConnection(self._server.address, self._server.port, timeout=WAIT_S)
        try:
            if self._server.certificate is not None:
                connection.sock = self._secure_socket(self._server.certificate)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data = as_object(decode(answer.read() or b"{}"))
        except (OSError, HTTPException, ValueError) as error:
            message = (
                f"tiller web on port {self._server.port} does not answer ({error}); start it again"
            )
            raise ShareRefused(message) from error
        finally:
            connection.close()
        if "error" in data:
            raise ShareRefused(str(as_object(data["error"]).get("message")))
        return data

    def _secure_socket(self, certificate: Path) -> ssl.SSLSocket:
        """Connect to a server that shows this very certificate, whoever has signed it."""
        context = ssl.create_default_context(cafile=certificate)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        place = (self._server.address, self._server.port)
        plain = sockets.create_connection(place, timeout=WAIT_S)
        try:
            name = urlsplit(self._server.origin).hostname
            return context.wrap_socket(plain, server_hostname=name)
        except BaseException:
            plain.close()
            raise


def seconds(text: str) -> int:
    """Return a time in seconds.

    Raises:
        UsageError: It is none.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        message = f"--expires is {text!r}; write minutes, hours or days, as in 30m, 24h, 7d"
        raise UsageError(message)
    return int(match[1]) * UNITS[match[2]]


async def _find(environment: Environment, part: str) -> str:
    library = unindexed_library(app_paths(environment.variables), clock=SystemClock())
    return (await library.find(part)).session


def _list(server: ShareClient) -> int:
    links = server.get("/api/shares").get("shares")
    rows = [_line(as_object(one)) for one in (links if isinstance(links, list) else [])]
    _ = sys.stdout.write("".join(f"{one}\n" for one in rows) or "no links\n")
    return DONE


def _share(server: ShareClient, session: str, *, expires_s: int, asks: bool) -> int:
    preview = server.post("/api/shares/preview", {"session": session})
    listed = preview.get("redacted")
    kinds = [as_object(one) for one in (listed if isinstance(listed, list) else [])]
    secrets = ", ".join(f"{one.get('count')} {one.get('kind')}" for one in kinds)
    title, size = safe(str(preview.get("title"))), preview.get("size")
    _ = sys.stderr.write(f"{title}: {size} bytes; secrets that are replaced: {secrets or 'none'}\n")
    if asks and not _agrees():
        return FAILED
    body: JsonObject = {
        "session": session,
        "confirm": preview.get("confirm"),
        "expiresInS": expires_s,
    }
    created = server.post("/api/shares", body)
    _ = sys.stdout.write(f"{created.get('url')}\n")
    _ = sys.stderr.write(
        f"It ends at {created.get('expiresAt')}, or with tiller share --revoke {created.get('share')}\n"
    )
    return DONE


def _agrees() -> bool:
    if not sys.stdin.isatty():
        message = "sharing asks first, and there is no terminal to answer on: add --yes"
        raise UsageError(message)
    _ = sys.stderr.write("Share this page? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _line(link: JsonObject) -> str:
    ends = f"{link.get('state')} until {link.get('expiresAt')}"
    return safe(f"{link.get('share')}  {ends}  {link.get('title')}")
