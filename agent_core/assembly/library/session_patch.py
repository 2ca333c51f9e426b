"""Changes of a stored session, read from its file and its stored contents; the session need not be open."""

from pathlib import Path

from anyio import to_thread

from agent_core.assembly.outputs import outputs_of
from agent_core.changes.adapters.folder_store import FolderContents
from agent_core.changes.diff.patch import FilePatch, LeftOut, file_patch, git_patch
from agent_core.changes.history.file_histories import Stories
from agent_core.session.changes.record import changes_told
from agent_core.storage.port import Stored

HELD_CHARS = 4_194_304


async def stored_patch(stored: Stored, blobs: Path) -> str:
    """Return a patch for git of what the agent changed and was not rejected, as each file was after its last edit.

    Args:
        stored: The session, whole.
        blobs: Where what changed files held is kept, in a folder per session.
    """
    contents = FolderContents(outputs_of(blobs, stored.header.id))
    stories = Stories(contents)
    stories.load(changes_told(stored.entries))
    root = Path(stored.header.cwd)
    patches: list[FilePatch | LeftOut] = []
    for story in stories.all:
        now = (await stories.followed(story)).now
        if now.first is not None or now.last is not None:
            patches.append(await file_patch(now, root=root, contents=contents))
        stories.trim(HELD_CHARS)
    return await to_thread.run_sync(git_patch, patches)
