"""What can keep a review from being made.

A `UsageError` means that what was given cannot be used: `NotARepository`, `RevisionUnknown`, `ReviewFileInvalid`.
`GitFailed` means that Git could not do what was asked.
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
