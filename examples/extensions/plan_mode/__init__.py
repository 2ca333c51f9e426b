"""A mode in which the model looks and plans and changes nothing, until the user lets it."""

from agent_core.extensions import CommandContext, Context, ExtensionApi
from agent_core.hooks import (
    GoOn,
    RunOutcome,
    RunPrepared,
    RunPreparing,
    SessionBegun,
    ToolBlocked,
    ToolCalled,
    ToolCallOutcome,
    TreeNavigated,
)
from agent_core.transcript import CustomEntry

KEPT = "plan-mode"
LOOKS = frozenset({"read", "grep", "find", "ls"})
WORDS = """

You are in plan mode. Look at whatever you need with read, grep, find and ls, and change nothing.
Answer with a numbered plan of what you would do, and stop there."""


class Plan:
    """Whether only plans are made, as the branch says."""

    def __init__(self) -> None:
        self.is_on = False

    async def rebuild(self, ctx: Context, *, begins: bool) -> None:
        """Read it from the branch; without a word there, as the session begins."""
        said = [
            entry.data is True
            for entry in await ctx.branch()
            if isinstance(entry, CustomEntry) and entry.custom_type == KEPT
        ]
        self.is_on = said[-1] if said else begins
        self.show(ctx)

    def show(self, ctx: Context) -> None:
        """Say so where a client shows such things."""
        ctx.ui.status(KEPT, "plan mode" if self.is_on else None)


def extension(api: ExtensionApi) -> None:
    """Register the switch, the gate and the words."""
    plan = Plan()
    api.flag("plan", description="Begin in plan mode")
    _hear(api, plan)

    async def switch(ctx: CommandContext) -> None:
        plan.is_on = not plan.is_on
        _ = await api.append_entry(KEPT, plan.is_on)
        plan.show(ctx)
        ctx.ui.notify("Plan mode is on." if plan.is_on else "Plan mode is off.")

    @api.command("planning", description="Turn plan mode on or off")
    async def command(words: str, ctx: CommandContext) -> None:
        _ = words
        await switch(ctx)

    @api.shortcut("ctrl+alt+p", description="Turn plan mode on or off")
    async def key(ctx: CommandContext) -> None:
        await switch(ctx)


def _hear(api: ExtensionApi, plan: Plan) -> None:
    @api.on(SessionBegun)
    async def began(event: SessionBegun, ctx: Context) -> None:
        _ = event
        await plan.rebuild(ctx, begins=api.get_flag("plan") is True)

    @api.on(TreeNavigated)
    async def moved(event: TreeNavigated, ctx: Context) -> None:
        _ = event
        await plan.rebuild(ctx, begins=plan.is_on)

    @api.on(RunPreparing)
    async def instruct(event: RunPreparing) -> RunOutcome:
        return RunPrepared(system=event.system + WORDS) if plan.is_on else GoOn()

    @api.on(ToolCalled)
    async def hold(event: ToolCalled) -> ToolCallOutcome:
        if not plan.is_on or event.tool in LOOKS:
            return GoOn()
        return ToolBlocked(
            reason=f"{event.tool} is not run in plan mode; plan, and let the user decide."
        )
