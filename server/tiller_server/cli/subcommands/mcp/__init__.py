"""`tiller mcp`: lists, tests, adds, removes and switches MCP servers, whose tools the agent can use."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode
from agent_core.kernel.text import one_line
from agent_core.mcp.definitions import (
    NAME,
    Defined,
    DisabledServer,
    Server,
    ServerFiles,
    project_files,
    shown_way,
)
from agent_core.mcp.port import ServerFailed
from agent_core.resources.paths import AppPaths, app_paths
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, code_of_error, complain
from tiller_server.cli.subcommands.mcp.server_file import (
    add_server,
    disable_server,
    enable_server,
    remove_server,
    server_file,
)
from tiller_server.cli.subcommands.trust import look_at

if TYPE_CHECKING:
    from tiller_server.cli.subcommands.mcp.server_probe import ServerAnswer

EXAMPLE: Final = "example: tiller mcp add docs -- npx -y @acme/docs-mcp     or: tiller mcp add web https://host/mcp"
NAME_WIDTH: Final = 20
STATE_WIDTH: Final = 5
ABOUT_CHARS: Final = 100
"""How much is shown of the description of a tool."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="list|test|add|remove|enable|disable"
    )
    listed = verbs.add_parser("list", help="list the servers of this folder and your own")
    _ = listed.add_argument("--json", action="store_true", help="as JSON")
    tested = verbs.add_parser("test", help="start a server, list its tools and end it")
    _ = tested.add_argument("name", metavar="NAME", help="name of the server")
    _ = tested.add_argument("--json", action="store_true", help="as JSON")
    added = verbs.add_parser("add", help="add a server: a URL, or a command", epilog=EXAMPLE)
    _ = added.add_argument("name", metavar="NAME", help="name of the server")
    _ = added.add_argument(
        "way",
        metavar="URL|COMMAND",
        nargs="+",
        help="its URL, or -- and the command that starts it",
    )
    for name, effect in (("--env", "set a variable of the command"), ("--header", "send a header")):
        _ = added.add_argument(
            name,
            metavar="NAME=VALUE",
            action="append",
            default=[],
            help=f"{effect}; ${{NAME}} takes the value from your environment",
        )
    _ = added.add_argument("--network", action="store_true", help="let the command use the network")
    removed = verbs.add_parser("remove", help="remove a server from its file")
    enabled = verbs.add_parser("enable", help="switch a server on")
    disabled = verbs.add_parser("disable", help="switch a server off; its entry stays in its file")
    for verb in (removed, enabled, disabled):
        _ = verb.add_argument("name", metavar="NAME", help="name of the server")
    for verb in (added, removed, enabled, disabled):
        _ = verb.add_argument(
            "--project", action="store_true", help="in this folder's file instead of your own"
        )


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        paths = app_paths(environment.variables)
        root = Path.cwd()
        match options.verb:
            case "test":
                print_answer = _print_answer_json if options.json else _print_answer
                return anyio.run(_test, options.name, root, environment, print_answer)
            case "list":
                defined = _defined(paths, root, environment)
                return _list_json(defined) if options.json else _list(defined, paths)
            case _:
                return _change(options, server_file(paths, root, in_project=options.project))
    except TillerError as error:
        complain("mcp", str(error))
        return code_of_error(error)


def _change(options: argparse.Namespace, path: Path) -> int:
    name: str = options.name
    match options.verb:
        case "add":
            return _add(options, path)
        case "remove":
            remove_server(path, name)
            return _tell(f"removed {name} ({path})")
        case "enable":
            enable_server(path, name)
            return _tell(f"{name} is on ({path})")
        case _:
            disable_server(path, name)
            return _tell(f"{name} is off ({path})")


async def _test(
    name: str,
    root: Path,
    environment: Environment,
    print_answer: Callable[[str, "ServerAnswer"], None],
) -> int:
    """Start a server as a session of this folder would, and print its tools."""
    from agent_core.assembly import SessionRequest  # noqa: PLC0415 - the other verbs need no session
    from tiller_server.cli.subcommands.mcp.server_probe import probe_server  # noqa: PLC0415 - see above

    request = SessionRequest(workspace=root, env=environment.variables)
    try:
        answer = await probe_server(request, name)
    except ServerFailed as error:
        complain("mcp", f"{name} does not work: {error}")
        return FAILED
    print_answer(name, answer)
    return DONE


def _print_answer(name: str, answer: "ServerAnswer") -> None:
    tools = answer.tools
    count = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    lines = [f"{name}: {one_line(answer.about)}, {count}"]
    width = max((len(tool.name) for tool in tools), default=0)
    lines += [
        f"  {one_line(tool.name):<{width}}  {one_line(tool.description)[:ABOUT_CHARS]}".rstrip()
        for tool in tools
    ]
    for problem in answer.problems:
        _ = sys.stderr.write(f"{one_line(problem)}\n")
    _ = _tell("\n".join(lines))


def _print_answer_json(name: str, answer: "ServerAnswer") -> None:
    tools: list[JsonValue] = [
        {"name": tool.name, "description": tool.description} for tool in answer.tools
    ]
    problems: list[JsonValue] = list(answer.problems)
    row: JsonObject = {"name": name, "about": answer.about, "tools": tools, "problems": problems}
    _ = _tell(encode(row).decode())


def _defined(paths: AppPaths, root: Path, environment: Environment) -> Defined:
    """Return the servers that a session of this folder would have."""
    is_trusted = look_at(paths, root).is_trusted
    files = ServerFiles(
        config=paths.config, root=root, env=environment.variables, is_trusted=lambda: is_trusted
    )
    defined = files.read_now()
    if is_trusted or not any(path.exists() for path in project_files(root)):
        return defined
    problem = f"{root} is not trusted, so the servers that it names are not used; to trust it: tiller trust add"
    return replace(defined, problems=(*defined.problems, problem))


def _list(defined: Defined, paths: AppPaths) -> int:
    for entry in defined.entries:
        state = "on" if isinstance(entry, Server) else "off"
        where = "" if entry.origin == "user" else f"  [{entry.at}]"
        line = f"{entry.name:<{NAME_WIDTH}}{state:<{STATE_WIDTH}}{_way(entry)}{where}"
        _ = sys.stdout.write(f"{line.rstrip()}\n")
    if not defined.entries:
        _ = sys.stderr.write(
            f"no MCP servers; add one: tiller mcp add ({paths.config / 'mcp.json'})\n"
        )
    for problem in defined.problems:
        _ = sys.stderr.write(f"{problem}\n")
    return DONE


def _list_json(defined: Defined) -> int:
    rows: list[JsonValue] = [_row(entry) for entry in defined.entries]
    problems: list[JsonValue] = list(defined.problems)
    _ = sys.stdout.write(encode({"servers": rows, "problems": problems}).decode() + "\n")
    return DONE


def _row(entry: Server | DisabledServer) -> JsonObject:
    return {
        "name": entry.name,
        "origin": entry.origin,
        "file": str(entry.at),
        "way": _way(entry),
        "enabled": isinstance(entry, Server),
    }


def _way(entry: Server | DisabledServer) -> str:
    return shown_way(entry) if isinstance(entry, Server) else entry.way


def _add(options: argparse.Namespace, path: Path) -> int:
    given: list[str] = options.way
    arguments = given[1:] if given[0] == "--" and given[1:] else given
    if NAME.fullmatch(options.name) is None or "__" in options.name:
        message = f"{options.name!r} cannot be the name of a server: use at most 40 letters, digits, '-', '_' and '.', without '__'"
        raise UsageError(message)
    if len(arguments) == 1 and arguments[0].startswith(("http://", "https://")):
        _refuse(
            options.env or options.network, "--env and --network are for servers with a command"
        )
        entry: JsonObject = {"url": arguments[0], **_pairs("headers", options.header, "--header")}
    else:
        _refuse(bool(options.header), "--header is for servers with a URL")
        entry = {"command": arguments[0], **_pairs("env", options.env, "--env")}
        if arguments[1:]:
            entry["args"] = list(arguments[1:])
        if options.network:
            entry["needs"] = ["network"]
    add_server(path, options.name, entry)
    return _tell(f"added {options.name} ({path}); Tiller asks before its tools are used first")


def _refuse(is_wrong: object, message: str) -> None:
    if is_wrong:
        raise UsageError(message)


def _pairs(key: str, given: list[str], option: str) -> JsonObject:
    pairs: dict[str, JsonValue] = {}
    for one in given:
        name, mark, value = one.partition("=")
        if not name or not mark:
            message = f"{option} {one!r}: write NAME=VALUE"
            raise UsageError(message)
        pairs[name] = value
    return {key: pairs} if pairs else {}


def _tell(text: str) -> int:
    _ = sys.stdout.write(f"{text}\n")
    return DONE
