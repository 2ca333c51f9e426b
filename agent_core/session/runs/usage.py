"""Tokens and money of a session, and how full its context is."""

from agent_core.events import UsageReport
from agent_core.messages import AssistantMessage, Usage
from agent_core.session.runs.budgets import RunUsage


class UsageTracker:
    """Adds up; the conductor writes, everybody reads reports."""

    def __init__(self, total: Usage, context_used: int | None) -> None:
        self._total = total
        self._run = Usage()
        self._answers = 0
        self._calls = 0
        self._began_s = 0.0
        self._context_used = context_used

    def begin_run(self, at_s: float) -> None:
        """Count a new run from zero.

        Args:
            at_s: The monotonic time at which it begins.
        """
        self._run = Usage()
        self._answers = 0
        self._calls = 0
        self._began_s = at_s

    def answered(self, message: AssistantMessage) -> None:
        """Count an answer of the model; its usage also sets the context size, unless it is zero."""
        self._answers += 1
        self.spent(message.usage)
        if message.usage.total:
            self._context_used = message.usage.total

    def returned(self) -> None:
        """Count the result of a tool call."""
        self._calls += 1

    def spent(self, usage: Usage) -> None:
        """Add usage outside the conversation, for example that of a summary."""
        self._total = self._total.plus(usage)
        self._run = self._run.plus(usage)

    def edited(self) -> None:
        """Reset the context size after an edit of the context: it is unknown until the next answer."""
        self._context_used = None

    def moved(self, context_used: int | None) -> None:
        """Set the context size after the conversation moved to another entry."""
        self._context_used = context_used

    def used(self, at_s: float) -> RunUsage:
        """Return what the current run has used up at a monotonic time."""
        seconds = at_s - self._began_s
        return RunUsage(tokens=self._run, answers=self._answers, calls=self._calls, seconds=seconds)

    def of_run(self, context_size: int) -> UsageReport:
        """Report the current or last run."""
        return self._report(self._run, context_size)

    def of_session(self, context_size: int) -> UsageReport:
        """Report everything."""
        return self._report(self._total, context_size)

    def _report(self, tokens: Usage, context_size: int) -> UsageReport:
        return UsageReport(
            tokens=tokens, context_used=self._context_used, context_size=context_size
        )
