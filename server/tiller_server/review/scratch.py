"""A private temporary folder of a review."""

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread


@asynccontextmanager
async def private_folder() -> AsyncGenerator[Path]:
    """Create a folder of one's own, which goes with the context."""
    path = Path(await anyio.to_thread.run_sync(tempfile.mkdtemp, None, "tiller-review-"))
    try:
        yield path
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(path, ignore_errors=True))
