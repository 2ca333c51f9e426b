"""`tiller web`: your sessions in a browser. Runs go on when it ends."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import UsageError
from agent_core.resources.paths import app_paths
from tiller_server.cli.command_exit import CODES, code_of
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, INTERRUPTED, complain
from tiller_server.cli.shared_session.daemon_connector import daemon_connector
from tiller_server.daemon import paths
from tiller_server.daemon.errors import CannotServe
from tiller_server.daemon.private_dir import private_folder
from tiller_server.process.memory_privacy import forbid_ptrace

EXAMPLE: Final = (
    "examples: tiller web · tiller web --role observer · tiller web --no-open --port 7500"
)
NEEDED: Final = ("starlette", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    _ = parser.add_argument(
        "--port", type=int, metavar="N", help="port [7433, or any that is free]"
    )
    _ = parser.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS[:PORT]",
        help="address of this machine; one that others reach needs a certificate or a proxy [%(default)s]",
    )
    _ = parser.add_argument(
        "--tls-cert", type=Path, metavar="FILE", help="serve HTTPS with this certificate (PEM)"
    )
    _ = parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")
    _ = parser.add_argument(
        "--behind-proxy", metavar="HOST", help="public host of a proxy that serves HTTPS"
    )
    _ = parser.add_argument(
        "--role",
        choices=("observer", "approver", "operator"),
        default="operator",
        help="read only; also answer and cancel; also prompt and change [%(default)s]",
    )
    _ = parser.add_argument("--no-open", action="store_true", help="do not start the browser")
    _ = parser.add_argument("--qr", action="store_true", help="show the URL as a QR code too")
    _ = parser.add_argument("--verbose", action="store_true", help="log requests to standard error")
    _ = parser.add_argument("--debug", action="store_true", help="show where an error came from")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    forbid_ptrace(environment.variables)
    if sys.platform == "win32":
        complain("web", "it needs the daemon, and there is none on Windows")
        return FAILED
    return code_of("web", lambda: _serve(options, environment.variables), debug=options.debug)


def _check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        message = f"{' and '.join(missing)} is not installed; run pip install 'tillerd[web]'"
        raise UsageError(message)


def _runtime_folder(env: Mapping[str, str]) -> Path:
    try:
        return private_folder(paths.runtime_folder(env))
    except (CannotServe, ValueError) as error:
        raise UsageError(str(error)) from error


def _serve(options: argparse.Namespace, env: Mapping[str, str]) -> int:
    _check_installed()
    if options.verbose:
        logging.getLogger("tiller_server.web").setLevel("INFO")
    from tiller_server.web.listen_address import listen, read_listen_address  # noqa: PLC0415 - as below
    from tiller_server.web.options import WebOptions  # noqa: PLC0415 - as below
    from tiller_server.web.server import (  # noqa: PLC0415 - only this command loads the extra
        WebServer,
    )

    listen_address = read_listen_address(
        options.listen,
        port=options.port,
        cert=options.tls_cert,
        key=options.tls_key,
        proxy=options.behind_proxy,
    )

    root, folder = Path.cwd(), _runtime_folder(env)
    listener = listen(listen_address)

    suffix = "" if listen_address.certificate is None else ".https"

    async def run() -> int:
        server = WebServer(
            listener,
            daemon_connector(env, root),
            WebOptions(
                role=options.role,
                root=root,
                paths=app_paths(env),
                env=env,
                token_file=lambda port: folder / f"web-{port}{suffix}.token",
            ),
            listen_address=listen_address,
            show_code=_show_code,
            clock=SystemClock(),
        )
        _show(server.url, options)
        await server.run_web()
        return DONE if server.ended_by is None else CODES[server.ended_by]

    try:
        return asyncio.run(run())
    except KeyboardInterrupt:
        return INTERRUPTED


def _show(url: str, options: argparse.Namespace) -> None:
    _ = sys.stdout.write(f"{url}\n")
    if options.qr:
        import segno  # noqa: PLC0415 - only here

        segno.make(url, micro=False).terminal(sys.stdout, compact=True)
    sys.stdout.flush()
    if not options.no_open:
        import webbrowser  # noqa: PLC0415 - only here

        _ = webbrowser.open(url)


def _show_code(code: str) -> None:
    _ = sys.stdout.write(f"Code for one login, valid for ten minutes: {code}\n")
    sys.stdout.flush()
