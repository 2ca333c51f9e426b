"""Asks before a command that is hard to take back, and blocks it where nobody can be asked."""

import re

from agent_core.extensions import Context, ExtensionApi
from agent_core.hooks import GoOn, ToolBlocked, ToolCalled, ToolCallOutcome

DANGEROUS = (
    re.compile(r"\brm\s+(?:-\w*[rR]\w*|--recursive)"),
    re.compile(r"\bsudo\b"),
    re.compile(r"\b(?:chmod|chown)\b.*\b777\b"),
)
YES = "Yes, run it"
NO = "No"


def extension(api: ExtensionApi) -> None:
    """Register the gate."""

    @api.on(ToolCalled)
    async def gate(event: ToolCalled, ctx: Context) -> ToolCallOutcome:
        command = event.arguments.get("command")
        if event.tool != "bash" or not isinstance(command, str):
            return GoOn()
        if not any(pattern.search(command) for pattern in DANGEROUS):
            return GoOn()
        if not ctx.has_ui:
            return ToolBlocked(reason="Dangerous command blocked: nobody can be asked here.")
        answer = await ctx.ui.select(f"This looks dangerous:\n\n{command}\n\nRun it?", [YES, NO])
        if answer != YES:
            return ToolBlocked(reason="The user did not let this command run.")
        return GoOn()
