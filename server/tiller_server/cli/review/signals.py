"""Signals during `tiller review`.

The first one while the model works stops only the model, and the findings so far are shown; any other cancels all.
"""

from collections.abc import Generator
from contextlib import contextmanager

import anyio
import msgspec
from msgspec import Struct

from tiller_server.cli.review.progress_view import ReviewProgressView
from tiller_server.cli.signals import TerminationRequest, abort
from tiller_server.review.options import ReviewCancellation


class ReviewSignalHandler(Struct, kw_only=True):
    """How far a review is, and what a signal means there."""

    progress: ReviewProgressView
    ending: TerminationRequest = msgspec.field(default_factory=TerminationRequest)
    stop: ReviewCancellation = msgspec.field(default_factory=ReviewCancellation)
    _scope: anyio.CancelScope | None = None

    @contextmanager
    def given_up(self) -> Generator[anyio.CancelScope]:
        """Create a scope that a signal cancels. While the model is asked, the first signal stops only the model."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                yield scope
            finally:
                self._scope = None

    async def settle(self) -> None:
        """Do what the first signal asks for."""
        session = self.progress.session
        if session is not None and not self.stop.asked and not self.progress.is_made:
            self.stop.asked = True
            await abort(session)
        elif self._scope is not None:
            self._scope.cancel()
