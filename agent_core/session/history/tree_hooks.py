"""Hooks for a move of the conversation to another entry of the tree, and for a copy of it."""

from msgspec.structs import replace

from agent_core.compaction.prompts import (
    BranchPreparation,
    BranchSummary,
    prepare_branch,
    shared_length,
)
from agent_core.hooks import (
    BranchSummaryGiven,
    ForkCancelled,
    GoOn,
    HookRunner,
    Hooks,
    NavigationCancelled,
    NavigationChanged,
    SessionForking,
    TreeNavigated,
    TreeNavigating,
)
from agent_core.kernel import EntryId
from agent_core.kernel.errors import ForkRefused
from agent_core.kernel.values import Value
from agent_core.session.context import SessionOptions
from agent_core.session.history.recorder import Recorder
from agent_core.session.model_selection import ModelSelection, SelectedModel, notify_model_change


class SummaryWish(Value, frozen=True, kw_only=True):
    """How the branch that is left is to be summarised."""

    instructions: str | None = None
    replaces: bool = False
    """The instructions stand in the place of the usual ones."""


class TreeMove(Value, frozen=True, kw_only=True):
    """A move in the tree as somebody wants it, and then as hooks do."""

    target: EntryId
    wish: SummaryWish | None
    """None: nothing is summarised."""
    label: str | None
    given: BranchSummary | None = None
    """A hook's summary of the branch that is left."""


def branch_left(
    recorder: Recorder, models: ModelSelection, options: SessionOptions, target: EntryId
) -> BranchPreparation | None:
    """Return the entries between the leaf and the common ancestor, as a summary needs them; None: they say nothing."""
    path = recorder.path()
    return prepare_branch(
        path,
        shared=shared_length(path, recorder.transcript.path(target)),
        context_window=models.context_window,
        reserve_tokens=options.compaction.branch_reserve_tokens,
    )


class NavigationHooks:
    """Caller of the hooks of a move in the tree."""

    def __init__(
        self,
        hooks: HookRunner,
        *,
        recorder: Recorder,
        models: ModelSelection,
        options: SessionOptions,
    ) -> None:
        self._hooks = hooks
        self._recorder = recorder
        self._models = models
        self._options = options

    async def ask(self, move: TreeMove, *, left: EntryId | None) -> TreeMove | None:
        """Return a move as hooks want it; None: one of them does not want it.

        Args:
            move: As it was asked for.
            left: The leaf that is left, as the tree shows it.
        """
        if not self._hooks.listens(TreeNavigating):
            return move
        path = self._recorder.path()
        shared = shared_length(path, self._recorder.transcript.path(move.target))
        prepared = branch_left(self._recorder, self._models, self._options, move.target)
        wish = move.wish or SummaryWish()
        asked = TreeNavigating(
            target=move.target,
            old_leaf=left,
            common_ancestor=path[shared - 1].id if shared else None,
            messages=() if prepared is None else prepared.messages,
            wants_summary=move.wish is not None,
            instructions=wish.instructions,
            replaces_instructions=wish.replaces,
            label=move.label,
        )
        match await self._hooks.ask(asked):
            case NavigationCancelled():
                return None
            case BranchSummaryGiven(summary=summary, details=details):
                if move.wish is None or not summary.strip():
                    return move
                given = BranchSummary(summary=summary, details=details, usage=None)
                return replace(move, given=given)
            case NavigationChanged() as changed:
                return _changed(move, wish, changed)
            case GoOn():
                return move

    async def notify(self, navigated: TreeNavigated, before: SelectedModel) -> None:
        """Report that the conversation goes on elsewhere, and what is in force there."""
        _ = await self._hooks.ask(navigated)
        now = SelectedModel.of(self._models)
        await notify_model_change(self._hooks, before, now, source="restore")


async def check_fork(hooks: Hooks, entry: EntryId | None) -> None:
    """Ask whether a session may be made of a part of this one, None: of all of the branch.

    Raises:
        ForkRefused: A hook does not want it.
    """
    match await hooks.ask(SessionForking(entry=entry)):
        case ForkCancelled(reason=reason):
            message = f"an extension does not want this session to be copied: {reason or 'it gave no reason'}"
            raise ForkRefused(message)
        case GoOn():
            pass


def _changed(move: TreeMove, wish: SummaryWish, changed: NavigationChanged) -> TreeMove:
    instructions, replaces = changed.instructions, changed.replaces_instructions
    other = SummaryWish(
        instructions=wish.instructions if instructions is None else instructions,
        replaces=wish.replaces if replaces is None else replaces,
    )
    return replace(
        move,
        wish=None if move.wish is None else other,
        label=move.label if changed.label is None else changed.label,
    )
