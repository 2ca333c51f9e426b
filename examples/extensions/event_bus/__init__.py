"""Tells other extensions which files the model wrote, and listens to what is told: two that need not know each other."""

from collections.abc import Mapping

from agent_core.extensions import Context, ExtensionApi
from agent_core.hooks import SessionBegun, ToolReturned

WRITTEN = "files:written"
"""The channel; what is told there is `{"path": …, "tool": …}`."""
WRITERS = frozenset({"write", "edit"})


def extension(api: ExtensionApi) -> None:
    """Register the one who tells and the one who counts."""
    tell(api)
    count(api)


def tell(api: ExtensionApi) -> None:
    """Tell of each file that was written."""

    @api.on(ToolReturned)
    async def returned(event: ToolReturned) -> None:
        path = event.arguments.get("path")
        if event.tool in WRITERS and not event.is_error and isinstance(path, str):
            api.events.emit(WRITTEN, {"path": path, "tool": event.tool})


def count(api: ExtensionApi) -> None:
    """Show how many files were written since the session was opened."""
    paths: set[str] = set()
    screens: list[Context] = []

    @api.on(SessionBegun)
    async def began(event: SessionBegun, ctx: Context) -> None:
        _ = event
        screens[:] = [ctx]

    def written(data: object) -> None:
        # Anybody may tell anything on a channel.
        if isinstance(data, Mapping) and "path" in data:
            paths.add(str(data["path"]))
        for ctx in screens:
            ctx.ui.status("written", f"{len(paths)} files written")

    _ = api.events.on(WRITTEN, written)
