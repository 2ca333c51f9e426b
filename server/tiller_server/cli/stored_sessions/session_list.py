"""Lists sessions, all of them or those in which something was said."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import anyio

from agent_core.assembly.library import SessionLibrary
from agent_core.kernel import JsonValue, rfc3339
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode
from agent_core.storage import SessionSummary
from agent_core.storage.index import Hit
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import (
    BOLD,
    CYAN,
    DIM,
    cells_of_row,
    clipped,
    moment,
    one_line,
    padded,
    short_ids,
    styled,
)

MODEL_CELLS: Final = 24
TITLE_CELLS: Final = 20
"""Least room of a title; in a narrow terminal the model is left out for it."""
NUMBER_CELLS: Final = 3
"""Digits of a number in the list: ids are longer."""
PATIENCE_S: Final = 1.0
NOTHING_SAID: Final = "(no words)"
T = TypeVar("T")


async def listing(
    library: SessionLibrary, options: argparse.Namespace, cwd: str | None, *, colour: bool
) -> int:
    """List sessions, newest first."""
    page = await _patiently(partial(library.list, cwd, limit=options.limit))
    if options.json:
        rows: list[JsonValue] = [as_json(one) for one in page.sessions]
        return _write_json({"sessions": rows, "next": page.next})
    if not page.sessions:
        return _report_empty("there are no sessions", cwd)
    ids = await _short_ids(library)
    for number, one in enumerate(page.sessions, 1):
        row = _row(one, ids, colour=colour, with_folder=cwd is None)
        # A number counts the sessions of one folder.
        _ = sys.stdout.write(f"{row}\n" if cwd is None else f"{number:>{NUMBER_CELLS}}  {row}\n")
    if page.next is not None:
        _report_more(options.limit)
    return 0


async def numbered(library: SessionLibrary, reference: str, cwd: str) -> str:
    """Return the id of a session that is named by its number in the list of a folder; any other reference as it is.

    Raises:
        UsageError: The folder has fewer sessions.
    """
    # The beginning of an id can be digits too: it is the time, which begins with a zero.
    if not reference.isdecimal() or len(reference) > NUMBER_CELLS or reference.startswith("0"):
        return reference
    number = int(reference)
    page = await library.list(cwd, limit=number)
    if number > len(page.sessions):
        message = f"there is no session {number} in {cwd}; see tiller sessions list"
        raise UsageError(message)
    return page.sessions[number - 1].session


async def search(
    library: SessionLibrary, options: argparse.Namespace, cwd: str | None, *, colour: bool
) -> int:
    """List the sessions that hold all the words, best first, each with the place that shows it."""
    query = " ".join(options.query)
    found = await _patiently(partial(library.search, query, cwd=cwd, limit=options.limit))
    if options.json:
        rows: list[JsonValue] = [_hit_as_json(hit) for hit in found.hits]
        return _write_json({"hits": rows, "next": found.next})
    if not found.hits:
        return _report_empty("no session holds all of that", cwd)
    ids = await _short_ids(library)
    for hit in found.hits:
        row = _row(hit.summary, ids, colour=colour, with_folder=cwd is None)
        _ = sys.stdout.write(f"{row}\n    {_marked(hit, colour=colour)}\n")
    if found.next is not None:
        _report_more(options.limit)
    return 0


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask; on a terminal, say what takes so long the first time."""
    answer: list[T] = []
    failure: TillerError | None = None
    async with anyio.create_task_group() as group:
        if sys.stderr.isatty():
            group.start_soon(_tell_waiting)
        try:
            answer.append(await ask())
        except TillerError as error:
            failure = error  # raised below, outside of the group that would wrap it
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return answer[0]


async def _tell_waiting() -> None:
    await anyio.sleep(PATIENCE_S)
    _ = sys.stderr.write("reading the sessions, which takes a while the first time\n")
    sys.stderr.flush()


def as_json(one: SessionSummary) -> dict[str, JsonValue]:
    """Return a session as programs read it."""
    return {
        "session": one.session,
        "title": one.title,
        "workspace": one.cwd,
        "created": rfc3339(one.created_ms),
        "modified": rfc3339(one.modified_ms),
        "messages": one.messages,
        "model": one.model,
        "parent": one.parent,
        "preview": one.preview,
        "file": None if one.location is None else str(one.location),
    }


def _hit_as_json(hit: Hit) -> dict[str, JsonValue]:
    marks: list[JsonValue] = [list(mark) for mark in hit.marks]
    found: dict[str, JsonValue] = {"entry": hit.entry, "snippet": hit.snippet, "marks": marks}
    return as_json(hit.summary) | found


def _row(one: SessionSummary, ids: dict[str, str], *, colour: bool, with_folder: bool) -> str:
    name = styled(ids.get(one.session, one.session), CYAN, colour=colour)
    facts = f"{moment(one.modified_ms)}  {one.messages:>4} messages"
    model = f"{padded(one_line(one.model or 'no model'), MODEL_CELLS)}  "
    title = one_line(one.title or one.preview) or NOTHING_SAID
    if with_folder:
        title = f"{one_line(one.cwd)}: {title}"
    room = cells_of_row() - len(ids.get(one.session, one.session)) - len(facts) - NUMBER_CELLS - 6
    if room - len(model) < TITLE_CELLS:
        model = ""
    title = clipped(title, max(TITLE_CELLS, room - len(model)))
    return f"{name}  {styled(facts, DIM, colour=colour)}  {model}{title}"


def _marked(hit: Hit, *, colour: bool) -> str:
    """Mark the words: in bold on a terminal, in brackets elsewhere."""
    shown: list[str] = []
    done = 0
    for start, end in hit.marks:
        word = one_line(hit.snippet[start:end])
        shown.append(hit.snippet[done:start])
        shown.append(styled(word, BOLD, colour=True) if colour else f"[{word}]")
        done = end
    return "".join([*shown, hit.snippet[done:]])


async def _short_ids(library: SessionLibrary) -> dict[str, str]:
    """Shorten ids so that each can be used as it is shown, among the sessions of all folders."""
    every = await library.list(limit=sys.maxsize)
    return short_ids([one.session for one in every.sessions])


def _write_json(value: dict[str, JsonValue]) -> int:
    speak_json()
    _ = sys.stdout.write(encode(value).decode() + "\n")
    return 0


def _report_empty(what: str, cwd: str | None) -> int:
    where = "" if cwd is None else f" in {cwd}; --all looks in all folders"
    _ = sys.stderr.write(f"{what}{where}\n")
    return 0


def _report_more(limit: int) -> None:
    _ = sys.stderr.write(f"there are more: --limit {limit * 2}\n")
