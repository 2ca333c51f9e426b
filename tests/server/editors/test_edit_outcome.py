"""What is found of an edit in a text, and what the model is told of it."""

from pathlib import Path

import pytest

from agent_core.kernel.errors import EditRefused, EditUnverified, StaleText
from tiller_server.lsp.editors.edit_verification import (
    ApplyResponse,
    EditMatch,
    edit_error,
    match_edit,
)

BEFORE = "a\nb\nc\nd\ne\n"
PATH = Path("/ws/a.py")


@pytest.mark.parametrize(
    ("before", "target", "now", "kind"),
    [
        (BEFORE, "a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n", "exact"),
        (BEFORE, "a\nB\nc\nd\ne\n", BEFORE, "unchanged"),
        (BEFORE, "a\nB\nc\nd\ne\n", "a\nB\nc\nd\ntyped\n", "with others"),
        (BEFORE, "a\nB\nc\nd\ne\n", "typed\nb\nc\nd\ne\n", "none"),
        (BEFORE, "a\nB\nc\nd\ne\n", "a\nb\nc\nd\ntyped\n", "none"),
        (BEFORE, "a\nB\nc\nd\ne\n", "a\ntyped\nc\nd\ne\n", "none"),
        (BEFORE, "x\na\nb\nc\nd\ne\n", "typed\na\nb\nc\nd\ne\n", "none"),
        (BEFORE, "a\nB\nc\nD\ne\n", "a\nB\nc\nd\ne\n", "partly"),
        (BEFORE, "a\nB\nc\nd\ne\n", "a\nBtyped\nc\nd\ne\n", "partly"),
        # Insertions and deletions.
        (BEFORE, "a\nb\nx\nc\nd\ne\n", "typed\na\nb\nx\nc\nd\ne\n", "with others"),
        (BEFORE, "a\nb\nx\nc\nd\ne\n", "typed\na\nb\nc\nd\ne\n", "none"),
        (BEFORE, "a\nb\nd\ne\n", "a\nb\nd\ne\ntyped\n", "with others"),
        (BEFORE, "a\nb\nd\ne\n", "a\nb\nc\nd\ne\ntyped\n", "none"),
        # Among equal lines nobody can tell which one came or went.
        ("}\n}\nx\n", "}\nx\n", "typed\n}\nx\n", "with others"),
        ("}\nx\n", "}\n}\nx\n", "}\nx\ntyped\n", "none"),
        ("}\nx\n", "}\n}\nx\n", "typed\n}\n}\nx\n", "with others"),
        # What editors decide for themselves.
        ("a\n", "a\nb", "a\nb\n", "alike"),
        ("a\r\n", "a\nb\n", "a\r\nb\r\n", "alike"),
        ("a\n", "a\r\n", "a\n\n", "none"),
    ],
)
def test_as_much_is_found_as_is_there(before: str, target: str, now: str, kind: str) -> None:
    assert match_edit(before, target, now).kind == kind


@pytest.mark.parametrize("kind", ["exact", "alike", "with others"])
@pytest.mark.parametrize("applied", [True, False, None])
def test_a_text_that_has_the_edit_proves_it_whatever_was_said(kind, applied) -> None:
    assert edit_error(EditMatch(kind=kind), ApplyResponse(applied=applied), path=PATH) is None


@pytest.mark.parametrize(
    ("kind", "applied", "expected"),
    [
        ("unchanged", True, StaleText),
        ("unchanged", False, EditRefused),
        ("unchanged", None, EditUnverified),
        ("none", True, StaleText),
        ("none", False, EditRefused),
        ("none", None, EditUnverified),
        ("partly", True, EditUnverified),
        ("partly", False, EditUnverified),
        ("partly", None, EditUnverified),
        (None, True, EditUnverified),
    ],
)
def test_each_other_case_has_its_own_truth(kind, applied, expected) -> None:
    found = None if kind is None else EditMatch(kind=kind)
    trouble = edit_error(found, ApplyResponse(applied=applied, reason="why"), path=PATH)
    assert type(trouble) is expected
    assert str(PATH) in str(trouble)


def test_places_are_named_by_line_and_not_without_end() -> None:
    before = "".join(f"{number}\n" for number in range(60))
    target = "".join(
        "" if number == 9 else f"{number}{'!' * (number % 3 == 0)}\n" for number in range(60)
    )
    found = match_edit(before, target, before.replace("0\n", "0!\n", 1))
    told = str(edit_error(found, ApplyResponse(applied=True), path=PATH))
    assert "there: line 1; missing: line 4, line 7, the deletion after line 9, line 12" in told
    assert "11 more" in told
