"""One file through all that was done to it: every text, in whatever order, and what of it waits."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.changes.history import ChangeLog
from agent_core.changes.hunks import FileReview, HunkTracker, Texts, base_text
from agent_core.changes.values import (
    Change,
    ChangeSource,
    FileVersion,
    HunkAction,
    HunkDecision,
    LineCounts,
    Op,
    decode_change,
    decode_decision,
    encode_change,
    encode_decision,
)
from agent_core.kernel import RunId, ToolCallId
from agent_core.workspace.files.text import sha256_of

PATH = Path("/w/a.py")
RUN = RunId("r")


def version(text: str | None) -> FileVersion | None:
    if text is None:
        return None
    data = text.encode()
    return FileVersion(sha256=sha256_of(data), content=sha256_of(data), size=len(data))


def change(
    before: str | None,
    after: str | None,
    *,
    number: int = 0,
    by: ChangeSource = "tool",
    op: Op | None = None,
    path: Path = PATH,
    source: Path | None = None,
) -> Change:
    guessed: Op = "add" if before is None else "delete" if after is None else "modify"
    return Change(
        id=f"e{number}", run=RUN if by == "tool" else None, call=ToolCallId("c"), by=by,
        op=op or guessed, path=path, source=source, before=version(before), after=version(after),
        at_ms=number,
    )  # fmt: skip


def verdict(
    action: HunkAction, *hunks: str, edit: str | None = None, whole: bool = False
) -> HunkDecision:
    return HunkDecision(path=PATH, action=action, hunks=hunks, edit=edit, whole=whole)


def followed(*changes: Change, texts: list[tuple[str, str]]) -> HunkTracker:
    made = HunkTracker.of(changes[0])
    for index, (one, (before, after)) in enumerate(zip(changes, texts, strict=True)):
        made.follow(one, Texts(before=before, after=after), index=index)
    return made


def states(now: FileReview) -> list[str]:
    return [one.state for one in now.hunks]


A, B, C = "a\nb\nc\n", "a\nB\nc\n", "a\nB\nC\n"


def test_what_the_user_does_between_two_edits_is_no_hunk() -> None:
    typed = "mine\n" + B
    made = followed(
        change(A, B), change(typed, "mine\n" + C, number=1), texts=[(A, B), (typed, "mine\n" + C)]
    )
    now = made.now
    assert [(one.old, one.new) for one in now.hunks] == [("b\n", "B\n"), ("c\n", "C\n")]
    assert base_text(now) == "mine\n" + A
    assert now.pending() == LineCounts(files=1, additions=2, deletions=2, unreviewed=2)


def test_an_undo_of_the_last_edit_is_seen_wherever_its_lines_were() -> None:
    one, two = "}\n}\n", "}\n}\n}\n"
    made = followed(
        change("}\n", one), change(one, two, number=1), texts=[("}\n", one), (one, two)]
    )
    assert states(made.at(one, is_there=True)) == ["pending", "rejected"]
    assert states(made.at("}\n", is_there=True)) == ["rejected", "rejected"]
    assert states(made.at(two, is_there=True)) == ["pending", "pending"]
    # What was undone is no part of what a later edit changes.
    three = "x\n" + one
    made.follow(change(one, three, number=2), Texts(before=one, after=three), index=2)
    assert [(hunk.state, hunk.new) for hunk in made.now.hunks if hunk.is_pending] == [
        ("pending", "x\n"),
        ("pending", "}\n"),
    ]


def test_an_accepted_hunk_stays_so_when_the_user_types_in_it() -> None:
    made = followed(change(A, B), texts=[(A, B)])
    made.judge(verdict("accept", made.now.hunks[0].id))
    assert states(made.at(B.replace("B", "Bb"), is_there=True)) == ["accepted"]
    assert made.now.pending() == LineCounts()


def test_a_rejection_that_did_not_come_out_as_it_should_is_followed_as_it_did() -> None:
    made = followed(change(A, C), texts=[(A, C)])
    (only,) = made.now.hunks
    made.judge(verdict("reject", only.id, edit="e1"))
    merged = "a\nb\nc\nmine\n"
    made.follow(change(C, merged, number=1, by="reject"), Texts(before=C, after=merged), index=1)
    assert made.now.pending().unreviewed == 0
    assert states(made.now) in (["rejected"], ["userEdited"])


def test_an_undone_rejection_waits_again_and_can_be_kept_or_rejected_again() -> None:
    made = followed(change(A, C), texts=[(A, C)])
    (only,) = made.now.hunks
    made.judge(verdict("reject", only.id, edit="e1"))
    made.follow(change(C, A, number=1, by="reject"), Texts(before=C, after=A), index=1)
    assert states(made.now) == ["rejected"]
    assert states(made.at(C, is_there=True)) == ["pending"]
    assert states(made.at("mine\n" + C, is_there=True)) == ["pending"], "among other changes"
    made.judge(verdict("reject", only.id, edit="e2"))
    made.follow(change(C, A, number=2, by="reject"), Texts(before=C, after=A), index=2)
    assert states(made.now) == ["rejected"]
    made.judge(verdict("accept", only.id))
    assert states(made.at(C, is_there=True)) == ["accepted"]
    assert states(made.at(A, is_there=True)) == ["rejected"]


def test_a_file_that_a_rejection_removed_waits_again_when_it_is_back() -> None:
    made = followed(change(None, B), texts=[("", B)])
    made.judge(verdict("reject", made.now.hunks[0].id, edit="e1", whole=True))
    made.follow(change(B, None, number=1, by="reject"), Texts(before=B, after=""), index=1)
    assert (made.now.whole, states(made.now)) == ("rejected", ["rejected"])
    back = made.at(B, is_there=True)
    assert (back.whole, states(back)) == ("pending", ["pending"])


def test_what_a_restore_takes_back_waits_no_more() -> None:
    made = followed(
        change(None, B), change(B, None, number=1, by="restore"), texts=[("", B), (B, "")]
    )
    assert states(made.now) == ["rejected"]
    assert (made.now.whole, made.now.pending()) == ("rejected", LineCounts())


def test_a_text_that_nobody_kept_has_no_hunks_but_counts_as_changed() -> None:
    made = HunkTracker.of(change(A, B, op="modify"))
    made.follow(change(A, B, op="modify"), Texts(before=None, after=None), index=0)
    assert made.now.hunks == ()
    assert made.now.pending() == LineCounts(files=1, unreviewed=1)
    made.judge(verdict("accept", whole=True))
    assert made.now.pending() == LineCounts()


@pytest.mark.parametrize(
    ("text", "is_there", "expected"),
    [(None, False, ["orphaned"]), (None, True, ["orphaned"]), ("", True, ["orphaned"])],
    ids=["gone", "no text", "empty"],
)
def test_a_file_that_holds_nothing_of_it_has_orphans(
    text: str | None, is_there: bool, expected: list[str]
) -> None:
    made = followed(change(A, B), texts=[(A, B)])
    assert states(made.at(text, is_there=is_there)) == expected


def test_what_happened_to_a_file_altogether() -> None:
    moved = replace(change(B, B, number=1, op="move"), path=Path("/w/b.py"), source=PATH)
    made = followed(change(A, B), moved, texts=[(A, B), (B, B)])
    assert (made.now.op, made.now.path, made.now.origin) == ("move", Path("/w/b.py"), PATH)
    gone = followed(change(None, B), change(B, None, number=1), texts=[("", B), (B, "")])
    assert (gone.now.op, gone.now.hunks, gone.now.first, gone.now.last) == ("delete", (), None, None)  # fmt: skip


# ------------------------------------------------------------------ the log, and its form


def test_the_log_knows_changes_by_file_and_by_number() -> None:
    other = Path("/w/b.py")
    changes = [change(A, B), change(B, B, number=1, op="move", path=other, source=PATH)]
    log = ChangeLog(changes)
    assert (log.all, len(log), log.since(1)) == (tuple(changes), 2, (changes[1],))
    assert (log.of(PATH), log.of(other)) == (tuple(changes), (changes[1],))
    assert (log.of(Path("/none")), log.since(9), log.at(0)) == ((), (), changes[0])


@pytest.mark.parametrize(
    "one",
    [
        change(A, B),
        change(None, "ä"),
        change(A, None, by="process"),
        change(A, A, op="move", source=Path("/w/\udcff old")),
        replace(change(A, B), maybe_user_edit=True, run=None, call=None),
        replace(
            change(A, B),
            after=FileVersion(
                sha256="x", content=None, size=9, is_text=False, encoding="utf-16-le", bom=True,
                saved=False,
            ),
        ),
    ],
)  # fmt: skip
def test_a_change_comes_back_from_its_entry(one: Change) -> None:
    assert decode_change(encode_change(one)) == one


@pytest.mark.parametrize("data", [{}, {"edit": "e", "path": "/x"}, {"edit": 1, "path": [], "op": "add", "by": "tool"}])  # fmt: skip
def test_an_entry_that_makes_no_sense_is_no_change(data: dict[str, object]) -> None:
    assert decode_change(data) is None  # pyright: ignore[reportArgumentType] - any JSON


def test_a_verdict_comes_back_from_its_entry() -> None:
    one = replace(verdict("reject", "h1", "h2", edit="e", whole=True), note="n", at_ms=3, by="git")
    assert decode_decision(encode_decision(one)) == one
    assert decode_decision({"path": "/x", "action": "explode", "hunks": []}) is None
