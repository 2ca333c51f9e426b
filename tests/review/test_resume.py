"""A review that lost its process at any entry of its session continues there: nothing is asked twice but a call in flight."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from typing_extensions import override

from agent_core.kernel import SessionId
from agent_core.messages import AssistantMessage
from agent_core.storage.adapters.memory import MemoryLog, MemoryStore
from agent_core.storage.port import OpenedSession, SessionLog
from agent_core.transcript.entries import AnyEntry, Header, MessageEntry
from tests.support.review.reviewing import Json, Reviewing, a_report, reports, says
from tests.support.workspace.repositories import Repository
from tiller_server.review.engine import review
from tiller_server.review.findings.result import Review
from tiller_server.review.options import ReviewOrder

pytestmark = [pytest.mark.timeout(120)]

NAME = SessionId("job-1")
PART_CHARS = 100
"""Room for the change of one file."""
TURNS: Sequence[Json] = (
    reports(a_report("one.py", 1, "ONE = 2")),
    says("One is wrong."),
    {"tool_calls": [{"name": "read", "arguments": {"path": "two.py"}}]},
    reports(
        a_report("two.py", 1, "TWO = 3"),
        a_report("two.py", 1, "nowhere in the file", title="Refused"),
    ),
    says("Two is wrong."),
    says("Both are wrong."),
)


class KilledLog(MemoryLog):
    """A log whose process dies after a number of appends: later ones are lost, and the scope is cancelled."""

    def __init__(self, log: SessionLog, kept: int, scope: anyio.CancelScope | None) -> None:
        assert isinstance(log, MemoryLog)
        super().__init__(log._kept)
        self._left = kept
        self._scope = scope

    @override
    async def append(self, entries: Sequence[AnyEntry]) -> None:
        if self._left > 0:
            await super().append(entries)
            self._left -= 1
        if not self._left and self._scope is not None:
            self._scope.cancel()


class KilledStore(MemoryStore):
    """Sessions under one name, whose logs die as often as wanted."""

    kept = 10_000
    scope: anyio.CancelScope | None = None
    """Cancelled when a log dies; set while a review runs."""

    @override
    async def create(self, header: Header) -> MemoryLog:
        made = await super().create(replace(header, id=NAME))
        return KilledLog(made, self.kept, self.scope)

    @override
    async def open(self, session: SessionId) -> OpenedSession:
        opened = await super().open(session)
        opened.log = KilledLog(opened.log, self.kept, self.scope)
        return opened

    async def answers(self) -> int:
        stored = await self.read(NAME)
        return sum(
            isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
            for entry in stored.entries
        )

    async def has_session(self) -> bool:
        return bool(await self.list())


@pytest.fixture
def branch(repository: Repository) -> Repository:
    """Return a repository whose branch changes two files, each of which is a part of its own."""
    repository.commit("Begin", {"one.py": "ONE = 1\n", "two.py": "TWO = 2\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit("Change", {"one.py": "ONE = 2\n", "two.py": "TWO = 3\n"})
    return repository


async def _review(reviewing: Reviewing, store: KilledStore) -> Review | None:
    is_there = await store.has_session()
    done = await store.answers() if is_there else 0
    reviewing.provider.script(list(TURNS[done:]))
    order = ReviewOrder(base="main", head="HEAD", part_chars=PART_CHARS)
    request = reviewing.request(store=store, session=NAME if is_there else "new")
    with anyio.CancelScope() as scope:
        store.scope = scope
        return await review(order, request)
    return None


def _facts(made: Review) -> Any:
    return (
        [(one.path, one.line, one.title) for one in made.findings],
        [one.title for one in made.dropped],
        made.summary,
        [one.path for one in made.files],
        made.header.turns,
        made.stopped,
    )


async def test_a_review_killed_at_any_entry_ends_as_one_that_was_not(
    branch: Repository, reviewing: Reviewing, tmp_path: Path
) -> None:
    whole = await _review(reviewing, KilledStore())
    assert whole is not None
    assert whole.stopped is None, whole.partial
    assert (len(whole.findings), len(whole.dropped)) == (2, 1)
    kept = 0
    while True:
        kept += 1
        store = KilledStore()
        store.kept = kept
        before = len(reviewing.provider.requests)
        made = await _review(reviewing, store)
        if made is not None:
            break  # it has no more entries
        store.kept = 10_000
        made = await _review(reviewing, store)
        assert made is not None
        assert _facts(made) == _facts(whole), f"killed after {kept} appends"
        calls = len(reviewing.provider.requests) - before
        assert calls <= len(TURNS) + 1, f"killed after {kept} appends"
    assert kept > 10


async def test_a_finished_review_that_is_asked_again_asks_no_model(
    branch: Repository, reviewing: Reviewing
) -> None:
    store = KilledStore()
    whole = await _review(reviewing, store)
    assert whole is not None
    before = len(reviewing.provider.requests)
    again = await _review(reviewing, store)
    assert again is not None
    assert _facts(again) == _facts(whole)
    assert len(reviewing.provider.requests) == before
