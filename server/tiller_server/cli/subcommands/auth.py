"""`tiller auth`: signs in to providers and out, and shows the state of each."""

import argparse
import sys
import webbrowser
from difflib import get_close_matches
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel import JsonValue, SystemClock
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode
from agent_core.providers.auth.oauth import (
    InKeyring,
    LoginFailed,
    StoredKey,
    way_of,
)
from agent_core.providers.auth.oauth_device import DeviceCode
from agent_core.providers.auth.store import AuthStore, KeyringMissing, keep_in_keyring
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths, app_paths
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import FAILED, code_of_error, complain
from tiller_server.cli.model_registry import open_registry
from tiller_server.cli.sign_in import key_test_note, literal_key, log_in, read_key

EXAMPLE: Final = (
    "example: tiller auth login openrouter     or: tiller auth login openai --key < key.txt"
)
NAME_WIDTH: Final = 20
STATE_WIDTH: Final = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="login|logout|status")
    login = verbs.add_parser("login", help="store a key, or sign in with a browser", epilog=EXAMPLE)
    _ = login.add_argument(
        "provider", nargs="?", metavar="PROVIDER", help="the provider; see tiller auth status"
    )
    _ = login.add_argument(
        "--key",
        action="store_true",
        help="use a key: from standard input, or typed at the terminal",
    )
    _ = login.add_argument(
        "--keyring", action="store_true", help="store the key in the system's keyring"
    )
    logout = verbs.add_parser(
        "logout",
        help="remove the stored key or login",
        epilog="example: tiller auth logout openrouter",
    )
    _ = logout.add_argument("provider", metavar="PROVIDER")
    status = verbs.add_parser(
        "status",
        help="show which providers you are signed in to",
        epilog="example: tiller auth status --json",
    )
    _ = status.add_argument("--json", action="store_true", help="as JSON")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        paths = app_paths(environment.variables)
        return anyio.run(_run, options, environment, paths)
    except TillerError as error:
        complain("auth", str(error))
        return code_of_error(error)
    except (LoginFailed, KeyringMissing) as error:
        complain("auth", str(error))
        return FAILED


async def _run(options: argparse.Namespace, environment: Environment, paths: AppPaths) -> int:
    store = AuthStore(paths.auth, clock=SystemClock())
    async with open_registry(paths, environment) as registry:
        match options.verb:
            case "login":
                return await _login(options, registry, store)
            case "logout":
                return await _logout(options.provider, registry, store)
            case _:
                return _status_json(registry) if options.json else _status(registry)


async def _login(options: argparse.Namespace, registry: ModelRegistry, store: AuthStore) -> int:
    provider = _chosen(options.provider, registry)
    oauth = provider.oauth
    if oauth is not None and not options.key and not options.keyring:
        entry = await log_in(oauth, show_url=_show_url, show_code=_show_code)
        await store.put(provider.id, entry)
        return _write_line(f"Signed in to {provider.name}. Stored in {store.path}")
    key = await anyio.to_thread.run_sync(read_key, f"Key of {provider.name} (hidden): ", EXAMPLE)
    note = await key_test_note(provider, key)
    if note:
        _ = sys.stderr.write(f"{note}\n")
    if options.keyring:
        await keep_in_keyring(provider.id, key)
        await store.put(provider.id, InKeyring())
        return _write_line(f"Stored the key of {provider.name} in the system's keyring")
    await store.put(provider.id, StoredKey(key=literal_key(key)))
    return _write_line(f"Stored the key of {provider.name} in {store.path}")


async def _logout(name: str, registry: ModelRegistry, store: AuthStore) -> int:
    await store.load()
    if store.entry(name) is None:
        _ = _chosen(name, registry)  # a name that nobody has is told as such
    if not await store.remove(name):
        source = registry.key_source(name)
        also = f". Its key comes from: {source}" if source else ""
        return _write_line(f"Nothing is stored for {name}{also}")
    return _write_line(f"Signed out of {name}")


def _status(registry: ModelRegistry) -> int:
    for name, one in registry.states().items():
        state = "ready" if one.advice is None else "no key"
        # What is there and does not work needs more words than what is not there.
        what = (one.advice or one.source) if one.source else _ways_in(one.provider)
        _ = sys.stdout.write(f"{name:<{NAME_WIDTH}}{state:<{STATE_WIDTH}}{what}\n")
    for problem in registry.problems:
        _ = sys.stderr.write(f"{problem}\n")
    return 0


def _status_json(registry: ModelRegistry) -> int:
    rows: list[JsonValue] = [
        {
            "id": name,
            "name": one.provider.name,
            "auth": one.auth,
            "source": one.source,
            "advice": one.advice,
            "login": _way_in(one.provider),
        }
        for name, one in registry.states().items()
    ]
    problems: list[JsonValue] = [str(problem) for problem in registry.problems]
    _ = sys.stdout.write(encode({"providers": rows, "problems": problems}).decode() + "\n")
    return 0


def _ways_in(provider: ProviderInfo) -> str:
    names = (*provider.key_variables, *provider.bearer_variables)
    return " or ".join((f"tiller auth login {provider.id}", *names))


def _way_in(provider: ProviderInfo) -> str:
    return "key" if provider.oauth is None else way_of(provider.oauth)


def _chosen(name: str | None, registry: ModelRegistry) -> ProviderInfo:
    table = {
        provider.id: provider for provider in registry.providers() if provider.api != "embedded"
    }
    if name is None:
        message = f"name the provider: {', '.join(table)}. {EXAMPLE}"
        raise UsageError(message)
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=2, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "add it to models.json, or install the extension that brings it"
    )
    message = f"unknown provider {name!r}; {hint}"
    raise UsageError(message)


def _show_url(url: str) -> None:
    _ = sys.stderr.write(f"Sign in with a browser on this machine:\n\n  {url}\n\n")
    sys.stderr.flush()
    if sys.stderr.isatty():
        _ = webbrowser.open(url)


def _show_code(device: DeviceCode) -> None:
    _ = sys.stderr.write(f"Open {device.url} and enter the code {device.code}\n")
    sys.stderr.flush()


def _write_line(text: str) -> int:
    _ = sys.stdout.write(f"{text}\n")
    return 0
