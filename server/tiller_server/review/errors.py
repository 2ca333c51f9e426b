"""Errors that prevent a review.

A `UsageError` means that an input cannot be used: `NotARepository`, `RevisionUnknown`, `ReviewFileInvalid`.
`GitFailed` means that a command of Git failed.
"""

from agent_core.kernel.errors import TillerError, UsageError


class NotARepository(UsageError):
    """The folder is in no Git repository, or there is no Git."""


class RevisionUnknown(UsageError):
    """No commit of that name, or the clone is too shallow to reach it."""


class ReviewFileInvalid(UsageError):
    """A file that was given to a review cannot be used."""


class GitFailed(TillerError):
    """Git could not do what was asked."""
