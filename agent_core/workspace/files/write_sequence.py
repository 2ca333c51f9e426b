"""Several writes, one after the other: for files in which nothing makes one step of them."""

from collections.abc import Sequence

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace.port import Files, Heard, Write


async def write_one_by_one(files: Files, writes: Sequence[Write], *, heard: Heard) -> None:
    """Do what `Files.write_all` promises by `Files.write`."""
    for one in writes:
        try:
            outcome = await files.write(one.path, one.text, base=one.base)
        except WorkspaceError as error:
            await heard(one, error)
        else:
            await heard(one, outcome)
