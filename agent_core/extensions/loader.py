"""Loads one extension: imports its code apart from everything else, and lets it register what it brings."""

import inspect
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Final

import anyio

from agent_core.extensions.discovery import (
    PREFIX,
    DiscoveredExtension,
    InstalledEntryPoint,
    forget,
    import_apart,
)
from agent_core.extensions.registry import Registrations
from agent_core.extensions.scope import ExtensionScope
from agent_core.hooks.calls import HookCall, OutOfTime, Threads, within_limit
from agent_core.kernel.errors import ExtensionBroken, TillerError
from agent_core.kernel.text import readable
from agent_core.kernel.values import Value

LOAD_LIMIT_S: Final = 10.0
"""How long an extension may take to be imported and to register."""
FUNCTION: Final = "extension"
Factory = Callable[..., object]
"""The function `extension`: takes an `ExtensionApi`; gives nothing, or what is awaited."""
MakeApi = Callable[[ExtensionScope, Registrations], object]

log = logging.getLogger(__name__)


class LoadedExtension(Value, frozen=True, kw_only=True):
    """An extension that registered itself."""

    found: DiscoveredExtension
    scope: ExtensionScope
    registered: Registrations
    module: str
    """The name of its module; empty for code that is not ours to forget."""

    def end(self, why: str) -> None:
        """Unload the extension: contexts handed to it are stale from now on."""
        self.scope.life.end(why)
        if self.module:
            forget(self.module)


async def load(
    found: DiscoveredExtension,
    *,
    make_api: MakeApi,
    new_id: Callable[[], str],
    limit_s: float = LOAD_LIMIT_S,
) -> LoadedExtension:
    """Load an extension. Its synchronous code runs in a thread; code that does not end within the limit is abandoned.

    Args:
        found: The extension.
        make_api: Creates the argument of its function.
        new_id: Returns an id that is unique per load.
        limit_s: Time limit in seconds.

    Raises:
        ExtensionBroken: It cannot be loaded; the message has the reason, and the cause is the exception of its code.
    """
    module = f"{PREFIX}{new_id().replace('-', '')}" if found.path is not None else ""
    scope = ExtensionScope(found.name)
    registered = Registrations(extension=found.name)
    api = make_api(scope, registered)
    threads = Threads()
    call = HookCall(owner=found.name, point="loading", limit_s=limit_s)

    async def steps() -> None:
        factory = await threads.run(found.name, partial(_factory, found, module))
        if inspect.iscoroutinefunction(factory):
            given = factory(api)
        else:
            given = await threads.run(found.name, partial(factory, api))
        if inspect.isawaitable(given):
            _ = await given  # pyright: ignore[reportAny] - code of others

    error = await _error_of(steps(), call)
    if error is not None:
        scope.life.end("it could not be loaded")
        if module:
            forget(module)
        raise _broken(found, error, limit_s) from error
    return LoadedExtension(found=found, scope=scope, registered=registered, module=module)


async def _error_of(steps: Coroutine[object, None, None], call: HookCall) -> BaseException | None:
    """Run code of others to its end, or to the end of its time, and give what it raised."""
    raised: list[BaseException] = []

    async def run() -> None:
        try:
            await within_limit(steps, call)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
            raised.append(error)

    # A task of their own: what they do to the task that they run in is nobody else's matter.
    async with anyio.create_task_group() as group:
        group.start_soon(run)
    return raised[0] if raised else None


def _factory(found: DiscoveredExtension, module: str) -> Factory:
    """Return the function that registers; blocking."""
    match found.entry:
        case Path() as path:
            loaded: object = import_apart(path, name=module, expected=found.expected)
            factory = getattr(loaded, FUNCTION, None)
        case InstalledEntryPoint(load=load_it):
            loaded = load_it()
            factory = loaded if callable(loaded) else getattr(loaded, FUNCTION, None)
        case given:
            factory = given
    if not callable(factory):
        message = f"{found.where} has no function {FUNCTION}(api)"
        raise ExtensionBroken(message)
    return factory


def _broken(found: DiscoveredExtension, error: BaseException, limit_s: float) -> ExtensionBroken:
    what = f"extension {found.name!r} was not loaded"
    if isinstance(error, OutOfTime):
        return ExtensionBroken(f"{what}: it did not come to an end within {limit_s:g} s")
    # Written out: its path and what it raised may hold orders to whoever shows the log.
    trace = readable("".join(format_exception(error)))
    log.warning("%s (%s)\n%s", what, readable(found.where), trace)
    if isinstance(error, TillerError):
        return ExtensionBroken(f"{what}: {error}")
    return ExtensionBroken(f"{what}: {type(error).__name__}: {error}{_line(error, found)}")


def _line(error: BaseException, found: DiscoveredExtension) -> str:
    """Return where in its own code it went wrong."""
    if isinstance(error, SyntaxError) or found.path is None:
        return ""
    from agent_core.extensions.source_places import described_place  # noqa: PLC0415 - few extensions fail

    return described_place(error, str(found.path.parent))
