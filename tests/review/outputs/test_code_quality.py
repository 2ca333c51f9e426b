"""GitLab's code quality report: a list of issues with the five fields that GitLab reads."""

import json

from tests.support.review.reviews import a_finding, a_review, a_rich_review
from tiller_server.review.outputs import FORMATS

SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


def test_each_finding_is_an_issue_that_gitlab_can_read() -> None:
    issues = json.loads(FORMATS["gitlab"](a_rich_review()))
    assert len(issues) == 4
    for issue in issues:
        assert issue["description"]
        assert "\n" not in issue["description"]
        assert issue["check_name"].startswith("tiller/")
        assert issue["severity"] in SEVERITIES
        assert not issue["location"]["path"].startswith(("./", "/"))
        assert issue["location"]["lines"]["begin"] >= 1
    assert len({issue["fingerprint"] for issue in issues}) == 4


def test_a_finding_is_told_by_its_title_and_message() -> None:
    (issue,) = json.loads(FORMATS["gitlab"](a_review(a_finding(severity="error"))))
    assert issue["severity"] == "critical"
    assert issue["description"].startswith("The total leaves out the last item: `range(n - 1)`")


def test_a_review_without_findings_is_an_empty_list() -> None:
    assert json.loads(FORMATS["gitlab"](a_review())) == []
