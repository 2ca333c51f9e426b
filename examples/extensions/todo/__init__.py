"""A list of things to do, kept in the results of its own tool: every branch of the session has its own list."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from agent_core.extensions import (
    CommandContext,
    Context,
    ExtensionApi,
    ListView,
    Row,
    ToolArguments,
    ToolCallContext,
    ToolResult,
    error_result,
    text_result,
)
from agent_core.hooks import SessionBegun, TreeNavigated
from agent_core.kernel import JsonValue
from agent_core.messages import ToolResultMessage
from agent_core.transcript import MessageEntry, WholeEntry

TOOL = "todo"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to do; it is called by its place in the list, from 1."""

    text: str
    done: bool = False


class TodoArguments(ToolArguments):
    """What `todo` takes."""

    action: Literal["list", "add", "toggle", "clear"] = Field(description="What to do")
    text: str = Field(default="", description="The new thing to do; for add")
    number: int = Field(default=0, description="Which one, from 1; for toggle")


def items_of(entries: Sequence[WholeEntry]) -> tuple[Item, ...]:
    """Give the list as the last result in a branch left it."""
    for entry in reversed(entries):
        message = entry.message if isinstance(entry, MessageEntry) else None
        if isinstance(message, ToolResultMessage) and message.tool_name == TOOL:
            known = _read(message.details)
            if known is not None:
                return known
    return ()


def changed(items: tuple[Item, ...], asked: TodoArguments) -> tuple[Item, ...] | None:
    """Give the list after a call; None: there is no such thing to do."""
    match asked.action:
        case "list":
            return items
        case "clear":
            return ()
        case "add":
            return (*items, Item(asked.text)) if asked.text else None
        case "toggle":
            at = asked.number - 1
            if not 0 <= at < len(items):
                return None
            return (*items[:at], replace(items[at], done=not items[at].done), *items[at + 1 :])


def said(items: Sequence[Item]) -> str:
    """Give the list as words."""
    if not items:
        return "Nothing to do."
    return "\n".join(
        f"{number}. [{'x' if one.done else ' '}] {one.text}"
        for number, one in enumerate(items, start=1)
    )


class Todo:
    """The list of the branch that the session is on."""

    def __init__(self) -> None:
        self.items: tuple[Item, ...] = ()

    async def rebuild(self, ctx: Context) -> None:
        """Read the list from the branch."""
        self.items = items_of(await ctx.branch())
        self.show(ctx)

    def change(self, asked: TodoArguments, ctx: Context) -> ToolResult:
        """Do what a call asks for."""
        after = changed(self.items, asked)
        if after is None:
            return error_result(
                f"That is not possible. Give text to add, or a number.\n{said(self.items)}"
            )
        self.items = after
        self.show(ctx)
        kept: list[JsonValue] = [{"text": one.text, "done": one.done} for one in after]
        return text_result(said(after), details={"items": kept})

    def show(self, ctx: Context) -> None:
        """Show the list beside the conversation."""
        rows = [Row(text=one.text, done=one.done) for one in self.items]
        ctx.ui.widget(TOOL, ListView(title="To do", rows=rows) if rows else None)


def extension(api: ExtensionApi) -> None:
    """Register the tool, the command, and what builds the list up again."""
    todo = Todo()

    @api.on(SessionBegun)
    async def began(event: SessionBegun, ctx: Context) -> None:
        _ = event
        await todo.rebuild(ctx)

    @api.on(TreeNavigated)
    async def moved(event: TreeNavigated, ctx: Context) -> None:
        _ = event
        await todo.rebuild(ctx)

    @api.tool(name=TOOL, description="Keep a list of things to do: list, add, toggle, clear.")
    async def keep(asked: TodoArguments, ctx: ToolCallContext) -> ToolResult:
        return todo.change(asked, ctx)

    @api.command("todos", description="Show what is to do on this branch")
    def show(words: str, ctx: CommandContext) -> None:
        _ = words
        ctx.ui.notify(said(todo.items))


def _read(details: JsonValue) -> tuple[Item, ...] | None:
    kept = details.get("items") if isinstance(details, dict) else None
    if not isinstance(kept, list):
        return None
    return tuple(
        Item(str(one.get("text", "")), done=one.get("done") is True)
        for one in kept
        if isinstance(one, dict)
    )
