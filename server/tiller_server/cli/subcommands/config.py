"""`tiller config`: shows and changes settings, and shows where they are stored."""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, get_args

from agent_core.events import PermissionMode
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import ConfigError, UsageError
from agent_core.kernel.json import decode, encode, is_object
from agent_core.resources.paths import AppPaths, app_paths, project_folder
from agent_core.resources.settings.file import change_settings_now, remove_setting_now
from agent_core.resources.settings.layers import Layer, Settings, load_settings_now
from tiller_server.cli.command_line import did_you_mean
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import code_of_error, complain
from tiller_server.cli.subcommands.trust import look_at

EXAMPLE: Final = "example: tiller config show"
SET_EXAMPLE: Final = "example: tiller config set budgets.usd 2"
WIDTH: Final = 34
SECRET: Final = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
HIDDEN: Final = "(hidden)"
SCHEMAS: Final = ("settings", "models", "mcp", "policy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="show|get|set|unset|path|schema|mode"
    )
    show = verbs.add_parser("show", help="show every setting and the source of its value")
    _ = show.add_argument("--json", action="store_true", help="as JSON")
    _ = show.add_argument(
        "--workspace", metavar="D", type=Path, help="with the settings of a trusted workspace"
    )
    got = verbs.add_parser("get", help="show the value of one of your settings")
    changed = verbs.add_parser("set", help="change one of your settings", epilog=SET_EXAMPLE)
    removed = verbs.add_parser("unset", help="remove one of your settings")
    for one in (got, changed, removed):
        _ = one.add_argument("key", metavar="KEY", help="as `tiller config show` names it")
    _ = changed.add_argument("value", metavar="VALUE", help="JSON, or text without quotes")
    _ = verbs.add_parser("path", help="show the folders and files in use")
    schema = verbs.add_parser("schema", help="print the JSON Schema of a file, for your editor")
    _ = schema.add_argument("name", nargs="?", choices=SCHEMAS, default=SCHEMAS[0], help="the file")
    mode = verbs.add_parser("mode", help="set your permission mode for every folder")
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
        case "show":
            return _show(options, paths, environment)
        case _:
            return _change(partial(_of_key, options, paths))


def _change(work: Callable[[], str]) -> int:
    """Run a change and print what it returns."""
    try:
        text = work()
    except (ConfigError, UsageError) as error:
        complain("config", str(error))
        return code_of_error(error)
    _ = sys.stdout.write(f"{text}\n")
    return 0


def _of_key(options: argparse.Namespace, paths: AppPaths) -> str:
    match options.verb:
        case "mode":
            return _set("permission.mode", options.name, paths)
        case "set":
            return _set(options.key, options.value, paths)
        case "unset":
            return _unset(options.key, paths)
        case _:
            return _get(options.key, paths)


def _set(key: str, text: str, paths: AppPaths) -> str:
    """Set a value that the settings accept.

    Raises:
        UsageError: There is no such setting, or it cannot have this value.
        ConfigError: The file cannot be changed.
    """
    value = _value(text)
    nested: JsonValue = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    if is_object(nested):
        tried = load_settings_now((Layer(name="user", content=nested),))
        if tried.problems:
            message = f"nothing was changed: {tried.problems[0].message}"
            raise UsageError(message)
        change_settings_now(paths.settings, nested)
    return f"{key} is now {encode(value).decode()} ({paths.settings})"


def _value(text: str) -> JsonValue:
    """Return the value that a word of the command line means: JSON, else the text itself."""
    try:
        return decode(text.encode())
    except ValueError:
        return text


def _unset(key: str, paths: AppPaths) -> str:
    _ = _own(key, paths)
    remove_setting_now(paths.settings, key.split("."))
    default = load_settings_now((Layer(name="user", content=paths.settings),)).values.as_json()
    return f"{key} is no longer set; the value in force is {encode(_shown(default, key)).decode()}"


def _get(key: str, paths: AppPaths) -> str:
    return encode(_shown(_own(key, paths).values.as_json(), key)).decode()


def _own(key: str, paths: AppPaths) -> Settings:
    """Return the user's settings.

    Raises:
        UsageError: They have no such key.
    """
    settings = load_settings_now((Layer(name="user", content=paths.settings),))
    if key not in settings.sources and not any(
        one.startswith(f"{key}.") for one in settings.sources
    ):
        message = f"unknown setting {key!r}{did_you_mean(key, settings.sources)}"
        raise UsageError(message)
    return settings


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
        note = "" if path.exists() else "  (does not exist yet)"
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
    # The name of a variable of the environment is none.
    is_hidden = SECRET.search(key) and not key.endswith("Variable")
    return HIDDEN if isinstance(value, str) and is_hidden else value


def _at(values: JsonValue, key: str) -> JsonValue:
    here = values
    for part in key.split("."):
        here = here.get(part) if is_object(here) else None
    return here
