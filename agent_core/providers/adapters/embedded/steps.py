"""Reads from the transcript what was asked for and what has been done about it."""

import re
from collections.abc import Sequence
from typing import Literal

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)

TaskKind = Literal["repair", "summary", "other"]

REPAIR = re.compile(
    r"""\b(fix|repair|debug|correct|solve|mend|heal)(s|es|ed|ing)?\b
    | \btests?\b.{0,40}\b(pass|green|work|fail(s|ed|ing)?|broken|red)\b
    | \b(fail(s|ed|ing)?|broken|red)\b.{0,40}\btests?\b
    | \b(typos?|mis-?spel(t|led|ling)s?)\b
    | 修复|修理|修正""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
REFUSAL = re.compile(
    r"\b(don'?t|do not|never|without)\s+(\w+\s+){0,2}(fix|repair|chang|edit)", re.IGNORECASE
)
GO_ON = re.compile(
    r"\s*(please\s+)?(go on|continue|carry on|again|try again|retry)\b", re.IGNORECASE
)
SUMMARY = re.compile(r"\bsummar(y|ies|i[sz]e|i[sz]ing|i[sz]ation)\b", re.IGNORECASE)


class ToolStep(Value, frozen=True, kw_only=True):
    """A tool call with what came of it."""

    name: str
    arguments: JsonObject
    said: str
    """The words with which the call was announced."""
    output: str
    failed: bool

    def argument(self, name: str) -> str:
        """Return an argument as text; empty when there is none."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else ""


class Task(Value, frozen=True, kw_only=True):
    """The user's task and the steps since."""

    asked: TaskKind
    steps: tuple[ToolStep, ...] = ()


def task_of(messages: Sequence[Message], *, system: str, with_tools: bool) -> Task:
    """Find the task in a transcript.

    Words said while a repair goes on (steering) do not start it anew unless they ask for another; «go on» takes it up
    again.
    """
    if not with_tools and SUMMARY.search(system):
        return Task(asked="summary")
    begin: int | None = None
    asked: TaskKind = "other"
    for index, message in enumerate(messages):
        match message:
            case UserMessage(content=content):
                text = text_of(content)
                if GO_ON.match(text) and begin is not None:
                    asked = "repair"
                elif _asks_for_repair(text):
                    asked, begin = "repair", index
                else:
                    asked = "other"
            case CompactionSummaryMessage(summary=summary) if _asks_for_repair(summary):
                # The request itself may be among what was summed up.
                asked, begin = "repair", index
            case _:
                continue
    if asked != "repair" or begin is None:
        return Task(asked="other")
    return Task(asked="repair", steps=tuple(_steps(messages[begin:])))


def _asks_for_repair(text: str) -> bool:
    return bool(REPAIR.search(text)) and not REFUSAL.search(text)


def _steps(messages: Sequence[Message]) -> list[ToolStep]:
    steps: list[ToolStep] = []
    open_calls: list[tuple[ToolCall, str]] = []
    for message in messages:
        match message:
            case AssistantMessage():
                open_calls = [(call, message.text) for call in message.tool_calls]
            case ToolResultMessage():
                # An id is unique within one answer only.
                for call, said in open_calls:
                    if call.id == message.call_id:
                        steps.append(_step(call, said, message))
            case _:
                continue
    return steps


def _step(call: ToolCall, said: str, result: ToolResultMessage) -> ToolStep:
    return ToolStep(
        name=call.name,
        arguments=call.arguments,
        said=said,
        output=text_of(result.content),
        failed=result.is_error,
    )
