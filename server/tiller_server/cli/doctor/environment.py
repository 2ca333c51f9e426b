"""Checks of the terminal, the installed extras and the access to the network, for `tiller doctor`."""

import locale
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tiller_server.cli.doctor.check import Check
from tiller_server.cli.environment import Environment

EXTRAS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "cli": (("rich", "prompt_toolkit"), "Markdown on the terminal, and tiller chat"),
    "images": (("PIL",), "pictures that are too large are made to fit"),
    "mcp": (("mcp",), "tools of MCP servers"),
    "export": (("markdown_it", "nh3"), "sessions as web pages"),
    "secrets": (("keyring",), "keys in the desktop's keyring"),
}
PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def machine_checks(environment: Environment) -> Iterator[Check]:
    """Look at what surrounds the process."""
    yield _terminal(environment)
    yield _extras()
    yield _network(environment.variables)


def _terminal(environment: Environment) -> Check:
    if not sys.stdout.isatty():
        return Check(name="terminal", status="ok", found="none: output is plain, without colours")
    encoding = locale.getpreferredencoding(do_setlocale=False)
    if encoding.lower().replace("-", "") != "utf8":
        return Check(
            name="terminal",
            status="note",
            found=f"speaks {encoding}: some signs are shown as question marks",
            advice="set a locale of UTF-8: LANG=C.UTF-8",
        )
    if not environment.moves(sys.stdout):
        return Check(name="terminal", status="ok", found="TERM=dumb: output is plain")
    colours = "with colours" if environment.colour(sys.stdout) else "without colours (NO_COLOR)"
    return Check(name="terminal", status="ok", found=f"UTF-8, {colours}")


def _extras() -> Check:
    lacking = {
        name: why
        for name, (modules, why) in EXTRAS.items()
        if any(find_spec(one) is None for one in modules)
    }
    if not lacking:
        return Check(name="extras", status="ok", found=f"all there: {', '.join(EXTRAS)}")
    summary = "; ".join(f"{name} ({why})" for name, why in lacking.items())
    return Check(
        name="extras",
        status="note",
        found=f"not installed: {summary}",
        advice=f"what you want of them: pip install 'tillerd[{','.join(lacking)}]'",
    )


def _network(env: Mapping[str, str]) -> Check:
    for name in CERTIFICATES:
        if (value := env.get(name)) and not Path(value).exists():
            return Check(
                name="network",
                status="missing",
                found=f"{name} names {value!r}, which is not there: no provider can be reached",
                advice=f"correct it, or unset {name}",
            )
    # The value may hold a password.
    proxies = [name for name in PROXIES if env.get(name)]
    summary = f"through a proxy ({', '.join(proxies)})" if proxies else "direct, without a proxy"
    return Check(name="network", status="ok", found=summary)
