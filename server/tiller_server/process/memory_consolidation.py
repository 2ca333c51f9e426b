"""Runs the consolidation of a folder's memory: chooses the sessions and the model, and records what the call costs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio.to_thread

from agent_core.assembly.config import allowance
from agent_core.assembly.library import SessionLibrary
from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from agent_core.memory.consolidation import Consolidation, ConsolidationResult
from agent_core.providers import ModelInfo
from agent_core.providers.model import RecordedModel
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Layer, load_settings
from agent_core.resources.trust.workspace_trust import origin_of
from agent_core.session.runs.model_calls import calls_for_memory
from agent_core.storage.ledger import CallLedger

MOST_SESSIONS: Final = 50


class ConsolidatedFolder(Value, frozen=True, kw_only=True):
    """A folder whose memory is consolidated, and what the job uses."""

    root: Path
    """Absolute and real."""
    paths: AppPaths
    library: SessionLibrary
    registry: ModelRegistry
    ledger: CallLedger
    clock: Clock


async def consolidate(
    consolidation: Consolidation,
    folder: ConsolidatedFolder,
    *,
    choose: Callable[[ModelRegistry], ModelInfo],
) -> ConsolidationResult:
    """Propose entries from the prompts of the newest sessions of a folder, within the user's limits of a day.

    Args:
        consolidation: The consolidation of the folder's project.
        folder: The folder.
        choose: Returns the model to ask; called if there is something to look at.

    Raises:
        TillerError: As `Consolidation.run`, or `choose`.
    """
    page = await folder.library.list(str(folder.root), limit=MOST_SESSIONS)
    sessions = [await folder.library.read(one.session) for one in page.sessions]
    settings = await load_settings([Layer(name="user", content=folder.paths.settings)])
    calls = calls_for_memory(
        folder.ledger,
        folder=str(await anyio.to_thread.run_sync(origin_of, folder.root, folder.paths)),
        allowance=allowance(settings.values.budgets),
        clock=folder.clock,
    )
    return await consolidation.run(
        sessions,
        lambda: RecordedModel(folder.registry.open(choose(folder.registry)), lambda: calls),
    )
