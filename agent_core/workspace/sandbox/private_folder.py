"""A temporary folder that the commands of one session share, and nobody else sees."""

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class PrivateFolder:
    """Makes the folder when it is first needed."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._end: weakref.finalize[..., PrivateFolder] | None = None

    @property
    def path(self) -> Path:
        """The folder. Blocking."""
        if self._path is None:
            self._path = Path(os.path.realpath(tempfile.mkdtemp(prefix="tiller-tmp-")))
            # Also when nobody closes: with this object, or at the latest with the process.
            self._end = weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        return self._path

    def close(self) -> None:
        """Remove it. Blocking, idempotent."""
        if self._end is not None:
            _ = self._end()
        self._path = None
