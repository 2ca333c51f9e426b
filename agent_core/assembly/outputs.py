"""Where the whole outputs of a session's tools are kept, and how they go with it."""

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path

from agent_core.kernel import SessionId
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.paths import can_name_a_file


def outputs_of(outputs: Path, session: SessionId) -> Path:
    """Return the folder of a session's outputs, or of what else is kept in a folder per session; it may not exist.

    Args:
        outputs: The folder of all sessions' outputs.
        session: Its id. One from a file that somebody placed by hand may be anything, a way out of the folder even.
    """
    plain = can_name_a_file(session)
    name = session if plain else hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
    return outputs / name


def remove_outputs(folder: Path, *, what: str = "the outputs of its tools") -> None:
    """Remove a session's outputs, or what else is called so; when there are none, nothing happens. Blocks.

    Raises:
        StorageUnavailable: They cannot be removed; some of them may be gone.
    """
    try:
        with suppress(FileNotFoundError):
            if folder.is_symlink():
                folder.unlink()
            else:
                shutil.rmtree(folder)
    except OSError as error:
        message = (
            f"the session was removed, and {what} in {str(folder)!r} could not be: "
            f"{error.strerror or error}; remove that folder yourself"
        )
        raise StorageUnavailable(message) from error
