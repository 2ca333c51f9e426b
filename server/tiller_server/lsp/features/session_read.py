"""`agent/session/read`: the items of a session, page by page, without attaching to it."""

from collections.abc import Sequence
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.encode.history import END, EntryItem, items, of_run, ranged, shortened
from tiller_server.lsp.operations.transcript import full_branch
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import SessionReadParams, parse

PAGE = 100
MOST = 1_000


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return a page of items, oldest first: the newest ones unless a cursor says otherwise."""
    asked = parse(SessionReadParams, params, method="agent/session/read")
    try:
        entries = await full_branch(client, asked.session)
    except TillerError as error:
        raise to_rpc_error(error, session=asked.session) from error
    wanted = entries if asked.run is None else of_run(entries, asked.run)
    placed = list(items(wanted, branch=entries))
    if asked.item is not None:
        return {"items": [_one(placed, asked)]}
    start, end = _page(placed, asked)
    answer: dict[str, Any] = {
        "items": [shortened(one.item, part=asked.part) for one in placed[start:end]]
    }
    if start > 0:
        answer["prev"] = _name(placed[start])
    return {**answer, "next": _name(placed[end - 1])} if 0 < end < len(placed) else answer


def _one(placed: Sequence[EntryItem], asked: SessionReadParams) -> object:
    place = _place(placed, str(asked.item))
    item = placed[place].item
    if asked.range is not None:
        return ranged(item, start=asked.range.start, end=asked.range.end)
    return shortened(item, part=asked.part)


def _page(placed: Sequence[EntryItem], asked: SessionReadParams) -> tuple[int, int]:
    size = min(asked.limit or PAGE, MOST)
    if asked.after is not None:
        start = _place(placed, asked.after) + 1
        return start, min(start + size, len(placed))
    end = len(placed) if asked.before in {None, END} else _place(placed, str(asked.before))
    return max(0, end - size), end


def _place(placed: Sequence[EntryItem], name: str) -> int:
    for place, one in enumerate(placed):
        if _name(one) == name:
            return place
    message = f"agent/session/read: there is no item {name!r} on the present branch; read without a cursor first"
    raise invalid_params(message)


def _name(one: EntryItem) -> str:
    return str(one.item["item"])
