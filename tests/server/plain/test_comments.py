"""Comments that ask for something are found in whatever language, and nothing else is taken for one."""

import pytest

from tiller_server.lsp.plain.comment_requests import MOST_LINES, CommentRequest, requests_in


def found(text: str, line0: int | None = None) -> list[CommentRequest]:
    rows = text.split("\n")
    first, last = (0, len(rows) - 1) if line0 is None else (line0, line0)
    return [*requests_in(rows, first_line0=first, last_line0=last)]


@pytest.mark.parametrize(
    "row",
    [
        "// tiller: make it faster",
        "    x = 1;  // tiller: make it faster",
        "foo()// tiller: make it faster",
        "/// agent: make it faster",
        "# tiller: make it faster",
        "x = 1  # Tiller: make it faster",
        "-- tiller: make it faster",
        "; tiller: make it faster",
        ";; agent: make it faster",
        "mov a, b ; tiller: make it faster",
        "<!-- tiller: make it faster -->",
        "/* tiller: make it faster */",
        "/** @tiller: make it faster */",
        " * tiller: make it faster",
        "(* tiller: make it faster *)",
        "{- tiller: make it faster -}",
        "<%-- tiller: make it faster --%>",
        "% tiller: make it faster",
        '" tiller: make it faster',
        "' tiller: make it faster",
        '"""tiller: make it faster"""',
        "! agent: make it faster",
        "REM tiller: make it faster",
        "dnl tiller: make it faster",
        "#tiller:make it faster",
    ],
)
def test_a_comment_asks_in_every_language(row: str) -> None:
    assert found(row) == [CommentRequest(text="make it faster", first_line0=0, last_line0=0)]


@pytest.mark.parametrize(
    "row",
    [
        "",
        "// tiller:",
        "# tiller: ",
        "tiller: make it faster",
        "user-agent: somebody",
        "fetch('http://agent:secret@example.org')",
        "url = https://tiller: x",
        'say("agent: hello")',
        "a * agent: b",
        "# the tiller: of a ship",
        "# tillers: many",
        "/* tiller: */",
    ],
)
def test_what_is_no_such_comment_asks_nothing(row: str) -> None:
    assert found(row) == []


def test_lines_of_one_comment_are_one_request() -> None:
    text = "def f():\n    # tiller: split this\n    # into two parts\n    # and test both\n    pass"
    expected = CommentRequest(
        text="split this into two parts and test both", first_line0=1, last_line0=3
    )
    assert found(text) == [expected]
    assert found(text, 3) == [expected]
    assert found(text, 0) == []
    assert found(text, 4) == []


def test_a_block_goes_on_to_its_end() -> None:
    text = "/* tiller: split this\n * into two\n */\nint x; // not this"
    assert found(text) == [CommentRequest(text="split this into two", first_line0=0, last_line0=2)]
    html = "<!-- tiller: say more\n     about dogs --> <p>Dogs</p>"
    assert found(html) == [CommentRequest(text="say more about dogs", first_line0=0, last_line0=1)]


def test_a_blank_comment_line_and_code_end_a_request() -> None:
    assert found("# tiller: one\n#\n# a remark")[0].last_line0 == 0
    assert found("// tiller: one\nfoo(); // two")[0].text == "one"


def test_each_of_several_is_one_of_its_own() -> None:
    words = [one.text for one in found("# tiller: one\n# tiller: two\nx\n# agent: three")]
    assert words == ["one", "two", "three"]


def test_a_comment_without_an_end_is_cut() -> None:
    (one,) = found("/* tiller: go\n" + "more\n" * 500)
    assert one.last_line0 == MOST_LINES


def test_places_can_be_beyond_the_text() -> None:
    assert requests_in([], first_line0=0, last_line0=0) == ()
    assert requests_in(["# tiller: x"], first_line0=7, last_line0=9) == ()
