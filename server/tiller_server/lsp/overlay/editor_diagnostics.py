"""The problems that attached editors show, asked for as the agent needs them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.errors import ToolError
from agent_core.tools.builtin.diagnostics import FileProblem, FileProblems
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.edits.overlays import Overlay, Overlays
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.messages import as_array, as_object

GRACE_S: Final = 2.0
"""How much longer than asked an editor may take to answer."""
ERROR: Final = 1
OWN_SOURCE: Final = "tiller"


class EditorDiagnostics:
    """Asks the editor whose text the agent sees; of several for one file that is its owner, if it can say."""

    def __init__(self, buffers: Callable[[], Overlays]) -> None:
        self._buffers = buffers

    @property
    def is_there(self) -> bool:
        """Whether an editor that is attached declared it."""
        return bool(self._able())

    async def of(self, paths: Sequence[Path] | None, *, wait_s: float) -> Sequence[FileProblems]:
        """Return the problems of files, or of all that the editors know.

        Raises:
            ToolError: No editor can be asked, or none has answered.
        """
        able = self._able()
        if not able:
            message = "no editor that reports problems is attached now; run the checker of the project instead"
            raise ToolError(message)
        asked: dict[Editor, dict[Path, Document | None]] = {}
        if paths is None:
            asked = {editor: {} for editor in able}
        for path in paths or ():
            editor, document = self._whom(path, await self._buffers().find(path), able)
            asked.setdefault(editor, {})[path] = document
        found: dict[Path, FileProblems] = {}
        failures: list[str] = []

        async def ask(editor: Editor, which: Mapping[Path, Document | None]) -> None:
            try:
                for one in await _ask(editor, which, wait_s=wait_s):
                    _ = found.setdefault(one.path, one)
            except (RpcError, TimeoutError, ConnectionError) as error:
                failures.append(
                    f"{editor.name}: {error}"
                    if str(error)
                    else f"{editor.name} did not answer in time"
                )

        async with anyio.create_task_group() as group:
            for editor, which in asked.items():
                group.start_soon(ask, editor, which)
        if failures and not found:
            message = f"the editor gave no problems ({'; '.join(failures)}); run the checker of the project instead"
            raise ToolError(message)
        return tuple(found.values())

    def _able(self) -> tuple[Editor, ...]:
        return tuple(one for one in self._buffers().editors if one.capabilities.diagnoses)

    def _whom(
        self, path: Path, buffer: Overlay | None, able: Sequence[Editor]
    ) -> tuple[Editor, Document | None]:
        """Return the editor to ask about a file, and its document there; None: that editor has no document of it."""
        if buffer is None:
            return able[0], None
        if buffer.editor in able:
            return buffer.editor, buffer.document
        for editor in able:
            for document in editor.mirror.documents():
                if document.path == path:
                    return editor, document
        return able[0], None


async def _ask(
    editor: Editor, which: Mapping[Path, Document | None], *, wait_s: float
) -> Sequence[FileProblems]:
    uris = {path: path.as_uri() if one is None else one.uri for path, one in which.items()}
    documents = [one for one in which.values() if one is not None]
    if not which:
        documents = editor.mirror.documents()
    versions = {one.uri: one.version for one in documents if one.version is not None}
    params: dict[str, object] = {"timeoutMs": round(wait_s * 1000)}
    if uris:
        params["uris"] = list(uris.values())
    if versions:
        params["atLeast"] = versions
    answer = await editor.requests.diagnostics(params, timeout_s=wait_s + GRACE_S)
    paths = {uri: path for path, uri in uris.items()}
    found: list[FileProblems] = []
    for one in as_array((as_object(answer) or {}).get("items")) or ():
        item = as_object(one) or {}
        uri = item.get("uri")
        path = (paths.get(uri) or path_of(uri)) if isinstance(uri, str) else None
        if path is None or (paths and uri not in paths):
            continue
        found.append(
            FileProblems(
                path=path,
                is_fresh=_is_fresh(item, versions.get(str(uri))),
                problems=tuple(_problems(item)),
            )
        )
    return found


def _is_fresh(item: Mapping[str, object], wanted: int | None) -> bool:
    """Believe what is said, unless the version says otherwise."""
    version = item.get("version")
    is_behind = isinstance(version, int) and wanted is not None and version < wanted
    return item.get("fresh") is True and not is_behind


def _problems(item: Mapping[str, object]) -> list[FileProblem]:
    found: list[FileProblem] = []
    for one in as_array(item.get("diagnostics")) or ():
        given = as_object(one) or {}
        start = as_object((as_object(given.get("range")) or {}).get("start")) or {}
        line0, column0, message = start.get("line"), start.get("character"), given.get("message")
        if (
            not isinstance(line0, int)
            or not isinstance(column0, int)
            or not isinstance(message, str)
            # What is said of the agent's own edits is no problem.
            or given.get("source") == OWN_SOURCE
        ):
            continue
        severity = given.get("severity")
        names = (given.get("source"), given.get("code"))
        found.append(
            FileProblem(
                line0=line0,
                column0=column0,
                severity=severity if isinstance(severity, int) else ERROR,
                message=message,
                source=" ".join(str(name) for name in names if isinstance(name, str | int)),
            )
        )
    return found
