"""Errors that prevent a review: inputs that cannot be used.

`RepositoryUnusable` and `GitFailed` of `agent_core.workspace.git` prevent one too.
"""

from agent_core.kernel.errors import UsageError


class RevisionUnknown(UsageError):
    """No commit of that name, or the clone is too shallow to reach it."""


class ReviewFileInvalid(UsageError):
    """A file that was given to a review cannot be used."""
