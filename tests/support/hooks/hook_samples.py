"""One value for each point of hooks, as a session might ask about it."""

from collections.abc import Mapping
from typing import Any

from agent_core.hooks import (
    CommandTyped,
    Compacting,
    CompactionFailed,
    CompactionKept,
    ContextBuilt,
    HeadersBuilt,
    HookInput,
    InputTyped,
    MessageBegun,
    MessageGrown,
    MessageOver,
    ModelSelected,
    PayloadBuilt,
    PromptClosed,
    PromptShown,
    RequestBuilt,
    ResourcesSought,
    ResponseArrived,
    RunBegun,
    RunOver,
    RunPreparing,
    RunSettled,
    SessionBegun,
    SessionEnding,
    SessionForked,
    SessionForking,
    SessionNamed,
    SessionSwitched,
    SessionSwitching,
    ThinkingSelected,
    ToolBegun,
    ToolCalled,
    ToolOver,
    ToolPrinted,
    ToolReturned,
    TreeNavigated,
    TreeNavigating,
    TurnBegun,
    TurnOver,
)
from agent_core.kernel import EntryId, ItemId, RunId, SessionId, ToolCallId, TurnId
from agent_core.messages import AssistantMessage, Text, ToolCall, ToolResultMessage, UserMessage

RUN, TURN, ITEM, CALL = RunId("r1"), TurnId("t1"), ItemId("i1"), ToolCallId("c1")
WORDS = (Text(text="words"),)
ASKED = UserMessage(content=WORDS, at_ms=0)
ANSWER = AssistantMessage(
    content=(
        Text(text="I look."),
        ToolCall(id=CALL, name="bash", arguments={"command": "ls", "env": {"A": "1"}}),
    ),
    api="scripted",
    provider="scripted",
    model="model-1",
    stop_reason="tool_use",
    at_ms=0,
)
RESULT = ToolResultMessage(
    call_id=CALL, tool_name="bash", content=WORDS, details={"exit_code": 0}, at_ms=0
)
SAID = (ASKED, ANSWER, RESULT)

_ALL: tuple[HookInput[Any], ...] = (
    ResourcesSought(cwd="/w", reason="startup"),
    SessionBegun(reason="new"),
    SessionSwitching(reason="new"),
    SessionSwitched(reason="resume", previous=None),
    SessionForking(entry=EntryId("e1")),
    SessionForked(session=None, location=None, previous=SessionId("s1"), previous_location=None),
    Compacting(
        reason="manual",
        messages=SAID,
        previous_summary=None,
        instructions=None,
        tokens_before=9,
        kept=SAID,
        first_kept=EntryId("e3"),
        cut_points=(EntryId("e3"),),
    ),
    CompactionKept(reason="manual", entry=EntryId("e2"), summary="short", from_hook=False),
    CompactionFailed(reason="threshold", error="no model", aborted=False),
    SessionEnding(),
    TreeNavigating(
        target=EntryId("e1"),
        old_leaf=EntryId("e2"),
        common_ancestor=None,
        messages=SAID,
        wants_summary=True,
        instructions=None,
        replaces_instructions=False,
        label=None,
    ),
    TreeNavigated(new_leaf=EntryId("e1"), old_leaf=EntryId("e2"), summary=None, from_hook=False),
    SessionNamed(name="named"),
    ModelSelected(model="a/b", previous=None, source="set"),
    ThinkingSelected(level="low", previous="off"),
    InputTyped(content=WORDS),
    RunPreparing(content=WORDS, system="base"),
    RunBegun(run=RUN),
    RunOver(run=RUN, messages=SAID, duration_ms=5, turns=1, tool_calls=0),
    RunSettled(run=RUN, status="completed", duration_ms=5, turns=1, tool_calls=0),
    TurnBegun(run=RUN, turn=TURN, index=0, at_ms=0),
    TurnOver(run=RUN, turn=TURN, index=0, message=ANSWER, results=(RESULT,), duration_ms=5),
    ContextBuilt(messages=SAID),
    RequestBuilt(system="base", messages=SAID),
    PayloadBuilt(provider="a", url="http://a", payload={"stop": ["x"]}),
    HeadersBuilt(provider="a", url="http://a", headers={"x-a": "1"}),
    ResponseArrived(provider="a", status=200, headers={}),
    MessageBegun(run=RUN, item=ITEM, role="assistant"),
    MessageGrown(run=RUN, item=ITEM, text="more"),
    MessageOver(run=RUN, item=ITEM, message=ANSWER),
    ToolCalled(call=CALL, tool="bash", arguments={"command": "ls", "env": {"A": "1"}}),
    ToolBegun(call=CALL, tool="bash", arguments={"command": "ls"}),
    ToolPrinted(call=CALL, tool="bash", arguments={"command": "ls"}, text="more"),
    ToolOver(
        call=CALL,
        tool="bash",
        status="ok",
        content=WORDS,
        details={"exit_code": 0},
        is_error=False,
    ),
    ToolReturned(
        call=CALL,
        tool="bash",
        arguments={"command": "ls"},
        content=WORDS,
        details={"exit_code": 0, "lines": [1]},
        is_error=False,
    ),
    CommandTyped(command="ls", exclude_from_context=False, cwd="/w"),
    PromptShown(kind="select", title="Which?"),
    PromptClosed(kind="select", title="Which?"),
)

SAMPLES: Mapping[type[HookInput[Any]], HookInput[Any]] = {type(one): one for one in _ALL}
"""By the class of what hooks are given."""
