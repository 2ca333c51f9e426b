"""What people say to changes: counted, kept, truly taken back, and told to the model."""

from pathlib import Path

import pytest

from agent_core.changes.hunks import FileReview, Hunk
from agent_core.events import ChangeCounts, ChangesUpdated, EditApplied, EditRejected, RunEnded
from agent_core.kernel import SessionId
from agent_core.kernel.errors import UsageError
from agent_core.session.changes.review import MOST_NOTE_BYTES, ReviewRequest
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript.entries import CustomEntry, Header
from tests.support.workspace.file_tools import ROOT, Desk, desk

A = ROOT / "a.py"
TEXT = "a\nb\nc\nd\ne\nf\ng\nh\ni\n"
EDITED = "A\nb\nc\nd\nE\nf\ng\nh\nI\n"


async def hunks(d: Desk, path: Path = A) -> tuple[Hunk, ...]:
    return (await file(d, path)).hunks


async def file(d: Desk, path: Path = A) -> FileReview:
    found = await d.session.changes.at(path)
    assert found is not None
    return found


async def decide(d: Desk, *wishes: ReviewRequest, note: str | None = None) -> list[str]:
    return [one.status for one in await d.session.changes.resolve(wishes, note=note)]


def reject(one: Hunk) -> ReviewRequest:
    return ReviewRequest(action="reject", hunk=one.id)


def accept(one: Hunk) -> ReviewRequest:
    return ReviewRequest(action="accept", hunk=one.id)


# ------------------------------------------------------------------ counting


async def test_changes_of_a_run_wait_to_be_reviewed() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        expected = ChangeCounts(files=1, additions=3, deletions=3, unreviewed=3)
        assert d.session.changes.counts == expected
        assert d.session.info.snapshot().changes == expected
        ended = [one for one in d.bench.seen() if isinstance(one, RunEnded)]
        assert ended[-1].changes == expected
        assert [(one.old, one.new, one.state) for one in await hunks(d)] == [
            ("a\n", "A\n", "pending"),
            ("e\n", "E\n", "pending"),
            ("i\n", "I\n", "pending"),
        ]


async def test_the_next_run_counts_its_own_and_the_session_all() -> None:
    async with desk({"a.py": TEXT, "b.py": "x\n"}) as d:
        await d.run(("write", "a.py", EDITED))
        await d.run(("write", "b.py", "y\n"))
        ended = [one.changes for one in d.bench.seen() if isinstance(one, RunEnded)]
        assert ended[-1] == ChangeCounts(files=1, additions=1, deletions=1, unreviewed=1)
        assert d.session.info.snapshot().changes == ChangeCounts(
            files=2, additions=4, deletions=4, unreviewed=4
        )


async def test_several_files_of_one_call_are_one_edit() -> None:
    async with desk({"a.py": "a\n", "b.py": "b\n", "c.py": "c\n"}) as d:
        await d.run(
            ("write", "a.py", "A\n"), ("delete", "b.py"), ("move", "c.py", "d.py"), ("make", "e.py", "e\n")
        )  # fmt: skip
        told = [one for one in d.bench.seen() if isinstance(one, EditApplied)]
        assert len(told) == 4
        assert len({one.edit for one in told}) == 1
        changes = await d.session.changes.list()
        assert [(one.path.name, one.op) for one in changes.files] == [
            ("a.py", "modify"), ("b.py", "delete"), ("d.py", "move"), ("e.py", "add"),
        ]  # fmt: skip
        assert d.session.changes.counts.unreviewed == 4


# ------------------------------------------------------------------ the word


async def test_a_rejected_hunk_is_out_of_the_file_and_the_model_hears_of_it() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        _, second, _ = await hunks(d)
        assert await decide(d, reject(second), note="leave e alone") == ["done"]
        assert d.texts()["a.py"] == EDITED.replace("E", "e")
        assert d.session.info.snapshot().changes == ChangeCounts(
            files=1, additions=2, deletions=2, unreviewed=2
        )
        assert [one.state for one in await hunks(d)] == ["pending", "rejected", "pending"]
        assert [type(one).__name__ for one in d.bench.seen()][-3:] == [
            "EditApplied", "ChangesUpdated", "EditRejected",
        ]  # fmt: skip
        shown = await d.say()
        assert "rejected some of your changes" in shown
        assert "leave e alone" in shown
        assert "line 5" in shown
        assert "leave e alone" in await d.say()
        assert (await d.say()).count("leave e alone") == 1


async def test_a_checkpoint_takes_a_rejection_back_with_files_that_it_deleted() -> None:
    async with desk({"a.py": TEXT, "gone.py": "x\n"}) as d:
        await d.run(("write", "a.py", EDITED), ("make", "new.py", "n\n"), ("delete", "gone.py"))
        edited = d.texts()
        everything = ReviewRequest(action="reject", change_set=d.session.id)
        assert await decide(d, everything) == ["done"]
        assert d.texts() == {"a.py": TEXT, "gone.py": "x\n"}
        before = d.session.checkpoints.all[-1]
        assert (before.run, before.files) == (None, 3)
        await d.session.checkpoints.restore(before.checkpoint)
        assert d.texts() == edited
        assert [one.state for one in await hunks(d)] == ["pending"] * 3, "it waits again"
        assert await decide(d, everything) == ["done"]
        assert d.texts() == {"a.py": TEXT, "gone.py": "x\n"}


async def test_a_rejection_that_takes_nothing_out_makes_no_checkpoint() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        first, *_ = await hunks(d)
        assert await decide(d, accept(first)) == ["done"]
        assert await decide(d, reject(first)) == ["conflict"]
        assert len(d.session.checkpoints.all) == 1


async def test_what_was_accepted_waits_no_more() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        first, second, third = await hunks(d)
        assert await decide(d, accept(first), ReviewRequest(action="reviewed", hunk=second.id)) == [
            "done", "done",
        ]  # fmt: skip
        assert [one.state for one in await hunks(d)] == ["accepted", "accepted", "pending"]
        assert d.session.changes.counts.unreviewed == 1
        assert d.texts()["a.py"] == EDITED
        assert await decide(d, accept(first), reject(first), accept(third)) == [
            "done", "conflict", "done",
        ]  # fmt: skip
        assert d.session.changes.counts == ChangeCounts()


@pytest.mark.parametrize("by", ["file", "run", "session"])
async def test_everything_of_a_file_or_a_change_set_goes_at_once(by: str) -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED), ("make", "new.py", "x\n"))
        names = {"run": d.session.changes.log.all[0].run, "session": d.session.id}
        wish = (
            ReviewRequest(action="reject", file=A)
            if by == "file"
            else ReviewRequest(action="reject", change_set=names[by])
        )
        assert await decide(d, wish) == ["done"]
        left = {"a.py": TEXT, "new.py": "x\n"} if by == "file" else {"a.py": TEXT}
        assert d.texts() == left


async def test_a_rejected_file_goes_with_its_only_hunk_unless_the_user_wrote_in_it() -> None:
    async with desk({}) as d:
        await d.run(("make", "one.py", "x\ny\n"), ("make", "two.py", "x\ny\n"))
        d.user("two.py", "x\ny\nmine\n")
        for name in ("one.py", "two.py"):
            (only,) = await hunks(d, ROOT / name)
            assert await decide(d, reject(only)) == ["done"]
        assert d.texts() == {"two.py": "mine\n"}


async def test_deleted_and_moved_files_come_back() -> None:
    before = {"gone.py": "g\n", "old.py": "o\n"}
    async with desk(dict(before)) as d:
        await d.run(("delete", "gone.py"), ("move", "old.py", "new.py"))
        wishes = (
            ReviewRequest(action="reject", file=ROOT / "gone.py"),
            ReviewRequest(action="reject", file=ROOT / "new.py"),
        )
        assert await decide(d, *wishes) == ["done", "done"]
        assert d.texts() == before
        assert d.session.changes.counts == ChangeCounts()


# ------------------------------------------------------------------ what the user does


async def test_a_line_of_the_user_inside_a_hunk_keeps_it_from_being_rejected() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        first, second, _ = await hunks(d)
        d.user("a.py", EDITED.replace("E", "E2").replace("b\n", "b\nmine\n"))
        assert await decide(d, reject(second), reject(first)) == ["conflict", "done"]
        assert d.texts()["a.py"] == EDITED.replace("E", "E2").replace("b\n", "b\nmine\n").replace("A", "a")  # fmt: skip
        assert [one.state for one in await hunks(d)] == ["rejected", "userEdited", "pending"]
        assert d.session.changes.counts.unreviewed == 1


async def test_what_the_user_took_back_themselves_is_rejected() -> None:
    async with desk({"a.py": "}\n}\n"}) as d:
        await d.run(("write", "a.py", "}\n}\n}\n"))
        d.user("a.py", "}\n}\n")
        assert [one.state for one in await hunks(d)] == ["rejected"]
        assert d.session.changes.counts == ChangeCounts()
        d.user("a.py", "}\n}\n}\n")
        assert [one.state for one in await hunks(d)] == ["pending"]


async def test_a_file_that_is_gone_has_nothing_to_reject() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        first, *_ = await hunks(d)
        d.user("a.py", None)
        assert await decide(d, reject(first), ReviewRequest(action="reject", file=A)) == [
            "gone",
            "gone",
        ]
        assert d.texts() == {}


async def test_a_later_edit_of_the_same_lines_takes_the_place_of_the_earlier() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", TEXT.replace("e", "E")))
        (early,) = await hunks(d)
        await d.run(("write", "a.py", TEXT.replace("e", "EE")))
        (late,) = await hunks(d)
        assert (late.old, late.new) == ("e\n", "EE\n")
        assert await decide(d, reject(early), reject(late)) == ["gone", "done"]
        assert d.texts()["a.py"] == TEXT


# ------------------------------------------------------------------ bad input


async def test_what_nobody_knows_is_gone() -> None:
    async with desk({"a.py": TEXT}) as d:
        wishes = (
            ReviewRequest(action="reject", hunk="none"),
            ReviewRequest(action="accept", file=ROOT / "a\nb"),
            ReviewRequest(action="accept", change_set="x" * 10_000),
        )
        assert await decide(d, *wishes) == ["gone"] * 3


async def test_a_note_that_is_too_long_decides_nothing() -> None:
    async with desk({"a.py": TEXT}) as d:
        await d.run(("write", "a.py", EDITED))
        first, *_ = await hunks(d)
        with pytest.raises(UsageError, match="1000000 bytes"):
            await decide(d, reject(first), note="n" * 1_000_000)
        assert d.texts()["a.py"] == EDITED
        assert await decide(d, reject(first), note="n" * MOST_NOTE_BYTES) == ["done"]


@pytest.mark.parametrize("name", ["sp ace.py", "new\nline.py", "a\ttab", '"q".py', "ä\u2028.py"])
async def test_hostile_names_are_names(name: str) -> None:
    async with desk({}) as d:
        await d.run(("make", name, "x\n"))
        (only,) = await hunks(d, ROOT / name)
        assert await decide(d, reject(only)) == ["done"]
        assert d.texts() == {}


# ------------------------------------------------------------------ it outlives the process


async def test_a_session_that_is_opened_again_knows_all_of_it() -> None:
    store = MemoryStore()
    log = await store.create(Header(id=SessionId("s-1"), at_ms=0, cwd=str(ROOT)))
    begun = OpenedSession(log=log, entries=(), recovery=Recovery())
    async with desk({"a.py": TEXT}, opened=begun) as d:
        await d.run(("write", "a.py", EDITED))
        first, second, third = await hunks(d)
        assert await decide(d, accept(first), reject(second)) == ["done", "done"]
        d.user("a.py", d.texts()["a.py"] + "mine\n")
        entries = [
            one.custom_type for one in d.session.info.entries if isinstance(one, CustomEntry)
        ]
        assert entries.count("tiller.change") == 2
        assert entries.count("tiller.review") == 2
        texts, contents, left = d.texts(), d.contents, d.session.changes.counts
    reopened = await store.open(d.session.id)
    async with desk(texts, contents=contents, opened=reopened) as again:
        assert again.session.info.snapshot().changes == left
        assert [(one.id, one.state) for one in await hunks(again)] == [
            (first.id, "accepted"),
            (second.id, "rejected"),
            (third.id, "pending"),
        ]
        assert await decide(again, reject(third)) == ["done"]
        assert again.texts()["a.py"] == EDITED.replace("E", "e").replace("I", "i") + "mine\n"
        told = [one for one in again.bench.seen() if isinstance(one, ChangesUpdated)]
        assert told[-1].unreviewed == 0
        assert any(isinstance(one, EditRejected) for one in again.bench.seen())
