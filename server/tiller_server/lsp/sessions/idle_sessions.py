"""Sessions that nobody has used for long leave the memory, and the memory of their projects is consolidated."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import anyio

from agent_core.assembly.library import SessionLibrary
from agent_core.kernel import Clock
from agent_core.kernel.errors import UsageError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers import ModelInfo
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Layer, load_settings
from agent_core.storage.ledger import CallLedger
from tiller_server.lsp.sessions.open_session import OpenSession

MINUTE_S: Final = 60.0
_log = logging.getLogger(__name__)


def idle_sessions(
    sessions: Iterable[OpenSession], *, now_s: float, limit_s: float
) -> tuple[OpenSession, ...]:
    """Return those that can go, and note of the others that they are in use."""
    idle: list[OpenSession] = []
    for open_session in sessions:
        if open_session.is_task or open_session.closing.is_set():
            continue
        if open_session.is_used:
            open_session.kept.used_s = now_s
        elif now_s - open_session.kept.used_s >= limit_s:
            idle.append(open_session)
    return tuple(idle)


class IdleLimits(Value, frozen=True, kw_only=True):
    """How long a session must be idle, in seconds."""

    unload_s: float
    consolidate_s: float | None
    """None: the memory is not consolidated by itself."""


async def idle_limits(settings: Path) -> IdleLimits:
    """Read the limits from the user's settings: `idleUnloadMinutes` and `memory.consolidateAfterMinutes`."""
    values = (await load_settings([Layer(name="user", content=settings)])).values
    after = values.memory.consolidate_after_minutes
    return IdleLimits(
        unload_s=values.idle_unload_minutes * MINUTE_S,
        consolidate_s=None if after is None else after * MINUTE_S,
    )


class IdleFolder(SecretValue, frozen=True, kw_only=True):
    """A folder whose sessions are idle."""

    hidden: ClassVar = frozenset({"env"})

    root: Path
    env: Mapping[str, str]
    """Environment of the client that opened the last used session."""
    provider: str
    """Provider of that session's model."""
    used_ms: int
    """When something was said last, in Unix milliseconds."""


class UsedFolders:
    """The trusted folders in whose sessions something was said, until each has been idle for long once."""

    def __init__(self) -> None:
        self._used: dict[Path, IdleFolder] = {}
        self._done: dict[Path, int] = {}

    def look(
        self, sessions: Iterable[OpenSession], *, now_ms: int, limit_s: float
    ) -> Sequence[IdleFolder]:
        """Record what is used now; return the folders that have become idle, each once per use."""
        busy: set[Path] = set()
        for one in sessions:
            snapshot = one.session.info.snapshot()
            if one.is_task or not one.session.permissions.trust.trusted:
                continue
            if snapshot.state != "idle":
                busy.add(one.root)
            said_ms, opened_ms = one.newest_ms
            before = self._used.get(one.root)
            used_ms = max(said_ms, opened_ms)
            model = snapshot.config.model
            if not said_ms or model is None or used_ms <= self._done.get(one.root, 0):
                continue
            if before is None or before.used_ms < used_ms:
                self._used[one.root] = IdleFolder(
                    root=one.root,
                    env=one.environment,
                    provider=model.partition("/")[0],
                    used_ms=used_ms,
                )
        due = [
            one
            for one in self._used.values()
            if one.root not in busy and now_ms - one.used_ms >= limit_s * 1000
        ]
        for one in due:
            del self._used[one.root]
            self._done[one.root] = one.used_ms
        return due


async def consolidate_idle(
    folder: IdleFolder,
    *,
    paths: AppPaths,
    clock: Clock,
    redactor: Redactor,
    services: Callable[
        [Mapping[str, str]], Awaitable[tuple[SessionLibrary, ModelRegistry, CallLedger]]
    ],
) -> None:
    """Propose entries for the memory of a folder, if it is on there.

    The model is the cheapest one with a price of the provider that has the prompts already.

    Args:
        folder: The folder.
        paths: The user's files.
        clock: Time.
        redactor: Removes secrets from what is written.
        services: Returns the stored sessions, the models in an environment, and the ledger.

    Raises:
        TillerError: Another process does it, or the model did not answer.
    """
    if not await anyio.Path(paths.memory / "projects.json").exists():
        return
    # Memory is off for most users: nothing of it is loaded before it is needed.
    from agent_core.memory.access import open_if_on  # noqa: PLC0415 - see above
    from agent_core.memory.consolidation import Consolidation  # noqa: PLC0415 - see above
    from tiller_server.process.memory_consolidation import (  # noqa: PLC0415 - see above
        ConsolidatedFolder,
        consolidate,
    )

    memory = await open_if_on(
        paths.memory, folder.root, env=folder.env, clock=clock, redactor=redactor
    )
    if memory is None:
        return
    library, registry, ledger = await services(folder.env)

    job = ConsolidatedFolder(
        root=folder.root,
        paths=paths,
        library=library,
        registry=registry,
        ledger=ledger,
        clock=clock,
    )
    result = await consolidate(
        Consolidation(memory, clock=clock), job, choose=partial(_cheapest_of, folder.provider)
    )
    if result.prompts:
        _log.info(
            "memory of %s: %d prompts looked at, %d entries proposed, %d tokens",
            folder.root,
            result.prompts,
            len(result.proposed),
            result.usage.total,
        )


def _cheapest_of(provider: str, models: ModelRegistry) -> ModelInfo:
    from agent_core.memory.consolidation import cheapest  # noqa: PLC0415 - as above

    model = cheapest([one for one in models.available() if one.provider == provider])
    if model is None:
        message = f"no model of {provider} has a price, so the cheapest is unknown"
        raise UsageError(message)
    return model
