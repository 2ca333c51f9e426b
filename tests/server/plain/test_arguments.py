"""Whatever people write behind a command is understood, or refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.plain.commands.arguments import (
    lines_of,
    object_of,
    place_of,
    problems_of,
    text_argument,
)
from tiller_server.lsp.plain.task_prompts import TaskDiagnostic, TaskLocation

ROOT = Path("/work space")


def make(uri: str, lines0: tuple[int, int] | None) -> TaskLocation | None:
    path = path_of(uri)
    return None if path is None else TaskLocation(uri=uri, name=str(path), lines0=lines0)


def place(*arguments: Any, root: Path | None = ROOT) -> TaskLocation | None:
    return place_of("tiller.fix", arguments, root=root, make=make)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ""),
        (["do it"], "do it"),
        (["do", "it", 3], "do it 3"),
        ([{"text": "do it"}], "do it"),
        ([{}], ""),
        ([{"text": None}], ""),
    ],
)
def test_words_come_in_pieces_or_in_an_object(arguments: list[Any], words: str) -> None:
    assert text_argument("tiller.send", arguments) == words


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([["do it"]], "tiller.send takes words, or {'text': …}, got [['do it']]"),
        ([None], "tiller.send takes words, or {'text': …}, got [None]"),
        ([True], "tiller.send takes words, or {'text': …}, got [True]"),
        ([{"words": "x"}], "tiller.send knows no 'words'; it takes `text`"),
        ([{"text": 3}], "tiller.send: text cannot be 3"),
    ],
)
def test_what_are_no_words_is_said(arguments: list[Any], complaint: str) -> None:
    with pytest.raises(RpcError) as refused:
        text_argument("tiller.send", arguments)
    assert (refused.value.code, refused.value.message) == (INVALID_PARAMS, complaint)


@pytest.mark.parametrize(
    ("arguments", "uri", "lines0"),
    [
        (["a.py"], "file:///work%20space/a.py", None),
        (["a.py", 3], "file:///work%20space/a.py", (2, 2)),
        (["a.py", "3", "7"], "file:///work%20space/a.py", (2, 6)),
        (["/x/a.py"], "file:///x/a.py", None),
        (["file:///x/a.py", 1], "file:///x/a.py", (0, 0)),
        ([{"path": "a.py", "line": 2}], "file:///work%20space/a.py", (1, 1)),
        ([{"uri": "file:///x", "line": 2, "lastLine": 4}], "file:///x", (1, 3)),
        (
            [{"uri": "file:///x", "range": {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}}}],
            "file:///x",
            (1, 2),
        ),
    ],
)  # fmt: skip
def test_a_place_is_a_path_and_lines(
    arguments: list[Any], uri: str, lines0: tuple[int, int] | None
) -> None:
    found = place(*arguments)
    assert found is not None
    assert (found.uri, found.lines0) == (uri, lines0)


def test_nothing_said_is_no_place() -> None:
    assert place() is None
    assert place({}) is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([3], "tiller.fix takes a path and lines from 1, got [3]"),
        (["a", "b"], "tiller.fix takes a path and lines from 1, got ['a', 'b']"),
        (["a", 0], "tiller.fix: lines 0 to 0 make no sense; they count from 1"),
        (["a", 5, 3], "tiller.fix: lines 5 to 3 make no sense; they count from 1"),
        ([""], "tiller.fix: '' is no path"),
        (["a\0b"], "tiller.fix: 'a\\x00b' is no path"),
        ([{"uri": "untitled:1"}], "tiller.fix: 'untitled:1' is no file"),
        ([{"uri": "file:///x", "range": {}}], "tiller.fix: range cannot be {}"),
        ([{"uri": "file:///x", "line": True}], "tiller.fix: line cannot be True"),
        (
            [{"file": "x"}],
            "tiller.fix knows no 'file'; it takes `uri`, `path`, `range`, `line`, `lastLine`, `diagnostics`",
        ),
    ],
)
def test_what_is_no_place_is_said(arguments: list[Any], complaint: str) -> None:
    with pytest.raises(RpcError) as refused:
        place(*arguments)
    assert refused.value.message == complaint


def test_without_a_folder_a_path_must_be_absolute() -> None:
    with pytest.raises(RpcError, match="no folder is open"):
        place("a.py", root=None)
    assert place("/a.py", root=None) is not None


def test_an_object_stands_alone() -> None:
    with pytest.raises(RpcError, match="takes one object with `remove`"):
        object_of("tiller.rules", [{}, {}], members={"remove": str})


def test_problems_are_read_and_the_rest_is_passed_over() -> None:
    good = {"range": {"start": {"line": 4}}, "message": "no", "source": "ruff", "code": "E1"}
    odd: list[Any] = [{}, 3, None, {"message": "", "range": {"start": {"line": 1}}}]
    assert problems_of([{"diagnostics": [good, *odd]}]) == (
        TaskDiagnostic(line0=4, message="no", source="ruff E1"),
    )
    assert problems_of(["a.py"]) == ()


@pytest.mark.parametrize(
    "value", [None, {}, {"start": {"line": -1}, "end": {"line": 1}}, {"start": {"line": True}}]
)
def test_odd_ranges_are_none(value: object) -> None:
    assert lines_of(value) is None
