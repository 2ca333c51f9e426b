"""`tiller config`: where the configuration lies, and where each value came from."""

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import encode, is_object
from agent_core.resources.paths import AppPaths, app_paths, project_folder
from agent_core.resources.settings import Layer, Settings, load_settings_now
from server.cli.environment import Commands, Environment
from server.cli.exits import code_of_error, complain
from server.cli.trust import look_at

EXAMPLE: Final = "example: tiller config show"
WIDTH: Final = 34
SECRET: Final = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
HIDDEN: Final = "(hidden)"
SCHEMAS: Final = ("settings", "models")


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "config", help="where settings lie and what they are", description=__doc__, epilog=EXAMPLE
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="show|path|schema")
    show = verbs.add_parser("show", help="every setting in force, with the source of its value")
    _ = show.add_argument("--json", action="store_true", help="as JSON")
    _ = show.add_argument(
        "--workspace", metavar="D", type=Path, help="with the settings of a trusted workspace"
    )
    _ = verbs.add_parser("path", help="the folders and files that are used")
    schema = verbs.add_parser("schema", help="the JSON Schema of a file, for your editor")
    _ = schema.add_argument("name", nargs="?", choices=SCHEMAS, default=SCHEMAS[0], help="the file")


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
        case _:
            return _show(options, paths)


def _schema(name: str) -> int:
    # Only this verb needs what it comes from.
    from agent_core.assembly.config_schemas import shipped  # noqa: PLC0415 - see above

    _ = sys.stdout.write(shipped(name))
    return 0


def _show(options: argparse.Namespace, paths: AppPaths) -> int:
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
    return _json(settings) if options.json else _text(settings, files)


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


def _text(settings: Settings, files: Mapping[str, Path]) -> int:
    values = settings.values.as_json()
    for key, source in settings.sources.items():
        shown = encode(_shown(values, key)).decode()
        where = f"{source} ({files[source]})" if source in files else source
        _ = sys.stdout.write(f"{key:<{WIDTH}}{shown:<24}{where}\n")
    for problem in settings.problems:
        _ = sys.stderr.write(f"{problem}\n")
    return 0


def _json(settings: Settings) -> int:
    values = settings.values.as_json()
    rows: dict[str, JsonValue] = {
        key: {"value": _shown(values, key), "source": source}
        for key, source in settings.sources.items()
    }
    problems: list[JsonValue] = [str(problem) for problem in settings.problems]
    _ = sys.stdout.write(encode({"settings": rows, "problems": problems}).decode() + "\n")
    return 0


def _shown(values: JsonValue, key: str) -> JsonValue:
    """Give a value; what looks like a secret (an unknown key, or one in the wrong file) is hidden."""
    value = _at(values, key)
    return HIDDEN if isinstance(value, str) and SECRET.search(key) else value


def _at(values: JsonValue, key: str) -> JsonValue:
    here = values
    for part in key.split("."):
        here = here.get(part) if is_object(here) else None
    return here
