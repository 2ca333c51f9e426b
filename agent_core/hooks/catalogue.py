"""Catalogue of hook points: name, permitted outcomes, and the effect of answers and failures."""

from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Literal, get_args

from agent_core.hooks.kinds import Composition, GoOn, HookInput, HookOutcome
from agent_core.hooks.points import (
    CommandOutcome,
    CommandTyped,
    ContextBuilt,
    ContextOutcome,
    HeadersBuilt,
    HeadersOutcome,
    InputOutcome,
    InputTyped,
    PayloadBuilt,
    PayloadOutcome,
    RequestBuilt,
    RequestOutcome,
    ResponseArrived,
    RunOutcome,
    RunPreparing,
    ToolCalled,
    ToolCallOutcome,
    ToolResultOutcome,
    ToolReturned,
)
from agent_core.hooks.run_points import (
    MessageBegun,
    MessageGrown,
    MessageOutcome,
    MessageOver,
    PromptClosed,
    PromptShown,
    RunBegun,
    RunOver,
    RunSettled,
    ToolBegun,
    ToolOver,
    ToolPrinted,
    TurnBegun,
    TurnOver,
)
from agent_core.hooks.session_points import (
    Compacting,
    CompactionFailed,
    CompactionKept,
    CompactionOutcome,
    ForkOutcome,
    ModelSelected,
    NavigationOutcome,
    ResourcesOutcome,
    ResourcesSought,
    SessionBegun,
    SessionEnding,
    SessionForked,
    SessionForking,
    SessionNamed,
    SessionSwitched,
    SessionSwitching,
    SwitchOutcome,
    ThinkingSelected,
    TreeNavigated,
    TreeNavigating,
)
from agent_core.kernel.values import Value

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
