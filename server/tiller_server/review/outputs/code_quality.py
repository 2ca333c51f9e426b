"""A review as a code quality report, which GitLab shows in a merge request without a token of ours."""

import json
from collections.abc import Mapping
from typing import Final

from agent_core.kernel.json import JsonObject
from agent_core.kernel.text import one_line, readable
from tiller_server.review.findings.result import Finding, Review, Severity

SEVERITIES: Final[Mapping[Severity, str]] = {
    "error": "critical",
    "warning": "major",
    "note": "info",
}


def render_code_quality(review: Review) -> str:
    """Write the findings as GitLab's list of issues; it has no place for anything else of a review."""
    issues = [_issue(finding) for finding in review.findings]
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(finding: Finding) -> JsonObject:
    return {
        "type": "issue",
        "check_name": f"tiller/{finding.category}",
        "description": one_line(f"{finding.title}: {finding.message}"),
        "content": {"body": finding.message},
        "severity": SEVERITIES[finding.severity],
        "fingerprint": finding.fingerprint,
        "location": {
            "path": readable(finding.path),
            "lines": {"begin": finding.line, "end": finding.end_line},
        },
    }
