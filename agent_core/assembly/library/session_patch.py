"""Changes of a stored session, read from its file and its stored contents; the session need not be open."""

from pathlib import Path

from anyio import to_thread

from agent_core.assembly.outputs import outputs_of
from agent_core.changes.adapters.folder_store import FolderBlobStore
from agent_core.changes.diff.patch import FilePatch, UnpatchableFile, file_patch, git_patch
from agent_core.changes.history.file_histories import FileHistories
from agent_core.session.changes.record import recorded_changes
from agent_core.storage.port import StoredSession

HELD_CHARS = 4_194_304


async def stored_patch(stored: StoredSession, blobs: Path) -> str:
    """Return a patch for git of what the agent changed and was not rejected, as each file was after its last edit.

    Args:
        stored: The session, whole.
        blobs: Where what changed files held is kept, in a folder per session.
    """
    contents = FolderBlobStore(outputs_of(blobs, stored.header.id))
    histories = FileHistories(contents)
    histories.load(recorded_changes(stored.entries))
    root = Path(stored.header.cwd)
    patches: list[FilePatch | UnpatchableFile] = []
    for story in histories.all:
        now = (await histories.replay(story)).now
        if now.first is not None or now.last is not None:
            patches.append(await file_patch(now, root=root, contents=contents))
        histories.trim(HELD_CHARS)
    return await to_thread.run_sync(git_patch, patches)
