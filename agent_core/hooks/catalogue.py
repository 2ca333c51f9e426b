"""Catalogue of hook points, those in the life of a session among them: permitted outcomes, effect of failures."""

from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import ClassVar, Literal, get_args

from msgspec.structs import replace
from typing_extensions import override

from agent_core.events.values import CompactionReason, ThinkingLevel
from agent_core.hooks.kinds import (
    Collect,
    Composition,
    GoOn,
    HookInput,
    HookOutcome,
    LastWins,
    Veto,
)
from agent_core.hooks.points import (
    CommandOutcome,
    CommandTyped,
    ContextBuilt,
    ContextOutcome,
    HeadersBuilt,
    HeadersOutcome,
    InputOutcome,
    InputTyped,
    MessageBegun,
    MessageGrown,
    MessageOutcome,
    MessageOver,
    PayloadBuilt,
    PayloadOutcome,
    PromptClosed,
    PromptShown,
    RequestBuilt,
    RequestOutcome,
    ResponseArrived,
    RunBegun,
    RunOutcome,
    RunOver,
    RunPreparing,
    RunSettled,
    ToolBegun,
    ToolCalled,
    ToolCallOutcome,
    ToolOver,
    ToolPrinted,
    ToolResultOutcome,
    ToolReturned,
    TurnBegun,
    TurnOver,
    own_messages,
)
from agent_core.kernel import EntryId, JsonValue, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import Message

SessionReason = Literal["new", "resume", "reload"]
"""Why a session begins: it is a new one, it was there before, or the code that is asked was loaded anew."""
SwitchReason = Literal["new", "resume"]
EndReason = Literal["quit", "reload"]
ModelSelectionSource = Literal["set", "cycle", "restore"]
"""How a model came to be chosen: by name, as the next one, or because the session's branch says so."""


class ResourcesSought(HookInput["ResourcesOutcome"], frozen=True, kw_only=True):
    """Skills and prompt templates are being looked for."""

    cwd: str
    reason: Literal["startup", "reload"]


class ResourcesGiven(Collect, frozen=True, kw_only=True):
    """More files or folders to look in."""

    collected: ClassVar[tuple[str, ...]] = ("skills", "prompts")

    skills: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()


ResourcesOutcome = GoOn | ResourcesGiven


class SessionBegun(HookInput[GoOn], frozen=True, kw_only=True):
    """A session is open."""

    reason: SessionReason


class SessionEnding(HookInput[GoOn], frozen=True, kw_only=True):
    """A session is about to be let go; nothing goes on in it any more."""

    reason: EndReason = "quit"


class SessionSwitching(HookInput["SwitchOutcome"], frozen=True, kw_only=True):
    """A client is about to switch from this session to another."""

    reason: SwitchReason
    target: SessionId | None = None
    """None: a new one."""


class SwitchCancelled(Veto, frozen=True, kw_only=True):
    """Stay in this session."""

    reason: str = ""


SwitchOutcome = GoOn | SwitchCancelled


class SessionSwitched(HookInput[GoOn], frozen=True, kw_only=True):
    """A client has switched to this session from another."""

    reason: SwitchReason
    previous: SessionId | None


class SessionForking(HookInput["ForkOutcome"], frozen=True, kw_only=True):
    """A session is about to be made of a part of this one."""

    entry: EntryId | None
    """The message before which it ends; None: all of the branch is copied."""


class ForkCancelled(Veto, frozen=True, kw_only=True):
    """Do not make it."""

    reason: str = ""


ForkOutcome = GoOn | ForkCancelled


class SessionForked(HookInput[GoOn], frozen=True, kw_only=True):
    """A session was made of a part of this one."""

    session: SessionId | None
    """None: nothing was said before the entry, so nothing was kept."""
    location: str | None
    previous: SessionId
    """The session that it was made of: this one."""
    previous_location: str | None
    """Its file; None: it is in memory."""


class Compacting(HookInput["CompactionOutcome"], frozen=True, kw_only=True):
    """The older part of the conversation is about to be summarised."""

    reason: str
    messages: tuple[Message, ...]
    """Messages to be summarised."""
    previous_summary: str | None
    instructions: str | None
    tokens_before: int
    kept: tuple[Message, ...] = ()
    """Messages that stay as they are."""
    first_kept: EntryId
    """The entry of the first of them."""
    cut_points: tuple[EntryId, ...] = ()
    """Entries with which the kept part may begin instead, oldest first; `ctx.entries` has them."""

    @override
    def isolate(self) -> "Compacting":
        """Return messages whose arguments and details are copies."""
        return replace(self, messages=own_messages(self.messages), kept=own_messages(self.kept))


class CompactionCancelled(Veto, frozen=True, kw_only=True):
    """Do not compact; later hooks are not asked."""


class SummaryGiven(LastWins, frozen=True, kw_only=True):
    """Use this summary instead of asking a model."""

    summary: str
    details: JsonValue = None
    first_kept: EntryId | None = None
    """First entry that is kept, one of `cut_points`: the summary covers everything before it. None: as announced."""


class CutChosen(LastWins, frozen=True, kw_only=True):
    """Have a model summarise everything before another entry."""

    first_kept: EntryId
    """First entry that is kept, one of `cut_points`."""


CompactionOutcome = GoOn | CompactionCancelled | SummaryGiven | CutChosen


class CompactionKept(HookInput[GoOn], frozen=True, kw_only=True):
    """A summary stands in the place of the older part now."""

    reason: CompactionReason
    entry: EntryId
    summary: str
    from_hook: bool


class CompactionFailed(HookInput[GoOn], frozen=True, kw_only=True):
    """There is no summary; the conversation is as it was, or has its tool output cut."""

    reason: CompactionReason
    error: str
    aborted: bool
    """Whether the user or a hook cancelled it."""


class TreeNavigating(HookInput["NavigationOutcome"], frozen=True, kw_only=True):
    """The conversation is about to go on from another entry."""

    target: EntryId
    old_leaf: EntryId | None
    common_ancestor: EntryId | None
    messages: tuple[Message, ...]
    """Messages of the branch that is left: the text for a summary."""
    wants_summary: bool
    instructions: str | None
    replaces_instructions: bool
    """Whether the instructions stand in the place of the usual ones."""
    label: str | None

    @override
    def isolate(self) -> "TreeNavigating":
        """Return messages whose arguments and details are copies."""
        return replace(self, messages=own_messages(self.messages))


class NavigationCancelled(Veto, frozen=True, kw_only=True):
    """Stay where the conversation is."""

    reason: str = ""


class BranchSummaryGiven(LastWins, frozen=True, kw_only=True):
    """Use this summary of the branch that is left; without effect when none was asked for."""

    summary: str
    details: JsonValue = None


class NavigationChanged(LastWins, frozen=True, kw_only=True):
    """Have the branch summarised by other instructions, or set a label; None leaves a part as it is."""

    instructions: str | None = None
    replaces_instructions: bool | None = None
    label: str | None = None


NavigationOutcome = GoOn | NavigationCancelled | BranchSummaryGiven | NavigationChanged


class TreeNavigated(HookInput[GoOn], frozen=True, kw_only=True):
    """The conversation goes on from another entry."""

    new_leaf: EntryId | None
    old_leaf: EntryId | None
    summary: str | None
    from_hook: bool


class SessionNamed(HookInput[GoOn], frozen=True, kw_only=True):
    """The session has another name."""

    name: str | None


class ModelSelected(HookInput[GoOn], frozen=True, kw_only=True):
    """Another model was chosen; it counts from the next request."""

    model: str
    previous: str | None
    source: ModelSelectionSource


class ThinkingSelected(HookInput[GoOn], frozen=True, kw_only=True):
    """Another thinking level was chosen."""

    level: ThinkingLevel
    previous: ThinkingLevel


OnFailure = Literal["open", "closed"]
"""Effect of a failing hook: ignored (`open`), or counted as a refusal (`closed`)."""
HookLimitKind = Literal["short", "long"]


class Point(Value, frozen=True, kw_only=True):
    """One point."""

    name: str
    """As users know it, in settings and reports."""
    input: type[HookInput[HookOutcome]]
    outcomes: tuple[type[HookOutcome], ...]
    """All that a hook may answer; `GoOn` among them."""
    composition: tuple[Composition, ...]
    on_failure: OnFailure
    limit: HookLimitKind
    """Which of the two limits of time holds unless the settings name the point."""


def _point(
    name: str,
    input_type: type[HookInput[HookOutcome]],
    outcomes: type[HookOutcome] | UnionType = GoOn,
    *,
    limit: HookLimitKind = "short",
) -> Point:
    classes: tuple[type[HookOutcome], ...] = (
        (outcomes,) if isinstance(outcomes, type) else get_args(outcomes)
    )
    kinds: list[Composition] = [kind for one in classes for kind in one.composition]
    composition: tuple[Composition, ...] = tuple(dict.fromkeys(kinds)) or ("notify",)
    return Point(
        name=name,
        input=input_type,
        outcomes=classes,
        composition=composition,
        on_failure="open" if "refusal" not in vars(input_type) else "closed",
        limit=limit,
    )


_ALL = (
    _point("resources_discover", ResourcesSought, ResourcesOutcome),
    _point("session_start", SessionBegun),
    _point("session_before_switch", SessionSwitching, SwitchOutcome),
    _point("session_switch", SessionSwitched),
    _point("session_before_fork", SessionForking, ForkOutcome),
    _point("session_fork", SessionForked),
    _point(
        "session_before_compact",
        Compacting,
        CompactionOutcome,
        limit="long",
    ),
    _point("session_compact", CompactionKept, limit="long"),
    _point("session_compact_failed", CompactionFailed, limit="long"),
    _point("session_shutdown", SessionEnding),
    _point(
        "session_before_tree",
        TreeNavigating,
        NavigationOutcome,
        limit="long",
    ),
    _point("session_tree", TreeNavigated),
    _point("session_info_changed", SessionNamed),
    _point("model_select", ModelSelected),
    _point("thinking_level_select", ThinkingSelected),
    _point("input", InputTyped, InputOutcome),
    _point("before_agent_start", RunPreparing, RunOutcome),
    _point("agent_start", RunBegun),
    _point("agent_end", RunOver),
    _point("agent_settled", RunSettled),
    _point("turn_start", TurnBegun),
    _point("turn_end", TurnOver),
    _point("context", ContextBuilt, ContextOutcome),
    _point("context_with_system", RequestBuilt, RequestOutcome),
    _point("before_provider_request", PayloadBuilt, PayloadOutcome, limit="long"),
    _point("before_provider_headers", HeadersBuilt, HeadersOutcome, limit="long"),
    _point("after_provider_response", ResponseArrived, limit="long"),
    _point("message_start", MessageBegun),
    _point("message_update", MessageGrown),
    _point("message_end", MessageOver, MessageOutcome),
    _point("tool_call", ToolCalled, ToolCallOutcome),
    _point("tool_execution_start", ToolBegun),
    _point("tool_execution_update", ToolPrinted),
    _point("tool_execution_end", ToolOver),
    _point("tool_result", ToolReturned, ToolResultOutcome),
    _point("user_bash", CommandTyped, CommandOutcome),
    _point("ui_prompt_start", PromptShown),
    _point("ui_prompt_end", PromptClosed),
)

POINTS: Mapping[type[HookInput[HookOutcome]], Point] = MappingProxyType(
    {one.input: one for one in _ALL}
)
"""By the class of what hooks are given."""
