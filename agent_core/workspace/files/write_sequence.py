"""Several writes, one after the other: for files in which nothing makes one step of them."""

from collections.abc import Sequence

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace.port import Files, FileWrite, OnResult


async def write_one_by_one(
    files: Files, writes: Sequence[FileWrite], *, on_result: OnResult
) -> None:
    """Do what `Files.write_all` promises by `Files.write`."""
    for one in writes:
        try:
            outcome = await files.write(one.path, one.text, base=one.base)
        except WorkspaceError as error:
            await on_result(one, error)
        else:
            await on_result(one, outcome)
