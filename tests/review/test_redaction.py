"""No report of a review holds a secret: not in the model's words, not in what it quotes, in no format."""

from dataclasses import replace

import pytest

from agent_core.kernel.redaction.redactor import Redactor
from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.review.reviews import a_finding, a_review, a_suggestion
from tests.support.workspace.repositories import Repository
from tiller_server.review.findings.redaction import redacted
from tiller_server.review.findings.relocation import moved
from tiller_server.review.findings.result import Review
from tiller_server.review.git.revisions import WORKING_TREE
from tiller_server.review.outputs import FORMATS
from tiller_server.review.outputs.json_report import read_json, render_json

pytestmark = pytest.mark.timeout(60)
SECRET = "plain-words-nobody-would-take-for-a-key"
CODE = f'A = 1\nKEY = "{SECRET}"\nB = 2\n'


@pytest.fixture
def there(reviewing: Reviewing, repository: Repository) -> Reviewing:
    repository.commit("Begin", {"a.py": "A = 1\nB = 2\n"})
    repository.write("a.py", CODE)
    return replace(reviewing, env={"GITHUB_TOKEN": SECRET})


async def made(there: Reviewing) -> Review:
    long = "x" * (4_000 - 10)
    found = [
        a_report(
            "a.py",
            2,
            f'KEY = "{SECRET}"',
            title=f"It says {SECRET}",
            message=f"The token {SECRET}.",
        ),
        a_report("a.py", 1, "A = 1", message=f"{long}{SECRET}", category="tests"),
        a_report("a.py", 3, "B = 2", suggestion=f'B = "{SECRET}"', category="documentation"),
        a_report("a.py", 3, "no such line", title=f"Refused {SECRET}"),
    ]
    return await there.review(
        reports(*found), says(f"I was told {SECRET}."), base="HEAD", head=WORKING_TREE
    )


@pytest.mark.parametrize("name", FORMATS)
async def test_what_the_model_says_is_in_no_format(there: Reviewing, name: str) -> None:
    review = await made(there)
    assert len(review.findings) == 3
    assert [one.title[:8] for one in review.dropped] == ["Refused "]
    text = FORMATS[name](review)
    assert SECRET not in text
    assert SECRET[:10] not in text, "a part that is left of it"


async def test_a_suggestion_with_a_secret_is_left_out(there: Reviewing) -> None:
    review = await made(there)
    assert [one.suggestion for one in review.findings] == [None, None, None]


async def test_a_finding_about_a_secret_still_stands_in_the_next_review(there: Reviewing) -> None:
    first = await made(there)
    about = next(one for one in first.findings if one.line == 2)
    assert "[redacted" in about.evidence
    earlier = read_json(render_json(first).encode(), name="r")
    there.repository.write("a.py", f"NEW = 0\n{CODE}")
    again = await there.review(says("."), base="HEAD", head=WORKING_TREE, earlier=earlier)
    lines = [one.line for one in again.findings if one.fingerprint == about.fingerprint]
    assert lines == [3]
    assert about.fingerprint not in again.fixed
    there.repository.write("a.py", "A = 1\nB = 2\nC = 3\n")
    gone = await there.review(says("."), base="HEAD", head=WORKING_TREE, earlier=earlier)
    assert about.fingerprint in gone.fixed


def test_everything_that_is_text_is_looked_through() -> None:
    plain = a_review(
        summary=SECRET,
        partial=SECRET,
        findings=(
            a_finding(
                f"{SECRET}.py", title=SECRET, message=SECRET, evidence=SECRET,
                suggestion=a_suggestion(replacement=f"{SECRET}\n"),
            ),
        ),
    )  # fmt: skip
    assert SECRET in render_json(plain)
    assert SECRET not in render_json(redacted(plain, Redactor([SECRET])))


def test_without_a_secret_a_review_stays_as_it_is() -> None:
    plain = a_review(findings=(a_finding(suggestion=a_suggestion()),))
    assert redacted(plain, Redactor([SECRET])) == plain


def test_a_finding_without_a_mark_is_looked_for_by_its_words_alone() -> None:
    assert moved(a_finding(evidence="gone"), ["a", "b"]) is None
