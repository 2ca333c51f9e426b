"""Reviews for the tests of what is made of them."""

from dataclasses import replace
from hashlib import sha256

from tiller_server.review.findings.result import (
    Commit,
    Dropped,
    Finding,
    LeftOut,
    Review,
    ReviewedFile,
    ReviewHeader,
    Suggestion,
)

BASE = "b" * 40
HEAD = "a" * 40


def a_finding(path: str = "src/cart.py", line: int = 12, **others: object) -> Finding:
    """Give a finding; the fingerprint follows from path and line unless it is given."""
    plain = Finding(
        path=path,
        line=line,
        end_line=line,
        severity="warning",
        category="bug",
        title="The total leaves out the last item",
        message="`range(n - 1)` stops one short.\n\nUse `range(n)`.",
        evidence="    for index in range(n - 1):",
        confidence=0.8,
        fingerprint=sha256(f"{path}:{line}".encode(errors="surrogatepass")).hexdigest()[:32],
    )
    return replace(plain, **others)


def a_suggestion(line: int = 12, **others: object) -> Suggestion:
    plain = Suggestion(line=line, end_line=line, replacement="    for index in range(n):\n")
    return replace(plain, **others)


def a_header(**others: object) -> ReviewHeader:
    plain = ReviewHeader(
        version="0.1.0",
        model="lab/m",
        prompt_hash="0123456789abcdef",
        base=Commit(ref="origin/main", sha=BASE),
        head=Commit(ref="HEAD", sha=HEAD),
        merge_base=BASE,
        started_at="2026-11-22T10:00:00.000Z",
        ended_at="2026-11-22T10:01:30.000Z",
        turns=4,
        tokens=12_345,
        cost_usd=0.0421,
    )
    return replace(plain, **others)


def a_review(*findings: Finding, head: str = HEAD, **others: object) -> Review:
    plain = Review(
        header=a_header(head=Commit(ref="HEAD", sha=head)),
        summary="The change adds a cart.",
        findings=findings,
        files=(ReviewedFile(path="src/cart.py", additions=30, deletions=2),),
    )
    return replace(plain, **others)


def a_rich_review() -> Review:
    """Give one with everything in it."""
    return a_review(
        a_finding(severity="error", suggestion=a_suggestion()),
        a_finding(
            line=40,
            end_line=44,
            category="security",
            suggestion=a_suggestion(41, end_line=42, replacement=""),
        ),
        a_finding("docs/read me%20ünï.md", 1, severity="note", category="documentation"),
        a_finding("bad\udcff.py", 3, category="prompt-injection", in_diff=False),
        dropped=(
            Dropped(path="src/x.py", line=None, title="Wrong", reason="the quoted text is nowhere"),
        ),
        left_out=(LeftOut(path="package-lock.json", reason="generated"),),
        partial="the budget of 2 USD was used up after 3 of 5 parts",
        stopped="budget",
        fixed=("f" * 32,),
    )
