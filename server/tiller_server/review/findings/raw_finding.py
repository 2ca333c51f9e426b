"""Findings as a model reports them, before they are checked."""

from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Category, Severity


class RawFinding(Value, frozen=True, kw_only=True):
    """A finding in the model's words."""

    path: str
    line: int
    end_line: int
    severity: Severity
    category: Category
    title: str
    message: str
    evidence: str
    suggestion: str | None = None
    """Replacement for the lines, as the model wrote it; None: no suggestion."""
    confidence: float = 0.5
