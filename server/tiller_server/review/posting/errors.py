"""Errors that prevent the posting of a review.

UsageError
└── TargetMissing       no target, or no token for it, is known
PostingFailed           the host did not accept a request; the message advises what to do
├── HostRefused         the token, its rights or the address are wrong: a retry does not help
├── PlaceRefused        the host does not know the line or the file as part of the change
├── HostLimited         the host requires a longer wait than a job should have
└── HostUnsure          the host failed, or the connection broke: the request may have been executed
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

    def __init__(self, message: str, *, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class HostUnsure(PostingFailed):
    """The host failed or was cut off: look at what is there before anything is sent again."""

    retryable = True
