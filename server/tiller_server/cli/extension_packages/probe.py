"""The process that loads an extension package and writes its faults to a file.

`python -m tiller_server.cli.extension_packages.probe NAME ENTRY LIMIT RESULT`. Standard output belongs to the code of the
package.
"""

import inspect
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import msgspec

from agent_core.extensions.api import EventBus, ExtensionApi, ExtensionTool
from agent_core.extensions.discovery import DiscoveredExtension
from agent_core.extensions.loader import LoadedExtension, load
from agent_core.extensions.registry import RESERVED_KEYS, Registrations, extension_models
from agent_core.extensions.source_places import place_in
from agent_core.kernel.errors import ExtensionBroken
from agent_core.tools.presets import PRESETS
from tiller_server.cli.chat.slash_commands import COMMANDS
from tiller_server.cli.extension_packages.check import ProbeResult
from tiller_server.cli.extension_packages.project import PackageFault


def _ignore(*_: object) -> None:
    """Leave out the bus: no event is published while a package is checked."""


async def _probe(name: str, entry: Path, limit_s: float) -> ProbeResult:
    bus = EventBus(failed=_ignore, later=_ignore)
    started_s = time.monotonic()
    try:
        loaded = await load(
            DiscoveredExtension(name=name, origin="command line", entry=entry),
            make_api=lambda scope, registered: ExtensionApi(
                scope, registered, bus=bus, flags=lambda _: None, changed=lambda: None
            ),
            new_id=lambda: "check",
        )
    except ExtensionBroken as error:
        file, line = _place(error, entry)
        return ProbeResult(faults=(PackageFault(message=str(error), file=file, line=line),))
    start_s = time.monotonic() - started_s
    faults = [*_faults(loaded, entry)]
    if start_s > limit_s:
        message = f"it took {start_s:.1f} s to load, and the limit is {limit_s:g} s; import and compute at first use"
        faults.append(PackageFault(message=message, file=str(entry)))
    return ProbeResult(faults=tuple(faults), parts=_parts(loaded.registered), start_s=start_s)


def _parts(registered: Registrations) -> dict[str, tuple[str, ...]]:
    parts: dict[str, Sequence[str]] = {
        "tools": [*registered.tools],
        "commands": [*registered.commands],
        "hooks": [point.__name__ for point, _ in registered.hooks],
        "keys": [*registered.shortcuts],
        "flags": [*registered.flags],
        "providers": [*registered.providers],
        "message renderers": [*registered.renderers],
    }
    return {kind: tuple(sorted(set(names))) for kind, names in parts.items() if names}


def _place(error: BaseException, entry: Path) -> tuple[str, int]:
    """Return the file and the line of the package's code at which an error was raised."""
    place = (str(entry), 0)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SyntaxError) and cause.filename:
            place = (cause.filename, cause.lineno or 0)
        place = place_in(cause, str(entry.parent)) or place
        cause = cause.__cause__
    return place


def _faults(loaded: LoadedExtension, entry: Path) -> Iterator[PackageFault]:
    registered = loaded.registered
    for name, tool in registered.tools.items():
        file, line = (
            _definition(tool.function, entry)
            if isinstance(tool, ExtensionTool)
            else (str(entry), 0)
        )
        parameters = tool.spec.parameters
        if parameters.get("type") != "object" or not isinstance(
            parameters.get("properties", {}), dict
        ):
            message = f'the schema of the tool {name!r} is none of an object; use {{"type": "object", "properties": …}}'
            yield PackageFault(message=message, file=file, line=line)
        if any(name in preset for preset in PRESETS.values()):
            message = f"the tool {name!r} replaces the built-in tool of that name"
            yield PackageFault(message=message, file=file, line=line, level="warning")
    for name, command in registered.commands.items():
        if name in COMMANDS or f"/{name}" in COMMANDS:
            file, line = _definition(command.run, entry)
            message = f"the command {name!r} is taken by `tiller chat`; choose another name"
            yield PackageFault(message=message, file=file, line=line)
    for key, shortcut in registered.shortcuts.items():
        if key in RESERVED_KEYS:
            file, line = _definition(shortcut.run, entry)
            message = (
                f"the key {key!r} is reserved for the terminal and the clients; choose another one"
            )
            yield PackageFault(message=message, file=file, line=line)
    for problem in extension_models(registered.providers.values())[1]:
        yield PackageFault(message=str(problem), file=str(entry))
    if not _parts(registered):
        yield PackageFault(message="it registers nothing", file=str(entry), level="warning")


def _definition(function: object, entry: Path) -> tuple[str, int]:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return (code.co_filename, code.co_firstlineno) if code is not None else (str(entry), 0)


def main(arguments: Sequence[str]) -> None:
    """Check the package of the arguments and write the result to its file."""
    name, entry, limit_s, result = arguments
    outcome = anyio.run(_probe, name, Path(entry), float(limit_s))
    _ = Path(result).write_bytes(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main(sys.argv[1:])
