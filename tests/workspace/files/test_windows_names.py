"""What Windows would take for something else than it says is refused there."""

import pytest

from agent_core.workspace.files.windows_names import windows_refusal
from tests.workspace.files.hostile import all_cases


def test_every_windows_spelling_of_the_corpus_is_refused() -> None:
    cases = [case["path"] for case in all_cases() if case["platform"] == "win32"]
    assert cases
    assert [path for path in cases if windows_refusal(path) is None] == []


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        "src\\a.py",
        "..data/x",
        "C:\\ws\\a.py",
        "src/../a.py",
        "con.d/../a",
        "console.py",
        ".",
    ],
)
def test_a_plain_path_is_not(path: str) -> None:
    expected = "is the name of a device on Windows" if path.startswith("con.") else None
    assert windows_refusal(path) == expected


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("\\\\server\\share\\x", "another machine"),
        ("c:a.txt", "in which a drive is"),
        ("a\\..\\..\\b", "leads outside"),
        ("a.txt:stream", "hidden stream"),
        ("src/nul.txt", "name of a device"),
        ("COM\u00b9", "name of a device"),
        ("a.txt.", "ends in a dot"),
        ("sub /x", "ends in a dot or space"),
    ],
)
def test_the_reason_is_said(path: str, why: str) -> None:
    assert why in (windows_refusal(path) or "")
