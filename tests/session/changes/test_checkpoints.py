"""Going back: files, conversation or both; what others changed stays, and every restore can be taken back."""

import anyio
import anyio.lowlevel
import pytest

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.events import ChangesUpdated, CheckpointCreated, CheckpointRestored, EditApplied
from agent_core.kernel.errors import (
    CheckpointConflict,
    CheckpointUnknown,
    SessionBusy,
)
from agent_core.messages import UserMessage
from agent_core.session.changes.checkpoints import Skipped
from agent_core.transcript.entries import CustomEntry
from tests.support.session.sessions import words
from tests.support.workspace.file_tools import ROOT, Desk, desk

A, B, C = ROOT / "a.txt", ROOT / "b.txt", ROOT / "c.txt"


def first(d: Desk) -> str:
    return d.session.checkpoints.all[0].checkpoint


# --- making them


async def test_a_run_that_changes_nothing_has_no_checkpoint() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        _ = await d.say("only words")
        assert d.session.checkpoints.all == ()
        assert not [one for one in d.bench.seen() if isinstance(one, CheckpointCreated)]


async def test_each_run_has_one_before_its_first_change() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"), ("make", "b.txt", "b\n"))
        await d.run(("write", "a.txt", "3\n"))
        made = d.session.checkpoints.all
        assert [one.files for one in made] == [2, 1]
        kinds = [
            type(one).__name__
            for one in d.bench.seen()
            if isinstance(one, CheckpointCreated | EditApplied | ChangesUpdated)
        ]
        assert kinds == [
            *("CheckpointCreated", "EditApplied", "ChangesUpdated"),
            *("EditApplied", "ChangesUpdated"),
            *("CheckpointCreated", "EditApplied", "ChangesUpdated"),
        ]
        assert d.session.info.snapshot().checkpoints == tuple(one.checkpoint for one in made)


async def test_it_is_written_before_the_change_that_it_precedes() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"))
        kinds = [one.custom_type for one in d.session.info.entries if isinstance(one, CustomEntry)]
        assert kinds.index("tiller.checkpoint") < kinds.index("tiller.change")


# --- files


async def test_what_was_changed_made_deleted_and_moved_is_as_it_was() -> None:
    before = {"a.txt": "1\n", "b.txt": "b\n", "c.txt": "c\n"}
    async with desk(before) as d:
        await d.run(
            ("write", "a.txt", "2\n"),
            ("make", "new/d.txt", "d\n"),
            ("delete", "b.txt"),
            ("move", "c.txt", "moved/c.txt"),
            ("write", "moved/c.txt", "C\n"),
        )
        after = d.texts()
        done = await d.session.checkpoints.restore(first(d))
        assert d.texts() == before
        assert (set(done.restored), done.skipped) == (
            {A, B, C, ROOT / "moved/c.txt", ROOT / "new/d.txt"},
            [],
        )
        again = await d.session.checkpoints.restore(done.undo)
        assert d.texts() == after
        _ = await d.session.checkpoints.restore(again.undo)
        assert d.texts() == before


async def test_later_runs_are_taken_back_with_the_earlier_one() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"))
        await d.run(("write", "a.txt", "3\n"), ("make", "b.txt", "b\n"))
        _ = await d.session.checkpoints.restore(d.session.checkpoints.all[1].checkpoint)
        assert d.texts() == {"a.txt": "2\n"}
        _ = await d.session.checkpoints.restore(first(d))
        assert d.texts() == {"a.txt": "1\n"}


async def test_what_the_user_changed_is_left_alone_and_said() -> None:
    async with desk({"a.txt": "1\n", "b.txt": "b\n"}) as d:
        await d.run(("write", "a.txt", "2\n"), ("write", "b.txt", "B\n"))
        d.user("a.txt", "2\nmine\n")
        done = await d.session.checkpoints.restore(first(d))
        assert d.texts() == {"a.txt": "2\nmine\n", "b.txt": "b\n"}
        assert done.restored == [B]
        why = "a.txt: changed since, and not by a change that this session recorded, so it was left as it is"
        assert done.skipped == [Skipped(path=A, why=why)]


async def test_what_the_user_changed_between_two_edits_is_not_taken_away() -> None:
    async with desk({"a.txt": "1\n2\n3\n4\n5\n"}) as d:
        await d.run(("write", "a.txt", "one\n2\n3\n4\n5\n"))
        d.user("a.txt", "one\n2\nmine\n4\n5\n")
        await d.run(("write", "a.txt", "one\n2\nmine\n4\nfive\n"))
        with pytest.raises(CheckpointConflict, match=r"a\.txt: changed since"):
            _ = await d.session.checkpoints.restore(first(d))
        assert d.texts() == {"a.txt": "one\n2\nmine\n4\nfive\n"}
        done = await d.session.checkpoints.restore(first(d), on_conflict="merge")
        assert (d.texts(), done.restored) == ({"a.txt": "1\n2\nmine\n4\n5\n"}, [A])
        _ = await d.session.checkpoints.restore(done.undo)
        assert d.texts() == {"a.txt": "one\n2\nmine\n4\nfive\n"}


async def test_a_merge_that_would_lose_words_is_not_made() -> None:
    async with desk({"a.txt": "one\n"}) as d:
        await d.run(("write", "a.txt", "two\n"))
        d.user("a.txt", "three\n")
        with pytest.raises(CheckpointConflict, match="in the same lines"):
            _ = await d.session.checkpoints.restore(first(d), on_conflict="merge")
        assert d.texts() == {"a.txt": "three\n"}


async def test_overwriting_is_a_choice_and_can_be_taken_back() -> None:
    async with desk({"a.txt": "one\n"}) as d:
        await d.run(("write", "a.txt", "two\n"), ("make", "b.txt", "b\n"))
        d.user("a.txt", "three\n")
        d.user("b.txt", "mine\n")
        done = await d.session.checkpoints.restore(first(d), on_conflict="overwrite")
        assert d.texts() == {"a.txt": "one\n"}
        _ = await d.session.checkpoints.restore(done.undo)
        assert d.texts() == {"a.txt": "three\n", "b.txt": "mine\n"}


async def test_a_file_that_the_user_wrote_in_the_place_of_a_deleted_one_stays() -> None:
    async with desk({"a.txt": "one\n"}) as d:
        await d.run(("delete", "a.txt"))
        d.user("a.txt", "mine\n")
        for how in ("skip", "merge"):
            with pytest.raises(CheckpointConflict):
                _ = await d.session.checkpoints.restore(first(d), on_conflict=how)
        assert d.texts() == {"a.txt": "mine\n"}


async def test_a_moved_file_goes_back_with_what_the_user_wrote_in_it() -> None:
    async with desk({"a.txt": "1\n2\n3\n"}) as d:
        await d.run(("move", "a.txt", "b.txt"), ("write", "b.txt", "one\n2\n3\n"))
        d.user("b.txt", "one\n2\nmine\n")
        with pytest.raises(CheckpointConflict, match=r"a\.txt, b\.txt: changed since"):
            _ = await d.session.checkpoints.restore(first(d))
        done = await d.session.checkpoints.restore(first(d), on_conflict="merge")
        assert (d.texts(), set(done.restored)) == ({"a.txt": "1\n2\nmine\n"}, {A, B})


async def test_only_the_files_that_are_named_go_back() -> None:
    async with desk({"a.txt": "1\n", "b.txt": "b\n"}) as d:
        await d.run(("write", "a.txt", "2\n"), ("write", "b.txt", "B\n"))
        done = await d.session.checkpoints.restore(first(d), files=[B])
        assert (d.texts(), done.restored) == ({"a.txt": "2\n", "b.txt": "b\n"}, [B])


async def test_a_file_that_is_as_it_was_is_not_touched() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"))
        d.user("a.txt", "1\n")
        done = await d.session.checkpoints.restore(first(d))
        assert (done.restored, done.skipped) == ([], [])


async def test_what_was_not_kept_is_not_taken_back_and_says_so() -> None:
    async with desk({"a.txt": "1\n"}, contents=MemoryBlobStore(limit_bytes=0)) as d:
        await d.run(("write", "a.txt", "2\n"), ("make", "b.txt", "b\n"))
        shown = {
            one.path: (one.status, one.why) for one in await d.session.checkpoints.preview(first(d))
        }
        why = "a.txt cannot be taken back: what it held before was not kept"
        assert shown == {A: ("agentOnly", why), B: ("agentOnly", None)}
        # Neither is a file deleted that could not be brought back.
        with pytest.raises(CheckpointConflict, match="left alone"):
            _ = await d.session.checkpoints.restore(first(d))
        assert d.texts() == {"a.txt": "2\n", "b.txt": "b\n"}


async def test_the_preview_shows_every_file_and_changes_nothing() -> None:
    texts = {"a.txt": "1\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n"}
    async with desk(texts) as d:
        await d.run(*(("write", name, f"{name}\n") for name in texts))
        d.user("b.txt", "mine\n")
        d.user("c.txt", "c\n")
        d.user("d.txt", None)
        before = d.texts()
        shown = await d.session.checkpoints.preview(first(d))
        assert [(one.path.name, one.status, one.before, one.after) for one in shown] == [
            ("a.txt", "agentOnly", "a.txt\n", "1\n"),
            ("b.txt", "userEdited", "mine\n", "b\n"),
            ("c.txt", "same", "c\n", "c\n"),
            ("d.txt", "missing", None, "d\n"),
        ]
        assert d.texts() == before
        assert len(d.session.checkpoints.all) == 1


# --- the conversation


async def test_files_and_conversation_go_back_together_and_forth_again() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        _ = await d.say("hello")
        said = [words(one) for one in d.bench.messages]
        await d.run(("write", "a.txt", "2\n"), words="change it")
        later = [words(one) for one in d.bench.messages]
        done = await d.session.checkpoints.restore(first(d), scope="both")
        assert ([words(one) for one in d.bench.messages], d.texts()) == (said, {"a.txt": "1\n"})
        assert done.editor_text == "change it"
        _ = await d.session.checkpoints.restore(done.undo, scope="both")
        assert ([words(one) for one in d.bench.messages], d.texts()) == (later, {"a.txt": "2\n"})


async def test_the_conversation_goes_back_to_its_very_beginning() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"), words="change it")
        done = await d.session.checkpoints.restore(first(d), scope="conversation")
        assert (d.bench.messages, done.editor_text, d.texts()) == (
            (),
            "change it",
            {"a.txt": "2\n"},
        )


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ("files", "took files back"),
        ("conversation", "not the files"),
        ("both", "could not be taken back"),
    ],
)
async def test_the_model_is_told_where_files_and_conversation_differ(scope, told) -> None:
    async with desk({"a.txt": "1\n", "b.txt": "b\n"}) as d:
        await d.run(("write", "a.txt", "2\n"), ("write", "b.txt", "B\n"))
        d.user("b.txt", "mine\n")
        _ = await d.session.checkpoints.restore(first(d), scope=scope)
        shown = await d.say()
        assert told in shown
        assert str(B) in shown
        assert told not in (await d.say()).split("UserMessage")[-1]


async def test_nobody_is_told_when_both_went_back_whole() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"))
        _ = await d.session.checkpoints.restore(first(d), scope="both")
        _ = await d.say()
        (only, _) = d.bench.messages
        assert isinstance(only, UserMessage)


# --- when, and what is told


async def test_an_unknown_checkpoint_is_an_error() -> None:
    async with desk() as d:
        with pytest.raises(CheckpointUnknown, match="'nope'"):
            _ = await d.session.checkpoints.restore("nope")


async def test_it_is_refused_during_a_run() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"))
        activity = d.session.checkpoints._runs.reserve("run", None)
        with pytest.raises(SessionBusy):
            _ = await d.session.checkpoints.restore(first(d))
        d.session.checkpoints._runs.release(activity)
        assert d.texts() == {"a.txt": "2\n"}


async def test_a_restore_is_named_to_who_must_wait_for_it() -> None:
    async with desk({"a.txt": "1\n"}) as d, anyio.create_task_group() as group:
        await d.run(("write", "a.txt", "2\n"))
        group.start_soon(d.session.checkpoints.restore, first(d))
        await anyio.lowlevel.checkpoint()
        with pytest.raises(SessionBusy, match="a restore of files is going on"):
            await d.session.prompt("x", delivery="reject")


async def test_a_restore_is_told_with_its_checkpoint_and_its_own() -> None:
    async with desk({"a.txt": "1\n"}) as d:
        await d.run(("write", "a.txt", "2\n"))
        _ = d.bench.seen()
        done = await d.session.checkpoints.restore(first(d))
        kinds = (CheckpointCreated, CheckpointRestored, EditApplied)
        events = [one for one in d.bench.seen() if isinstance(one, kinds)][-3:]
        made, edit, back = events
        assert isinstance(made, CheckpointCreated)
        assert (made.run, made.checkpoint.checkpoint) == (None, done.undo)
        assert isinstance(edit, EditApplied)
        assert edit.run is None
        assert isinstance(back, CheckpointRestored)
        assert back.checkpoint.checkpoint == first(d)
