"""The port through which files are put back byte for byte: binary ones, and texts in another encoding than UTF-8."""

from pathlib import Path
from typing import Protocol

from agent_core.workspace import FileBytes, FileText


class ByteFiles(Protocol):
    """Writes whole files of a workspace as bytes, on disk only; files open in an editor are written through `Files`."""

    async def put_bytes(
        self, path: Path, data: bytes, *, base: FileText | FileBytes | None
    ) -> None:
        """Write a file, if what is on the disk is still `base`; missing parent folders are made.

        Raises:
            StaleText: The file is not `base` any more, or None was given and something is there; nothing was written.
            WorkspaceError: It cannot be written.
        """
        ...
