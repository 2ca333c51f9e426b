"""Workflow commands: every line is one of ours, whatever a model wrote."""

import re

from tests.support.review.reviews import a_finding, a_review, a_rich_review
from tiller_server.review.outputs import FORMATS

COMMAND = re.compile(r"::(error|warning|notice) (?:[a-zA-Z]+=[^,:]*,?)+::[^\n]*")


def test_each_finding_is_one_command_on_its_lines() -> None:
    finding = a_finding(end_line=14, severity="error", message="One.\nTwo: 100 %, sure.")
    assert FORMATS["github"](a_review(finding)) == (
        "::error file=src/cart.py,line=12,endLine=14,title=The total leaves out the last item (bug)"
        "::One.%0ATwo: 100 %25, sure.\n"
    )


def test_nothing_that_a_model_wrote_begins_a_command_of_its_own() -> None:
    evil = "x\n::add-mask::a\r\n::stop-commands::b\r##[group]c::error::d"
    review = a_review(
        a_finding("a,line=1::b\n::warning::c.py", title=evil, message=evil), partial=evil
    )
    lines = FORMATS["github"](review).splitlines()
    assert len(lines) == 2
    assert [line for line in lines if not COMMAND.fullmatch(line)] == []


def test_a_path_with_odd_bytes_can_be_printed() -> None:
    text = FORMATS["github"](a_rich_review())
    assert "bad\\udcff.py" in text
    assert all(COMMAND.fullmatch(line) for line in text.splitlines())


def test_a_review_without_findings_says_what_it_looked_at() -> None:
    assert FORMATS["github"](a_review()) == (
        "::notice title=Tiller review::Nothing found in 1 file of aaaaaaaaaaaa.\n"
    )
