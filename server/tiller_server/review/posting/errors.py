"""What can keep a review from being posted.

UsageError
└── TargetMissing       nothing says where to post, or with which token
PostingFailed           the host did not take it; one sentence says what to do
├── HostRefused         the token, its rights or the address are wrong: trying again does not help
├── PlaceRefused        the host does not know the line or the file as part of the change
├── HostLimited         the host wants us to wait longer than a job should
└── HostUnsure          the host failed, or was cut off: what was sent may have been done
"""

from agent_core.kernel.errors import TillerError, UsageError


class TargetMissing(UsageError):
    """Nothing says where to post, or with which token."""


class PostingFailed(TillerError):
    """The host did not take what was sent."""


class HostRefused(PostingFailed):
    """The token, its rights or the address are wrong."""


class PlaceRefused(PostingFailed):
    """The host does not know the line or the file as part of the change."""


class HostLimited(PostingFailed):
    """The host wants us to wait longer than a job should."""

    retryable = True


class HostUnsure(PostingFailed):
    """The host failed or was cut off: look at what is there before anything is sent again."""

    retryable = True
