"""The tool `todo`: the model's list of steps, which people see beside the conversation."""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.json import as_object, scrub
from agent_core.kernel.text import one_line
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.tools.todo_list import NAME, STATUSES, TodoStatus

MOST_ITEMS: Final = 50
MOST_CHARS: Final = 200
"""Of one text."""


class TodoItem(BaseModel):
    """One step."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str = Field(description=f"What is to be done, at most {MOST_CHARS} characters")
    status: TodoStatus = Field(default="pending", description="At most one step is active")
    why: str | None = Field(
        default=None,
        description=f"Its reason, where the text does not give it, at most {MOST_CHARS} characters",
    )


class TodoArguments(ToolArguments):
    """Arguments of `todo`."""

    other_names: ClassVar[Mapping[str, str]] = {"todos": "items", "list": "items", "steps": "items"}

    items: list[TodoItem] = Field(
        description=f"The whole list, in order; it replaces the one before. At most {MOST_ITEMS} items; an empty list removes it."
    )


def todo_tool() -> ModelTool[TodoArguments]:
    """Make the tool."""
    return ModelTool(
        spec=ToolSpec(
            name=NAME,
            description=(
                "Keep a list of steps for work that has three or more of them; the user sees it. Send the whole list each "
                "time. Mark a step active before you begin it and done as soon as it is done. Not for simple requests."
            ),
            parameters=schema_of(TodoArguments),
            kind="read",
            snippet="Keep a list of steps",
        ),
        arguments=TodoArguments,
        titled=_title,
        execute=_todo,
    )


def _title(arguments: JsonObject) -> str:
    items = arguments.get("items")
    listed = [as_object(one) for one in items] if isinstance(items, list) else []
    done = sum(one.get("status") == "done" for one in listed)
    return f"todo {done} of {len(listed)} done" if listed else "todo"


async def _todo(arguments: TodoArguments, _: ToolContext) -> ToolResult:
    items = arguments.items
    if len(items) > MOST_ITEMS:
        message = f"The list has {len(items)} items, at most {MOST_ITEMS} are kept: join small steps, and leave out what is done."
        raise ToolError(message)
    if sum(one.status == "active" for one in items) > 1:
        message = "More than one step is active. Mark one as active, and the others as pending."
        raise ToolError(message)
    stored: list[JsonValue] = [_stored(number, one) for number, one in enumerate(items, 1)]
    counts = Counter(one.status for one in items)
    summary = ", ".join(f"{counts[one]} {one}" for one in STATUSES if counts[one])
    text = f"The list is kept: {summary}." if items else "The list is removed."
    return text_result(text, details={NAME: stored})


def _stored(number: int, item: TodoItem) -> JsonObject:
    text = one_line(scrub(item.text))[:MOST_CHARS]
    if not text:
        message = f"Item {number} has no text."
        raise ToolError(message)
    stored: dict[str, JsonValue] = {"id": str(number), "text": text, "status": item.status}
    if item.why:
        stored["why"] = one_line(scrub(item.why))[:MOST_CHARS]
    return stored
