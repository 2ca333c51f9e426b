"""`textDocument/inlineCompletion`: text that a model inserts at the cursor, shown by the editor until the user takes it."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import TillerError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.session.input.inline_completion import (
    AFTER_CHARS,
    BEFORE_CHARS,
    CursorContext,
    Trigger,
)
from agent_core.workspace.permissions.protected_names import is_secret
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession

AUTOMATIC: Final = 2
"""`InlineCompletionTriggerKind.Automatic`."""
WARNING: Final = 2

_log = logging.getLogger(__name__)


class InlineCompletionRequest(Value, frozen=True, kw_only=True):
    """Params of the request that make sense for an open document of a folder."""

    document: Document
    path: Path
    offset: int
    """Index of the cursor in the text of the document."""
    trigger: Trigger
    selected: str = ""
    """Text of the entry that is chosen in the menu of completions, which a completion goes on from."""
    start: int
    """Index at which the inserted text begins: the cursor, or the beginning of the word that the entry replaces."""


async def complete(
    client: ConnectedClient, params: Mapping[str, object]
) -> list[dict[str, JsonValue]]:
    """Return the completion, or none; a request of the user that fails is explained in a message.

    An automatic request opens no session: without one there are no completions.
    """
    request = read_request(client, params)
    if request is None or (client.bound is None and request.trigger == "automatic"):
        return []
    try:
        return await _items(await client.resolve_session(), request)
    except (TillerError, RpcError) as error:
        if request.trigger == "automatic":
            _log.info("there is no completion in %s: %s", request.path, error)
        else:
            message = f"Tiller: there is no completion here: {error}"
            _ = client.connection.notify(
                "window/showMessage", {"type": WARNING, "message": message}
            )
        return []


def read_request(
    client: ConnectedClient, params: Mapping[str, object]
) -> InlineCompletionRequest | None:
    """Read the params; None: they name no open file, or make no sense."""
    uri = (as_object(params.get("textDocument")) or {}).get("uri")
    document = client.editor.mirror.get(uri) if isinstance(uri, str) else None
    offset = None if document is None else _offset(document, params, "position")
    if document is None or document.path is None or offset is None:
        return None
    context = as_object(params.get("context")) or {}
    chosen = as_object(context.get("selectedCompletionInfo")) or {}
    selected, start = chosen.get("text"), _offset(document, as_object(chosen.get("range")), "start")
    if not isinstance(selected, str) or start is None or start > offset:
        selected, start = "", offset
    return InlineCompletionRequest(
        document=document,
        path=document.path,
        offset=offset,
        trigger="automatic" if context.get("triggerKind") == AUTOMATIC else "invoked",
        selected=selected,
        start=start,
    )


def _offset(document: Document, holder: Mapping[str, object] | None, name: str) -> int | None:
    at = as_object((holder or {}).get(name)) or {}
    line, character = at.get("line"), at.get("character")
    if isinstance(line, int) and isinstance(character, int):
        return document.lines.offset(line, character)
    return None


async def _items(
    open_session: OpenSession, request: InlineCompletionRequest
) -> list[dict[str, JsonValue]]:
    completions = open_session.session.models.completions
    if not completions.allows(request.trigger):
        return []
    folders = [root.folder for root in open_session.roots]
    if not await run_in_thread(_may_be_sent, request.path, folders):
        return []
    text, start, end = request.document.text, request.start, request.offset
    at = CursorContext(
        path=request.path,
        language=request.document.language,
        before=text[max(0, start - BEFORE_CHARS) : start] + (request.selected or text[start:end]),
        after=text[end : end + AFTER_CHARS],
    )
    inserted = await completions.complete(at, trigger=request.trigger)
    if not inserted:
        return []
    positions = [request.document.lines.position(place) for place in (start, end)]
    first, last = ({"line": line, "character": character} for line, character in positions)
    return [{"insertText": request.selected + inserted, "range": {"start": first, "end": last}}]


def _may_be_sent(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether a model may get the text of a file: it is in one of the folders and holds no secrets, wherever links lead."""
    real = Path(os.path.realpath(path))
    roots = [Path(os.path.realpath(folder)) for folder in folders]
    return all(
        any(one.is_relative_to(above) for above in around) and is_secret(one, roots=around) is None
        for one, around in ((path, folders), (real, roots))
    )
