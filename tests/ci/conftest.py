"""The repository and the provider that the reviews' tests have."""

from tests.review.conftest import repository, reviewing

__all__ = ["repository", "reviewing"]
