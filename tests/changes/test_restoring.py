"""What going back means, from what was changed and what is there now."""

from pathlib import Path

import pytest

from agent_core.changes import Change, ChangeSource, FileVersion
from agent_core.changes.revert import RestoreGroup, changed_paths, plan
from agent_core.kernel import RunId

A, B, C = Path("/w/a"), Path("/w/b"), Path("/w/c")


def v(name: str, *, kept: bool = True) -> FileVersion:
    return FileVersion(sha256=name, content=name if kept else None, size=1)


def change(
    path: Path,
    before: FileVersion | None,
    after: FileVersion | None,
    *,
    source: Path | None = None,
    by: ChangeSource = "tool",
    edit: str = "e",
    maybe_user_edit: bool = False,
) -> Change:
    op = "modify" if before and after else ("add" if after else "delete")
    return Change(
        id=edit,
        run=RunId("r"),
        call=None,
        by=by,
        op="move" if source else op,
        path=path,
        source=source,
        before=before,
        after=after,
        at_ms=0,
        maybe_user_edit=maybe_user_edit,
    )


def only(groups: tuple[RestoreGroup, ...]) -> RestoreGroup:
    (one,) = groups
    return one


@pytest.mark.parametrize(
    ("changes", "now", "status"),
    [
        ([change(A, v("1"), v("2"))], {A: v("2")}, "agentOnly"),
        ([change(A, v("1"), v("2"))], {A: v("1")}, "same"),
        ([change(A, v("1"), v("2"))], {A: v("3")}, "userEdited"),
        ([change(A, v("1"), v("2"))], {A: None}, "missing"),
        ([change(A, None, v("2"))], {A: v("2")}, "agentOnly"),
        ([change(A, None, v("2"))], {A: None}, "same"),
        ([change(A, v("1"), None)], {A: v("3")}, "userEdited"),
        ([change(A, v("1"), v("2")), change(A, v("3"), v("4"))], {A: v("4")}, "userEdited"),
        ([change(A, v("1"), v("2")), change(A, v("2"), v("1"))], {A: v("1")}, "same"),
        # The editor's undo took the newest change back.
        (
            [change(A, v("1"), v("2")), change(A, v("2"), v("3"), by="reject")],
            {A: v("2")},
            "agentOnly",
        ),
        (
            [change(A, v("1"), v("2")), change(A, v("2"), v("3"), by="reject")],
            {A: v("4")},
            "userEdited",
        ),
        (
            [change(A, v("0"), v("1")), change(A, v("1"), v("2")), change(A, v("2"), v("3"))],
            {A: v("1")},
            "agentOnly",
        ),
        (
            [change(A, v("1"), v("2"), by="process", maybe_user_edit=True)],
            {A: v("2")},
            "userEdited",
        ),
        ([change(B, v("1"), v("1"), source=A)], {A: None, B: v("1")}, "agentOnly"),
        ([change(B, v("1"), v("1"), source=A)], {A: v("9"), B: v("1")}, "userEdited"),
        ([change(B, v("1"), v("1"), source=A)], {A: v("1"), B: None}, "same"),
    ],
)
def test_the_status_says_who_changed_a_file(changes, now, status) -> None:
    assert only(plan(changes, now)).status == status


def test_files_tied_by_a_move_are_one_group_and_others_are_not() -> None:
    changes = [
        change(C, None, v("c")),
        change(B, v("1"), v("1"), source=A),
        change(B, v("1"), v("2")),
    ]
    now = {A: None, B: v("2"), C: v("c")}
    assert [one.paths for one in plan(changes, now)] == [(C,), (A, B)]
    assert plan(changes, now)[1].wanted == {A: v("1"), B: None}
    assert changed_paths(changes) == (C, A, B)


def test_what_was_not_kept_cannot_go_back_and_says_why() -> None:
    group = only(plan([change(A, v("1", kept=False), v("2"))], {A: v("2")}))
    assert group.why == "a cannot be taken back: what it held before was not kept"


def test_what_cannot_be_read_cannot_go_back() -> None:
    group = only(plan([change(A, v("1"), v("2"))], {}))
    assert (group.status, group.why) == ("userEdited", "a cannot be read as a file now")


def test_what_a_command_made_of_something_unknown_is_not_deleted() -> None:
    changes = [
        change(A, v("1", kept=False), None, by="process", edit="x"),
        change(B, None, v("2"), by="process", edit="x"),
        change(C, None, v("3"), by="process", edit="y"),
    ]
    groups = plan(changes, {A: None, B: v("2"), C: v("3")})
    assert [bool(one.why) for one in groups] == [True, True, False]


def test_the_same_text_in_a_buffer_and_on_the_disk_is_the_same() -> None:
    buffer = FileVersion(sha256="of the text", content="of the bytes", size=1, encoding="utf-16-le")
    disk = FileVersion(sha256="of the bytes", content="of the bytes", size=1, encoding="utf-16-le")
    assert only(plan([change(A, v("1"), buffer)], {A: disk})).status == "agentOnly"
