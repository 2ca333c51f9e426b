"""Errors that prevent an evaluation."""

from agent_core.kernel.errors import UsageError


class TaskInvalid(UsageError):
    """A task cannot be used; the text names the file and the field."""


class EvaluationImpossible(UsageError):
    """The machine or the options do not allow an evaluation."""


class SuiteRefused(UsageError):
    """Tasks of a suite cannot be used, so it is not evaluated."""
