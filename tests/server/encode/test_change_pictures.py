"""Change sets on the wire: places in the client's own counting, and nothing that is secret."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.changes.history import ChangeSet
from agent_core.changes.hunks import (
    FileReview,
    HunkOrigin,
    edited_by_agent,
    edited_by_user,
    revert_hunks,
)
from agent_core.changes.values import FileVersion
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.lsp.documents.positions import PositionEncoding
from tiller_server.lsp.encode.change_sets import SET_CHARS, TEXT_CHARS, change_set
from tiller_server.lsp.wire.changes import ChangeSet as Shape

PATH = Path("/w/a b.py")
MAKER = HunkOrigin(change="c", edit="e", run=RunId("r"), call=ToolCallId("t"), index=0)
SAVED = FileVersion(sha256="x", content=None, size=1)


def now(before: str, after: str) -> FileReview:
    return FileReview(
        path=PATH, origin=PATH, first=SAVED, last=SAVED, text=after,
        hunks=edited_by_agent((), before, after, MAKER), maker=MAKER,
    )  # fmt: skip


async def shown(*files: FileReview, encoding: PositionEncoding = "utf-16", **more: Any) -> Any:
    told = await change_set(ChangeSet(id="r", base="cp", files=files), encoding=encoding, **more)
    assert Shape.model_validate(told)
    return told


def places(told: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(
            (one[side][end]["line"], one[side][end]["character"])
            for side in ("before", "after")
            for end in ("start", "end")
        )
        for one in told["files"][0]["hunks"]
    ]


async def test_before_is_where_it_was_without_the_agent() -> None:
    told = await shown(now("a\nb\nc\n", "new\na\nc\nC\n"))
    assert places(told) == [
        ((0, 0), (0, 0), (0, 0), (1, 0)),
        ((1, 0), (2, 0), (2, 0), (2, 0)),
        ((3, 0), (3, 0), (3, 0), (4, 0)),
    ]
    assert [(one["oldText"], one["newText"]) for one in told["files"][0]["hunks"]] == [
        ("", "new\n"),
        ("b\n", ""),
        ("", "C\n"),
    ]
    assert told["files"][0]["uri"] == "file:///w/a%20b.py"


@pytest.mark.parametrize(
    ("encoding", "column"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)], ids=str
)
async def test_a_last_line_without_an_end_ends_in_the_clients_units(
    encoding: PositionEncoding, column: int
) -> None:
    told = await shown(now("a\n🦜", "a\n🦔"), encoding=encoding)
    assert places(told) == [((1, 0), (1, column), (1, 0), (1, column))]


async def test_what_is_gone_takes_no_place_and_what_the_user_touched_shows_as_it_is() -> None:
    text = "A\nb\nc\nD\n"
    file = now("a\nb\nc\nd\n", text)
    text, hunks = revert_hunks(text, file.hunks, {file.hunks[0].id})
    typed = text.replace("D\n", "D\nmine\n").replace("D", "DD")
    hunks = edited_by_user(hunks, text, typed)
    moved = FileReview(
        path=PATH, origin=PATH, first=SAVED, last=SAVED, text=typed, hunks=hunks, maker=MAKER
    )
    told = await shown(moved)
    assert [(one["state"], one["newText"]) for one in told["files"][0]["hunks"]] == [
        ("rejected", "A\n"),
        ("userEdited", "DD\nmine\n"),
    ]


async def test_secrets_do_not_leave() -> None:
    redactor = Redactor()
    redactor.hold("correct horse battery")
    told = await shown(now("a\n", "correct horse battery\n"), redactor=redactor)
    assert "correct horse" not in str(told)
    patched = await shown(now("a\n", "b\n"), redactor=redactor, patch="+correct horse battery\n")
    assert "correct horse" not in patched["patch"]
    assert patched["files"][0]["hunks"] == []


async def test_a_huge_text_is_cut_and_says_so() -> None:
    told = await shown(now("", "x" * 1_000_000 + "\n"))
    (hunk,) = told["files"][0]["hunks"]
    assert hunk["newText"] == "x" * TEXT_CHARS + f"… ({1_000_001 - TEXT_CHARS} more characters)"
    many = await shown(*[now("", "x" * TEXT_CHARS) for _ in range(2 * SET_CHARS // TEXT_CHARS)])
    assert len(str(many)) < 2 * SET_CHARS
