"""Findings are scored against seeded defects by path and lines."""

from tiller_server.evaluation.review_score import ReviewScore, score_of
from tiller_server.evaluation.tasks.task import Defect
from tiller_server.review.findings.result import Finding

DEFECTS = (
    Defect(path="a.py", first_line=3, last_line=5, title="one"),
    Defect(path="a.py", first_line=5, last_line=9, title="two"),
    Defect(path="b.py", first_line=1, last_line=1, title="three"),
)


def finding(path: str, line: int, end_line: int) -> Finding:
    return Finding(
        path=path,
        line=line,
        end_line=end_line,
        severity="error",
        category="bug",
        title="t",
        message="m",
        evidence="e",
        confidence=0.5,
        fingerprint="0" * 32,
    )


def test_a_finding_matches_a_defect_that_is_not_found_yet() -> None:
    findings = [
        finding("a.py", 5, 5),
        finding("a.py", 5, 5),
        finding("a.py", 1, 3),
        finding("a.py", 10, 12),
        finding("c.py", 1, 1),
    ]
    score = score_of(findings, DEFECTS, lines=500)
    assert score == ReviewScore(defects=3, found=2, doubles=1, noise=2, lines=500)
    assert (score.recall, score.precision, score.noise_per_1000) == (2 / 3, 0.5, 4.0)


def test_without_findings_or_defects_there_is_no_share() -> None:
    assert score_of([], DEFECTS, lines=0).precision is None
    assert ReviewScore().recall is None
    assert ReviewScore().noise_per_1000 is None


def test_scores_add_up() -> None:
    one = ReviewScore(defects=2, found=1, doubles=1, noise=0, lines=10)
    assert sum([one, one], ReviewScore()) == ReviewScore(
        defects=4, found=2, doubles=2, noise=0, lines=20
    )
