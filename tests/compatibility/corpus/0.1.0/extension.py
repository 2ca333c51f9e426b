"""An extension as its author wrote it for 0.1.0. Never change it: later versions have to run it."""

from agent_core.extensions import (
    CommandContext,
    Context,
    ExtensionApi,
    ListView,
    Row,
    ToolArguments,
    ToolCallContext,
    text_result,
)
from agent_core.hooks import GoOn, InputReplaced, InputTyped, ToolBlocked, ToolCalled


class Price(ToolArguments):
    """Arguments of `price`."""

    cents: int


def extension(api: ExtensionApi) -> None:
    """Register one thing of each kind."""
    api.flag("currency", kind="string", default="EUR", description="Currency of prices")

    @api.tool(kind="read", label="Price")
    async def price(arguments: Price, ctx: ToolCallContext):
        """Write a price for people."""
        ctx.call.output("working\n")
        return text_result(f"{arguments.cents / 100:.2f} {api.get_flag('currency')}")

    @api.on(InputTyped)
    async def mark(event: InputTyped, ctx: Context):
        return InputReplaced(content=event.content)

    @api.on("tool_call")
    async def guard(event: ToolCalled, ctx: Context):
        if event.tool == "price" and str(event.arguments["cents"]).startswith("-"):
            return ToolBlocked(reason="a price is not negative")
        return GoOn()

    @api.command(description="Show the prices", argument_hint="NAME")
    async def prices(arguments: str, ctx: CommandContext):
        await ctx.wait_for_idle()
        ctx.ui.widget("prices", ListView(title="Prices", rows=(Row(text=arguments or "all"),)))
        await api.append_entry("example.prices", {"entries": len(ctx.session.entries)})

    @api.shortcut("ctrl+alt+p", description="Show the prices")
    async def shown(ctx: CommandContext):
        ctx.ui.notify("prices")
