"""`agent/session/read`: the items of a session, page by page, without attaching to it."""

from collections.abc import Sequence

from agent_core.kernel import JsonObject, JsonValue
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.encode.history import END, EntryItem, items, of_run, ranged, shortened
from tiller_server.lsp.feature import feature
from tiller_server.lsp.operations.transcript import full_branch
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.sessions import SESSION_READ, SessionReadParams

PAGE = 100
MOST = 1_000


@feature(SESSION_READ)
async def session_read(client: ConnectedClient, params: SessionReadParams) -> JsonObject:
    """Return a page of items, oldest first: the newest ones unless a cursor says otherwise."""
    with translated_errors(session=params.session):
        entries = await full_branch(client, params.session)
    wanted = entries if params.run is None else of_run(entries, params.run)
    placed = list(items(wanted, branch=entries))
    if params.item is not None:
        return {"items": [_one(placed, params)]}
    start, end = _page(placed, params)
    answer: dict[str, JsonValue] = {
        "items": [shortened(one.item, part=params.part) for one in placed[start:end]]
    }
    if start > 0:
        answer["prev"] = _name(placed[start])
    return {**answer, "next": _name(placed[end - 1])} if 0 < end < len(placed) else answer


def _one(placed: Sequence[EntryItem], params: SessionReadParams) -> JsonValue:
    place = _place(placed, str(params.item))
    item = placed[place].item
    if params.range is not None:
        return ranged(item, start=params.range.start, end=params.range.end)
    return shortened(item, part=params.part)


def _page(placed: Sequence[EntryItem], params: SessionReadParams) -> tuple[int, int]:
    size = min(params.limit or PAGE, MOST)
    if params.after is not None:
        start = _place(placed, params.after) + 1
        return start, min(start + size, len(placed))
    end = len(placed) if params.before in {None, END} else _place(placed, str(params.before))
    return max(0, end - size), end


def _place(placed: Sequence[EntryItem], name: str) -> int:
    for place, one in enumerate(placed):
        if _name(one) == name:
            return place
    message = f"agent/session/read: there is no item {name!r} on the present branch; read without a cursor first"
    raise invalid_params(message)


def _name(one: EntryItem) -> str:
    return str(one.item["item"])
