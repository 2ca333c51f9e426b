"""Scores of a review: its findings against the seeded defects."""

from collections.abc import Sequence

from agent_core.kernel.values import Value
from tiller_server.evaluation.tasks.task import Defect
from tiller_server.review.findings.result import Finding


class ReviewScore(Value, frozen=True, kw_only=True):
    """Counts of one review, or sums of several."""

    defects: int = 0
    found: int = 0
    """Defects that a finding matches."""
    doubles: int = 0
    """Findings of a defect that another finding matches already."""
    noise: int = 0
    """Findings that match no defect."""
    lines: int = 0
    """Added and removed lines of the reviewed changes."""

    @property
    def recall(self) -> float | None:
        """Share of the defects that were found; None without defects."""
        return self.found / self.defects if self.defects else None

    @property
    def precision(self) -> float | None:
        """Share of the findings, doubles left out, that match a defect; None without findings."""
        findings = self.found + self.noise
        return self.found / findings if findings else None

    @property
    def noise_per_1000(self) -> float | None:
        """Findings without a defect for every 1,000 lines of the changes; None without lines."""
        return self.noise * 1000 / self.lines if self.lines else None

    def __add__(self, other: "ReviewScore") -> "ReviewScore":
        return ReviewScore(
            defects=self.defects + other.defects,
            found=self.found + other.found,
            doubles=self.doubles + other.doubles,
            noise=self.noise + other.noise,
            lines=self.lines + other.lines,
        )


def score_of(findings: Sequence[Finding], defects: Sequence[Defect], *, lines: int) -> ReviewScore:
    """Return the score of findings: each matches at most one defect, one that is not found yet if it can. Pure."""
    found: set[int] = set()
    doubles = noise = 0
    for finding in findings:
        matching = [number for number, one in enumerate(defects) if _overlap(finding, one)]
        if new := [number for number in matching if number not in found]:
            found.add(new[0])
        elif matching:
            doubles += 1
        else:
            noise += 1
    return ReviewScore(
        defects=len(defects), found=len(found), doubles=doubles, noise=noise, lines=lines
    )


def _overlap(finding: Finding, defect: Defect) -> bool:
    return (
        finding.path == defect.path
        and finding.line <= defect.last_line
        and defect.first_line <= finding.end_line
    )
