"""Pages of the items of a session, as `agent/session/read` asks for them; pure."""

from collections.abc import Sequence

from agent_core.kernel import JsonObject, JsonValue
from agent_core.transcript import AnyEntry
from tiller_server.lsp.encode.history import END, EntryItem, items, of_run, ranged, shortened
from tiller_server.lsp.wire.sessions import SessionReadParams

PAGE = 100
MOST = 1_000


class ItemUnknown(Exception):
    """A cursor or an item is named that the present branch does not have."""


def history_page(entries: Sequence[AnyEntry], params: SessionReadParams) -> JsonObject:
    """Return a page of items, oldest first: the newest ones unless a cursor says otherwise.

    Args:
        entries: The present branch, with its texts.
        params: The page that is wanted.

    Raises:
        ItemUnknown: The branch has no such item.
    """
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
    raise ItemUnknown(message)


def _name(one: EntryItem) -> str:
    return str(one.item["item"])
