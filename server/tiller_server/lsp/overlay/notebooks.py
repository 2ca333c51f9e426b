"""Whether a file is open as a notebook: then its text on the disk is not the editor's to share, and is not written."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from anyio import to_thread

from agent_core.kernel.errors import EditRefused
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.editors.editor import Editor

SUFFIX: Final = ".ipynb"
CELL: Final = "notebook-cell"
"""Part of the scheme under which editors open the cells of a notebook as documents."""


async def check_no_notebook(path: Path, editors: Iterable[Editor]) -> None:
    """Check that no editor has a file open as a notebook, so that it may be written.

    Raises:
        EditRefused: One has; nothing was written.
    """
    for editor in editors:
        spelt = _notebooks(editor)
        if spelt and await to_thread.run_sync(_is_one_of, path, spelt):
            message = (
                f"{path} is open as a notebook in {editor.name}: nothing was written, for cells would be lost or "
                "doubled. Close the notebook to let it be changed."
            )
            advice = (
                " Use a tool of the editor that changes cells, if there is one; else ask the user to close "
                "the notebook, or describe the change to them."
            )
            raise EditRefused(message, advice=advice)


def _notebooks(editor: Editor) -> frozenset[Path]:
    """Return the notebooks that an editor has open, as it spells them."""
    mirror = editor.mirror
    found = {path for uri in mirror.notebooks if (path := path_of(uri)) is not None}
    for document in mirror.documents():
        if document.path is None:
            cell_of = _cell_of(document.uri)
            found |= {cell_of} if cell_of is not None else set()
        elif editor.opens_notebooks and document.path.suffix == SUFFIX:
            found.add(document.path)
    return frozenset(found)


def _cell_of(uri: str) -> Path | None:
    """Return the notebook of a document that is one of its cells."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = PurePosixPath(unquote(parts.path))
    if CELL not in parts.scheme or not path.is_absolute():
        return None
    return Path(path)


def _is_one_of(path: Path, spelt: frozenset[Path]) -> bool:
    return path in spelt or any(os.path.realpath(one) == str(path) for one in spelt)
