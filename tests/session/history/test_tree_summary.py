"""A branch that is left is summarised where the conversation goes on, or nothing has moved."""

import anyio
import pytest
from typing_extensions import override

from agent_core.events import (
    QueueChanged,
    RunEnded,
    SessionStateChanged,
)
from agent_core.kernel.errors import (
    ModelUnknown,
    ProviderError,
)
from agent_core.messages import Usage
from agent_core.session.history.branches import Navigated
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import BranchSummaryEntry
from tests.support.session.scripted_model import (
    Gate,
    say,
)
from tests.support.session.sessions import bench, words
from tests.support.session.trees import SUMMARY, context, node, talk, talked


async def test_a_summary_of_what_is_left_stands_at_the_new_place() -> None:
    scripted = talk(SUMMARY)
    async with bench(scripted) as b:
        await talked(b)
        left = b.session.info.entries[-1].id
        moved = await b.session.tree.navigate(node(b, "a1"), summarize=True)
        last = b.session.info.entries[-1]
        assert isinstance(last, BranchSummaryEntry)
        assert moved.summary == last.summary
        assert last.summary.endswith("\n\n## Goal\ntry it")
        assert (last.parent, last.from_id) == (node(b, "a1"), left)
        assert moved.leaf == last.id == b.session.tree.leaf
        assert last.usage == Usage(input=50, output=5)
        usage = b.session.info.snapshot().usage
        assert (usage.tokens.input, usage.context_used) == (50, None)
        asked = words(scripted.requests[-1].messages[0])
        assert "[User]: u2\n\n[Assistant]: a2\n\n[User]: u3\n\n[Assistant]: a3" in asked
        assert "u1" not in asked
        assert scripted.requests[-1].cache == "none"
        states = [e.state for e in b.seen() if isinstance(e, SessionStateChanged)]
        assert states[-2:] == ["compacting", "idle"]


async def test_a_summary_with_the_first_words_taken_back_begins_the_file_anew() -> None:
    async with bench(talk(SUMMARY)) as b:
        await talked(b)
        moved = await b.session.tree.navigate(node(b, "u1"), summarize=True)
        (last,) = b.session.info.entries
        assert isinstance(last, BranchSummaryEntry)
        assert (moved.editor_text, last.parent) == ("u1", None)


async def test_going_forward_leaves_nothing_behind_to_be_summarised() -> None:
    scripted = talk()
    async with bench(scripted) as b:
        await talked(b)
        await b.session.tree.navigate(node(b, "a1"))
        moved = await b.session.tree.navigate(node(b, "a3"), summarize=True)
        assert (moved.summary, moved.leaf) == (None, node(b, "a3"))
        assert len(scripted.requests) == 3


async def test_a_summary_that_cannot_be_had_is_an_error_and_nothing_moves() -> None:
    refused = ProviderError("no such model", reason="not_found", provider="p", status=404)
    async with bench(talk(refused, say("a4"))) as b:
        await talked(b)
        before = b.session.info.entries
        with pytest.raises(ProviderError, match="no such model"):
            await b.session.tree.navigate(node(b, "a1"), summarize=True)
        assert b.session.info.entries == before
        assert b.session.info.snapshot().state == "idle"
        await talked(b, "u4")
        assert context(b)[-2:] == ["u4", "a4"]


async def test_words_prompted_meanwhile_are_said_also_when_there_is_no_summary() -> None:
    gate = Gate()
    refused = ProviderError("no such model", reason="not_found", provider="p", status=404)
    async with bench(talk((gate, refused), say("a4"))) as b:
        await talked(b)

        async def move() -> None:
            with pytest.raises(ProviderError):
                await b.session.tree.navigate(node(b, "a1"), summarize=True)

        async with anyio.create_task_group() as group:
            group.start_soon(move)
            with anyio.fail_after(5):
                await gate.reached.wait()
            await b.session.prompt("u4")
            gate.release()
        await b.idle()
        assert context(b)[-3:] == ["a3", "u4", "a4"]


async def test_a_summary_that_failed_for_a_moment_is_asked_for_again() -> None:
    busy = ProviderError("busy", reason="rate_limit", provider="p", status=429)
    async with bench(talk(busy, SUMMARY)) as b:
        await talked(b)
        moved = await b.session.tree.navigate(node(b, "a1"), summarize=True)
        assert moved.summary is not None
        assert [round(s) for s in b.slept] == [2]


class Stubborn(Gate):
    """A stream that does not hear of being cancelled."""

    @override
    async def wait(self) -> None:
        with anyio.CancelScope(shield=True):
            await super().wait()


async def test_a_move_that_cannot_be_stopped_in_time_does_not_happen() -> None:
    gate = Stubborn()
    async with bench(talk((gate, *SUMMARY), say("a4"))) as b:
        await talked(b)
        before = b.session.info.entries
        came: list[Navigated] = []

        async def move() -> None:
            came.append(await b.session.tree.navigate(node(b, "a1"), summarize=True))

        async with anyio.create_task_group() as group:
            group.start_soon(move)
            with anyio.fail_after(5):
                await gate.reached.wait()
            assert (await b.session.abort(wait_s=0.05)).timed_out
            gate.release()
        assert [one.cancelled for one in came] == [True]
        assert b.session.info.entries == before
        await talked(b, "u4")
        assert context(b)[-1] == "a4"


async def test_a_summary_needs_a_model() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b)
        session = b.session.id
    async with bench(talk(), store=store, opened=await store.open(session), usable=False) as b:
        before = b.session.info.entries
        with pytest.raises(ModelUnknown):
            await b.session.tree.navigate(node(b, "a1"), summarize=True)
        assert b.session.info.entries == before


async def test_a_summary_can_be_aborted_and_then_nothing_has_moved() -> None:
    gate = Gate()
    scripted = talk((gate, *SUMMARY), say("a4"))
    async with bench(scripted) as b:
        await talked(b)
        before, leaf = b.session.info.entries, b.session.tree.leaf
        came: list[Navigated] = []

        async def move() -> None:
            came.append(await b.session.tree.navigate(node(b, "a1"), summarize=True))

        async with anyio.create_task_group() as group:
            group.start_soon(move)
            with anyio.fail_after(5):
                await gate.reached.wait()
            assert b.session.info.snapshot().state == "compacting"
            assert (await b.session.abort()).status == "cancelled"
        assert came == [Navigated(leaf=leaf, editor_text=None, summary=None, cancelled=True)]
        assert b.session.info.entries == before
        assert b.session.info.snapshot().state == "idle"
        assert scripted.open_streams == 0


async def test_a_caller_that_is_cancelled_takes_the_move_back() -> None:
    gate = Gate()
    async with bench(talk((gate, *SUMMARY), say("a4"))) as b:
        await talked(b)
        before = b.session.info.entries
        async with anyio.create_task_group() as group:

            async def move() -> None:
                await b.session.tree.navigate(node(b, "a1"), summarize=True)

            group.start_soon(move)
            with anyio.fail_after(5):
                await gate.reached.wait()
            group.cancel_scope.cancel()
        assert b.session.info.entries == before
        await talked(b, "u4")
        assert context(b)[-1] == "a4"


async def test_words_prompted_meanwhile_wait_and_are_said_on_the_new_branch() -> None:
    gate = Gate()
    async with bench(talk((gate, *SUMMARY), say("a4"))) as b:
        await talked(b)

        async def move() -> None:
            await b.session.tree.navigate(node(b, "a1"), summarize=True)

        async with anyio.create_task_group() as group:
            group.start_soon(move)
            with anyio.fail_after(5):
                await gate.reached.wait()
            receipt = await b.session.prompt("u4")
            assert receipt.accepted == "queued"
            gate.release()
        await b.idle()
        assert any(isinstance(e, QueueChanged) for e in b.seen())
        said = [words(message) for message in b.messages if not hasattr(message, "summary")]
        assert said == ["u1", "a1", "u4", "a4"]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"] * 4


async def test_instructions_are_added_or_stand_alone() -> None:
    scripted = talk(SUMMARY, say("a4"), SUMMARY)
    async with bench(scripted) as b:
        await talked(b)
        await b.session.tree.navigate(node(b, "a1"), summarize=True, instructions="the tests")
        asked = words(scripted.requests[-1].messages[0])
        assert asked.endswith("Additional focus: the tests")
        assert "## Key Decisions" in asked
        await talked(b, "u4")
        await b.session.tree.navigate(
            node(b, "a1"), summarize=True, instructions="One word.", replace_instructions=True
        )
        asked = words(scripted.requests[-1].messages[0])
        assert asked.endswith("</conversation>\n\nOne word.")
