"""Lets the model write no file that nobody wants it to: secrets, the repository's own folder, what was installed."""

from pathlib import PurePosixPath

from agent_core.extensions import Context, ExtensionApi
from agent_core.hooks import GoOn, ToolBlocked, ToolCalled, ToolCallOutcome

WRITERS = frozenset({"write", "edit"})
FOLDERS = frozenset({".git", "node_modules", ".venv"})
NAMES = (".env", ".env.*", "*.pem", "id_*")


def protected(path: str) -> str | None:
    """Give what protects a path; None: nothing does."""
    parts = PurePosixPath(path.replace("\\", "/"))
    folder = next((one for one in parts.parts[:-1] if one.lower() in FOLDERS), None)
    if folder is not None:
        return f"the folder {folder}"
    name = PurePosixPath(parts.name.lower())
    return next((f"the pattern {one}" for one in NAMES if name.match(one)), None)


def extension(api: ExtensionApi) -> None:
    """Register the check."""

    @api.on(ToolCalled)
    async def check(event: ToolCalled, ctx: Context) -> ToolCallOutcome:
        path = event.arguments.get("path")
        if event.tool not in WRITERS or not isinstance(path, str):
            return GoOn()
        why = protected(path)
        if why is None:
            return GoOn()
        ctx.ui.notify(f"{path} was not written: {why} is protected.", "warning")
        return ToolBlocked(reason=f"{path} is protected by {why}; ask the user to change it.")
