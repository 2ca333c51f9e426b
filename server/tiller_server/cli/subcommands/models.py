"""`tiller models`: list the available models, show the facts known of one, choose the default, add a server."""

import argparse
import sys
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import encode
from agent_core.providers.catalog.catalogue import FoundServer, builtin_providers
from agent_core.providers.catalog.field_sources import value_sources
from agent_core.providers.model import ModelInfo
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings.file import change_settings_now
from agent_core.resources.settings.layers import Layer, load_settings
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import code_of_error, complain
from tiller_server.cli.model_endpoint import add_endpoint
from tiller_server.cli.model_registry import open_registry
from tiller_server.cli.model_table import as_json, described, table
from tiller_server.cli.sign_in import read_key

EXAMPLE: Final = "example: tiller models use anthropic/claude-sonnet-5-5:high"
KEY_EXAMPLE: Final = "example: tiller models add https://host/v1 --key < key.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="verb", metavar="list|show|use|add")
    listing = verbs.add_parser("list", help="the models that can be used", epilog=EXAMPLE)
    for one in (parser, listing):
        _ = one.add_argument("--json", action="store_true", help="as JSON")
        _ = one.add_argument("--all", action="store_true", help="also what has no key")
    show = verbs.add_parser("show", help="everything that is known of one", epilog=EXAMPLE)
    _ = show.add_argument("model", metavar="MODEL", help="a name, part of it, or a pattern")
    _ = show.add_argument("--json", action="store_true", help="as JSON")
    use = verbs.add_parser("use", help="make one the default in settings.json", epilog=EXAMPLE)
    _ = use.add_argument("model", metavar="MODEL", help="MODEL:LEVEL also sets how hard it thinks")

    add = verbs.add_parser(
        "add",
        help="add a server that speaks OpenAI's chat wire",
        epilog="example: tiller models add http://127.0.0.1:8000/v1",
    )
    _ = add.add_argument("url", metavar="URL", help="its base URL, such as https://host/v1")
    _ = add.add_argument("--id", metavar="ID", help="name of the provider [made from the host]")
    _ = add.add_argument(
        "--key",
        action="store_true",
        help="use a key: from standard input, or typed at the terminal",
    )
    _ = add.add_argument("--json", action="store_true", help="as JSON")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        paths = app_paths(environment.variables)
        return anyio.run(_run, options, environment, paths)
    except TillerError as error:
        complain("models", str(error))
        return code_of_error(error)


async def _run(options: argparse.Namespace, environment: Environment, paths: AppPaths) -> int:
    if options.verb == "add":
        return await _add(options, paths)
    async with open_registry(paths, environment) as registry:
        match options.verb:
            case "show":
                return _show(options, registry, environment)
            case "use":
                return await _use(options.model, registry, paths)
            case _:
                return await _list(options, registry, paths)


async def _list(options: argparse.Namespace, registry: ModelRegistry, paths: AppPaths) -> int:
    _ = await registry.refresh(servers="find")
    servers = registry.servers
    default = await _default(registry, paths)
    listed = registry.models()
    wanted = [one for one in listed if options.all or registry.auth(one.provider) == "ok"]
    if options.json:
        return _list_json(wanted, registry, servers, default)
    for line in table(wanted, registry, default=default):
        _ = sys.stdout.write(f"{line}\n")
    hidden = len(listed) - len(wanted)
    if hidden:
        more = f"{hidden} more need a key: tiller models list --all, tiller auth login PROVIDER"
        _ = sys.stderr.write(f"{more}\n")
    _tell_problems(registry)
    return 0


def _list_json(
    models: list[ModelInfo],
    registry: ModelRegistry,
    servers: tuple[FoundServer, ...],
    default: str | None,
) -> int:
    rows: list[JsonValue] = [as_json(model, registry) for model in models]
    found: list[JsonValue] = [server.provider for server in servers]
    problems: list[JsonValue] = [str(problem) for problem in registry.problems]
    whole: JsonValue = {
        "default": default,
        "models": rows,
        "localServers": found,
        "problems": problems,
    }
    _ = sys.stdout.write(encode(whole).decode() + "\n")
    return 0


def _show(options: argparse.Namespace, registry: ModelRegistry, environment: Environment) -> int:
    named = registry.resolve(options.model)
    sources = value_sources(named.model, builtin_providers(), environment.variables)
    if options.json:
        body = {**as_json(named.model, registry), "sources": dict(sources)}
        _ = sys.stdout.write(encode(body).decode() + "\n")
        return 0
    for line in described(named.model, registry, sources):
        _ = sys.stdout.write(f"{line}\n")
    _tell_problems(registry)
    return 0


async def _use(ref: str, registry: ModelRegistry, paths: AppPaths) -> int:
    named = registry.resolve(ref)
    # What cannot be asked is told before it is written down.
    model = registry.usable(named.model.ref)
    changes: dict[str, JsonValue] = {"defaultProvider": model.provider, "defaultModel": model.id}
    if named.thinking is not None:
        changes["defaultThinkingLevel"] = named.thinking
    await anyio.to_thread.run_sync(change_settings_now, paths.settings, changes)
    _ = sys.stdout.write(f"{named.ref} is the default now ({paths.settings})\n")
    return 0


async def _add(options: argparse.Namespace, paths: AppPaths) -> int:
    asked = f"Key of {options.url} (hidden): "
    key = await anyio.to_thread.run_sync(read_key, asked, KEY_EXAMPLE) if options.key else None
    provider, models = await add_endpoint(paths, options.url, provider=options.id, key=key)
    if options.json:
        body: JsonValue = {"provider": provider, "models": list(models)}
        _ = sys.stdout.write(encode(body).decode() + "\n")
        return 0
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    _ = sys.stdout.write(f"added {provider} with {count} ({paths.models})\n")
    _ = sys.stdout.write(f"make one the default: tiller models use {provider}/{models[0]}\n")
    return 0


async def _default(registry: ModelRegistry, paths: AppPaths) -> str | None:
    settings = await load_settings((Layer(name="user", content=paths.settings),))
    values = settings.values
    wished = (
        f"{values.default_provider}/{values.default_model}"
        if values.default_provider and values.default_model
        else values.default_model or None
    )
    chosen = registry.choose(settings=wished, provider=values.default_provider or None).model
    return None if chosen is None else chosen.ref


def _tell_problems(registry: ModelRegistry) -> None:
    for problem in registry.problems:
        _ = sys.stderr.write(f"{problem}\n")
