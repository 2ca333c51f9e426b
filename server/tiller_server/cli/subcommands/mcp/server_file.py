"""The file that names MCP servers, changed one server at a time."""

from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ConfigError, UsageError
from agent_core.kernel.json import is_object
from agent_core.resources.load_result import JsonTextError, read_object
from agent_core.resources.paths import AppPaths, project_folder
from agent_core.resources.settings.file import change_settings_now, remove_setting_now

SERVERS: Final = "mcpServers"


def server_file(paths: AppPaths, root: Path, *, in_project: bool) -> Path:
    """Return the user's own file, or that of a folder."""
    return (project_folder(root) if in_project else paths.config) / "mcp.json"


def add_server(path: Path, name: str, entry: JsonObject) -> None:
    """Write a server into a file that has none of that name.

    Raises:
        UsageError: The file names the server already.
        ConfigError: The file cannot be read or changed; it is as it was.
    """
    if name in _named(path):
        message = f"{path} names {name!r} already; remove it first: tiller mcp remove {name}"
        raise UsageError(message)
    path.parent.mkdir(parents=True, exist_ok=True)
    change_settings_now(path, {SERVERS: {name: entry}})


def remove_server(path: Path, name: str) -> None:
    """Remove a server from a file.

    Raises:
        UsageError: The file does not name it.
        ConfigError: The file cannot be read or changed; it is as it was.
    """
    if name not in _named(path):
        message = f"{path} does not name {name!r}; see tiller mcp list"
        raise UsageError(message)
    remove_setting_now(path, (SERVERS, name))


def enable_server(path: Path, name: str) -> None:
    """Switch a server on; the other keys of its entry stay.

    Raises:
        UsageError: The file does not name it.
        ConfigError: The file cannot be read or changed; it is as it was.
    """
    entry = _entry(path, name)
    # Set, not removed: an entry that holds nothing else would go.
    changes: dict[str, JsonValue] = {
        key: value
        for key, value in (("disabled", False), ("enabled", True))
        if key in entry and entry[key] is not value
    }
    if changes:
        change_settings_now(path, {SERVERS: {name: changes}})


def disable_server(path: Path, name: str) -> None:
    """Switch a server off; the other keys of its entry stay.

    Raises:
        UsageError: The file does not name it.
        ConfigError: The file cannot be read or changed; it is as it was.
    """
    _ = _entry(path, name)
    change_settings_now(path, {SERVERS: {name: {"disabled": True}}})


def _entry(path: Path, name: str) -> JsonObject:
    servers = _named(path)
    if name not in servers:
        message = f"{path} does not name {name!r}; see tiller mcp list"
        raise UsageError(message)
    entry = servers[name]
    if not is_object(entry):
        message = f"{path}: the entry of {name!r} is to be an object; repair it first: nothing was changed"
        raise ConfigError(message, path=path)
    return entry


def _named(path: Path) -> JsonObject:
    try:
        servers = read_object(path.read_text("utf-8-sig")).get(SERVERS, {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError, JsonTextError) as error:
        message = f"{path} cannot be read ({error}); repair it first: nothing was changed"
        raise ConfigError(message, path=path) from error
    return servers if is_object(servers) else {}
