"""Every decision page has the same form, stands in the index, and is there when something cites it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT
from tests.support.harness.sources import text_files

FOLDER = "agent_core/decisions"
MOST_LINES = 40
NUMBER = re.compile(r"\d{4}")
NAME = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")
HEAD = re.compile(
    r"# (?P<number>\d{4}) \S.*\n\n"
    r"- Date: \d{4}-\d\d-\d\d\n"
    r"- Status: (?P<status>.+)\n"
    r"- Files: (?P<files>.+)\n\n"
)
STATUS = re.compile(r"accepted|(?:superseded|amended) by \d{4}(?:, \d{4})*")
SECTIONS = ("Context", "Decision", "Price")
ROW = re.compile(r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \| (.+) \|$", re.MULTILINE)
CITED = re.compile(
    r"\bdecisions?(?: pages?)?[ \t]+\[?(\d{4}(?:(?:, | and )\d{4})*)|" + FOLDER + r"/(\d{4})-",
    re.IGNORECASE,
)


def test_every_page_has_the_form_of_a_decision() -> None:
    assert [
        f"{name}: {fault}" for name, text in _pages().items() for fault in _faults(name, text)
    ] == []


def test_no_number_stands_for_two_decisions() -> None:
    assert [number for number, count in Counter(n[:4] for n in _pages()).items() if count > 1] == []


def test_the_index_has_one_row_for_each_page() -> None:
    index = (ROOT / FOLDER / "README.md").read_text(encoding="utf-8")
    expected = [
        (name[:4], text.splitlines()[0][7:], name, head["status"])
        for name, text in _pages().items()
        if (head := HEAD.match(text))
    ]
    assert sorted(ROW.findall(index)) == sorted(expected)


def test_every_cited_decision_has_a_page() -> None:
    known = {name[:4] for name in _pages()}
    assert [cited for path, text in text_files() for cited in _unknown(path, text, known)] == []


@pytest.mark.parametrize(
    "text", ["see decision 9999", "decisions 0001 and 9999", f"{FOLDER}/9999-x.md"]
)
def test_a_citation_of_a_missing_page_is_noticed(text: str) -> None:
    assert list(_unknown("here", text, {"0001"})) == ["here: decision 9999"]


PAGE = (
    "# 0001 A title\n\n- Date: 2026-01-31\n- Status: accepted\n- Files: README.md\n\n"
    "## Context\na\n\n## Decision\nb\n\n## Price\nc\n"
)


def test_a_page_of_this_form_has_no_fault() -> None:
    assert list(_faults("0001-a-title.md", PAGE)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# 0001", "# 0002"),
        ("2026-01-31", "soon"),
        ("accepted", "superseded"),
        ("accepted", "amended by 9999"),
        ("README.md", "nowhere.py"),
        ("## Price\nc\n", ""),
        ("## Price\nc\n", "## Price\n"),
        ("b\n", "b\n" * MOST_LINES),
    ],
)
def test_a_fault_of_a_page_is_noticed(old: str, new: str) -> None:
    assert len(list(_faults("0001-a-title.md", PAGE.replace(old, new)))) == 1


def _pages() -> Mapping[str, str]:
    pages = sorted((ROOT / FOLDER).glob("*.md"))
    return {
        page.name: page.read_text(encoding="utf-8") for page in pages if page.name != "README.md"
    }


def _faults(name: str, text: str) -> Iterator[str]:
    if len(text.splitlines()) > MOST_LINES:
        yield f"more than {MOST_LINES} lines"
    named, head = NAME.fullmatch(name), HEAD.match(text)
    if named is None or head is None:
        yield "the name is not 0001-words.md, or the heading, date, status and files are not as in the others"
        return
    if named[1] != head["number"]:
        yield f"the heading says {head['number']}"
    if STATUS.fullmatch(head["status"]) is None:
        yield f"the status {head['status']!r} is not known"
    known = {page.name[:4] for page in (ROOT / FOLDER).glob("0*.md")}
    for number in NUMBER.findall(head["status"]):
        if number not in known:
            yield f"the status names {number}, which has no page"
    for file in head["files"].split(", "):
        if not (ROOT / Path(file)).exists():
            yield f"{file} does not exist"
    parts = re.split(r"^## (.+)\n", text[head.end() :], flags=re.MULTILINE)
    if tuple(parts[1::2]) != SECTIONS or not all(part.strip() for part in parts[2::2]):
        yield f"the sections are not {', '.join(SECTIONS)}, each with text"


def _unknown(path: str, text: str, known: set[str]) -> Iterator[str]:
    if path == Path(__file__).relative_to(ROOT).as_posix():
        return
    for numbers, page in CITED.findall(text):
        for number in NUMBER.findall(numbers or page):
            if number not in known:
                yield f"{path}: decision {number}"
