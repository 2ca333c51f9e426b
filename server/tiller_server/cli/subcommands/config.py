"""`tiller config`: where the configuration lies, and where each value came from."""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from agent_core.events import PermissionMode
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import ConfigError, UsageError
from agent_core.kernel.json import encode, is_object
from agent_core.resources.paths import AppPaths, app_paths, project_folder
from agent_core.resources.settings.file import change_settings_now
from agent_core.resources.settings.layers import Layer, Settings, load_settings_now
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import code_of_error, complain
from tiller_server.cli.subcommands.trust import look_at

EXAMPLE: Final = "example: tiller config show"
WIDTH: Final = 34
SECRET: Final = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
HIDDEN: Final = "(hidden)"
SCHEMAS: Final = ("settings", "models", "mcp", "policy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="show|path|schema|mode")
    show = verbs.add_parser("show", help="every setting in force, with the source of its value")
    _ = show.add_argument("--json", action="store_true", help="as JSON")
    _ = show.add_argument(
        "--workspace", metavar="D", type=Path, help="with the settings of a trusted workspace"
    )
    _ = verbs.add_parser("path", help="the folders and files that are used")
    schema = verbs.add_parser("schema", help="the JSON Schema of a file, for your editor")
    _ = schema.add_argument("name", nargs="?", choices=SCHEMAS, default=SCHEMAS[0], help="the file")
    mode = verbs.add_parser("mode", help="what may run unasked, in every folder: your own setting")
    _ = mode.add_argument("name", choices=get_args(PermissionMode), help="the permission mode")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        paths = app_paths(environment.variables)
    except UsageError as error:
        complain("config", str(error))
        return code_of_error(error)
    match options.verb:
        case "path":
            return _path(paths)
        case "schema":
            return _schema(options.name)
        case "mode":
            return _mode(options.name, paths)
        case _:
            return _show(options, paths, environment)


def _mode(name: str, paths: AppPaths) -> int:
    try:
        change_settings_now(paths.settings, {"permission": {"mode": name}})
    except ConfigError as error:
        complain("config", str(error))
        return code_of_error(error)
    _ = sys.stdout.write(f"permission.mode is {name!r} now ({paths.settings})\n")
    return 0


def _schema(name: str) -> int:
    # Only this verb needs what it comes from.
    from agent_core.assembly.config_schemas import shipped  # noqa: PLC0415 - see above

    _ = sys.stdout.write(shipped(name))
    return 0


def _show(options: argparse.Namespace, paths: AppPaths, environment: Environment) -> int:
    # Only this verb reads the other files.
    from agent_core.assembly.config import config_problems  # noqa: PLC0415 - see above

    files: dict[str, Path] = {"user": paths.settings}
    folder = None if options.workspace is None else options.workspace.resolve()
    if folder is not None:
        files["project"] = project_folder(folder) / "settings.json"
    layers = [Layer(name="user", content=paths.settings)]
    is_trusted = folder is not None and look_at(paths, folder).is_trusted
    if folder is not None and is_trusted:
        layers.append(Layer(name="project", content=files["project"]))
    settings = load_settings_now(layers, project_trusted=is_trusted)
    if folder is not None and not is_trusted:
        _ = sys.stderr.write(f"{folder} is not trusted: its settings do not count\n")
    problems = [
        *map(str, settings.problems),
        *config_problems(paths, env=environment.variables),
    ]
    if options.json:
        return _json(settings, problems)
    return _text(settings, files, problems)


def _path(paths: AppPaths) -> int:
    rows = {
        "config": paths.config,
        "settings": paths.settings,
        "models": paths.models,
        "auth": paths.auth,
        "data": paths.data,
        "sessions": paths.sessions,
        "runtime": paths.runtime,
    }
    for name, path in rows.items():
        note = "" if path.exists() else "  (not there yet)"
        _ = sys.stdout.write(f"{name:<10}{path}{note}\n")
    return 0


def _text(settings: Settings, files: Mapping[str, Path], problems: Sequence[str]) -> int:
    values = settings.values.as_json()
    for key, source in settings.sources.items():
        shown = encode(_shown(values, key)).decode()
        where = f"{source} ({files[source]})" if source in files else source
        _ = sys.stdout.write(f"{key:<{WIDTH}}{shown:<24}{where}\n")
    for problem in problems:
        _ = sys.stderr.write(f"{problem}\n")
    return 0


def _json(settings: Settings, problems: Sequence[str]) -> int:
    values = settings.values.as_json()
    rows: dict[str, JsonValue] = {
        key: {"value": _shown(values, key), "source": source}
        for key, source in settings.sources.items()
    }
    problem_rows: list[JsonValue] = list(problems)
    _ = sys.stdout.write(encode({"settings": rows, "problems": problem_rows}).decode() + "\n")
    return 0


def _shown(values: JsonValue, key: str) -> JsonValue:
    """Return the value of a setting; a text is hidden when its key looks like that of a secret."""
    value = _at(values, key)
    return HIDDEN if isinstance(value, str) and SECRET.search(key) else value


def _at(values: JsonValue, key: str) -> JsonValue:
    here = values
    for part in key.split("."):
        here = here.get(part) if is_object(here) else None
    return here
