"""Posts a review where people talk about the change: as comments on its lines, and one summary."""

from tiller_server.review.posting.ci_environment import (
    GiteaPull,
    GitHubPull,
    GitLabMerge,
    PostingTarget,
    target_from,
)
from tiller_server.review.posting.errors import HostRefused, PostingFailed, TargetMissing
from tiller_server.review.posting.post import PostingResult, plan_review, post_review

__all__ = [
    "GitHubPull",
    "GitLabMerge",
    "GiteaPull",
    "HostRefused",
    "PostingFailed",
    "PostingResult",
    "PostingTarget",
    "TargetMissing",
    "plan_review",
    "post_review",
    "target_from",
]
