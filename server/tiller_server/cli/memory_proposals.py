"""Proposed entries of the memory: `tiller memory consolidate`, `review`, `accept` and `drop`."""

import argparse
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.assembly.library import open_library
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import UsageError
from agent_core.kernel.text import one_line
from agent_core.memory.access import OFF, FolderMemory
from agent_core.memory.consolidation import Consolidation, cheapest
from agent_core.providers import ModelInfo
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import app_paths
from agent_core.storage.adapters.ledger import SqliteLedger
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE
from tiller_server.cli.model_registry import open_registry
from tiller_server.cli.stored_sessions.session_diff import show_patch
from tiller_server.cli.terminal.text import safe
from tiller_server.process.memory_consolidation import ConsolidatedFolder, consolidate

MINUTE_MS: Final = 60_000
NONE: Final = "no entries are proposed"
DECIDE: Final = "`tiller memory accept [ID…]` stores them, `tiller memory drop [ID…]` removes them"


async def proposals(
    memory: FolderMemory, options: argparse.Namespace, environment: Environment
) -> int:
    """Run the command; return the exit code.

    Raises:
        TillerError: Memory is off in the project, there is no such proposal, or the model did not answer.
    """
    if not await memory.is_on():
        raise UsageError(OFF)
    consolidation = Consolidation(memory, clock=SystemClock())
    match options.verb:
        case "consolidate":
            return await _consolidate(consolidation, options, environment)
        case "accept":
            entries = await consolidation.accept(options.ids)
            return _print([f"stored {one.id}: {one_line(one.text)}" for one in entries] or [NONE])
        case "drop":
            dropped = await consolidation.drop(options.ids)
            return _print([f"dropped {one.id}: {one_line(one.text)}" for one in dropped] or [NONE])
        case _:
            return await _review(consolidation, colour=environment.colour(sys.stdout))


async def _consolidate(
    consolidation: Consolidation, options: argparse.Namespace, environment: Environment
) -> int:
    paths, clock = app_paths(environment.variables), SystemClock()
    root = Path(await anyio.Path(options.workspace).resolve())
    async with (
        open_library(paths, clock=clock) as library,
        open_registry(paths, environment, workspace=root) as registry,
        _opened(SqliteLedger(paths.costs)) as ledger,
    ):
        page = await library.list(str(root), limit=1)
        since_ms = clock.now_ms() - options.if_idle * MINUTE_MS
        if any(one.modified_ms > since_ms for one in page.sessions):
            return _print(
                [f"a session changed in the last {options.if_idle} minutes; nothing was done"]
            )
        folder = ConsolidatedFolder(
            root=root, paths=paths, library=library, registry=registry, ledger=ledger, clock=clock
        )
        result = await consolidate(
            consolidation, folder, choose=lambda models: _model(models, options.model)
        )
    if not result.prompts:
        return _print(["there are no new prompts in the sessions of this folder"])
    _ = sys.stderr.write(f"prompts looked at: {result.prompts}; tokens: {result.usage.total:,}\n")
    return await _review(consolidation, colour=environment.colour(sys.stdout))


@asynccontextmanager
async def _opened(ledger: SqliteLedger) -> AsyncGenerator[SqliteLedger]:
    try:
        yield ledger
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ledger.close)


def _model(registry: ModelRegistry, named: str | None) -> ModelInfo:
    """Return the model to ask.

    Raises:
        ModelUnknown: The named model cannot be used.
        UsageError: None is named, and no usable model has a price.
    """
    if named is not None:
        return registry.resolve(named).model
    model = cheapest(registry.available())
    if model is None:
        message = "no usable model has a price, so the cheapest is unknown; name one with --model"
        raise UsageError(message)
    return model


async def _review(consolidation: Consolidation, *, colour: bool) -> int:
    diff = await consolidation.diff()
    if not diff:
        return _print([NONE])
    show_patch(diff, colour=colour)
    _ = sys.stderr.write(f"{DECIDE}\n")
    return DONE


def _print(lines: Sequence[str]) -> int:
    for line in lines:
        _ = sys.stdout.write(safe(line) + "\n")
    return DONE
