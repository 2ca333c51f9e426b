"""Repairs of what a review found, with real tests of a real repository as the judge."""

import sys
from pathlib import Path

import pytest

from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.review.reviews import a_finding, a_suggestion
from tests.support.workspace.repositories import Repository
from tiller_server.review.findings.result import Review
from tiller_server.review.repair import FixOrder, RepairResult, repair, with_suggestions

pytestmark = [pytest.mark.timeout(90)]

SUMS = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
CHECK = "import sums\n\nassert sums.add(1, 2) == 3\nassert sums.sub(3, 1) == 2\n"
TEST = f"{sys.executable} -B check.py"


@pytest.fixture
def branch(repository: Repository) -> Repository:
    """Return a repository in which both functions are wrong at the head."""
    repository.commit("Begin", {"sums.py": SUMS, "check.py": CHECK})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.write("sums.py", SUMS.replace("a - b", "b - a").replace("a + b", "a * b"))
    repository.commit("Break")
    return repository


async def found(reviewing: Reviewing, *suggestions: tuple[int, str, str]) -> Review:
    """Review; each suggestion is a line, what stands there and what should."""
    listed = [
        a_report("sums.py", line, old, suggestion=f"    {new}", title=f"Not {old}")
        for line, old, new in suggestions
    ]
    return await reviewing.review(reports(*listed), says("Two."))


RIGHT = ((2, "return a * b", "return a + b"), (6, "return b - a", "return a - b"))


async def repaired(reviewing: Reviewing, made: Review, **order: object) -> RepairResult:
    return await repair(made, FixOrder(**order), reviewing.request())  # pyright: ignore[reportArgumentType] - fields by name


def applied(branch: Repository, patch: bytes) -> str:
    branch.git("apply", "--check", stdin=patch)
    branch.git("apply", stdin=patch)
    return branch.read("sums.py")


async def test_suggestions_that_make_the_tests_pass_become_a_patch(
    reviewing: Reviewing, branch: Repository
) -> None:
    fixed = await repaired(reviewing, await found(reviewing, *RIGHT), test=TEST)
    assert (len(fixed.kept), fixed.left, fixed.judged) == (2, (), True)
    assert branch.git("status", "--porcelain") == "", "the repository stays as it is"
    assert applied(branch, fixed.patch) == SUMS


async def test_tests_that_fail_anyway_judge_nothing_good(
    reviewing: Reviewing, branch: Repository
) -> None:
    fixed = await repaired(reviewing, await found(reviewing, RIGHT[0]), test=TEST)
    assert fixed.patch == b""
    assert [why for _, why in fixed.left] == ["the tests fail with and without it"]


async def test_a_suggestion_that_breaks_the_tests_is_left_out_and_the_others_stay(
    reviewing: Reviewing, branch: Repository
) -> None:
    branch.write("sums.py", SUMS.replace("a + b", "b + a").replace("a - b", "-b + a"))
    branch.commit("Odd, but right")
    wrong = (6, "return -b + a", "return b - a")
    made = await found(reviewing, (2, "return b + a", "return a + b"), wrong)
    fixed = await repaired(reviewing, made, test=TEST)
    assert [one.line for one in fixed.kept] == [2]
    assert [(one.line, why) for one, why in fixed.left] == [(6, "the tests fail with it")]
    assert "return -b + a" in applied(branch, fixed.patch)


async def test_without_a_test_nobody_has_judged(reviewing: Reviewing, branch: Repository) -> None:
    fixed = await repaired(reviewing, await found(reviewing, *RIGHT))
    assert (len(fixed.kept), fixed.judged) == (2, False)


async def test_suggestions_for_the_same_lines_do_not_both_land(
    reviewing: Reviewing, branch: Repository
) -> None:
    made = await found(reviewing, RIGHT[0], (2, "return a * b", "return b + a"))
    fixed = await repaired(reviewing, made)
    assert len(fixed.kept) == 1
    assert len(made.findings) + len(made.dropped) == 2


async def test_the_agent_repairs_what_suggestions_do_not(
    reviewing: Reviewing, branch: Repository
) -> None:
    made = await found(reviewing, RIGHT[0])
    swap = {"path": "sums.py", "edits": [{"oldText": "b - a", "newText": "a - b"}]}
    reviewing.provider.script(
        [
            {"text": "", "tool_calls": [{"name": "read", "arguments": {"path": "sums.py"}}]},
            {"text": "", "tool_calls": [{"name": "edit", "arguments": swap}]},
            says("Repaired."),
        ]
    )
    fixed = await repair(made, FixOrder(by="agent", test=TEST), reviewing.request(trusted=True))
    assert fixed.judged
    assert applied(branch, fixed.patch) == SUMS


async def test_a_link_is_not_written_through(
    reviewing: Reviewing, branch: Repository, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("X = 1\n", encoding="utf-8")
    (branch.root / "link.py").symlink_to(outside)
    branch.commit("A link")
    report = a_report("link.py", 1, str(outside), suggestion="gone")
    made = await reviewing.review(reports(report), says("."))
    await repaired(reviewing, made)
    assert outside.read_text("utf-8") == "X = 1\n"


def test_ends_of_lines_stay_as_they_are() -> None:
    finding = a_finding(line=2, suggestion=a_suggestion(line=2, end_line=2, replacement="B\nC\n"))
    assert with_suggestions(b"a\r\nb\r\nc\r\n", [finding]) == b"a\r\nB\r\nC\r\nc\r\n"
    gone = a_finding(line=2, suggestion=a_suggestion(line=2, end_line=2, replacement=""))
    assert with_suggestions(b"a\nb\nc", [gone]) == b"a\nc"
