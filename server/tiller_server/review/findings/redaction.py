"""Removal of secrets from a review, before any part of it is written, shown or posted."""

from msgspec.structs import replace

from agent_core.kernel.redaction.redactor import TextRedactor
from tiller_server.review.findings.result import Dropped, Finding, Review


def redacted(review: Review, cleaner: TextRedactor) -> Review:
    """Return a review without secrets. Identifiers of commits, models and findings stay. Pure."""
    text = cleaner.text
    header = review.header
    return replace(
        review,
        header=replace(
            header,
            base=replace(header.base, ref=text(header.base.ref)),
            head=replace(header.head, ref=text(header.head.ref)),
            session=None if header.session is None else text(header.session),
        ),
        summary=text(review.summary),
        findings=tuple(_finding(one, cleaner) for one in review.findings),
        dropped=tuple(_dropped(one, cleaner) for one in review.dropped),
        partial=None if review.partial is None else text(review.partial),
        files=tuple(
            replace(
                one,
                path=text(one.path),
                old_path=None if one.old_path is None else text(one.old_path),
            )
            for one in review.files
        ),
        left_out=tuple(
            replace(one, path=text(one.path), reason=text(one.reason)) for one in review.left_out
        ),
    )


def _finding(finding: Finding, cleaner: TextRedactor) -> Finding:
    suggestion = finding.suggestion
    if suggestion is not None and cleaner.text(suggestion.replacement) != suggestion.replacement:
        # What is left of it would not be the code that was meant.
        suggestion = None
    return replace(
        finding,
        path=cleaner.text(finding.path),
        title=cleaner.text(finding.title),
        message=cleaner.text(finding.message),
        evidence=cleaner.text(finding.evidence),
        suggestion=suggestion,
    )


def _dropped(dropped: Dropped, cleaner: TextRedactor) -> Dropped:
    return replace(
        dropped,
        path=cleaner.text(dropped.path),
        title=cleaner.text(dropped.title),
        reason=cleaner.text(dropped.reason),
    )
