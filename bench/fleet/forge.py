"""A forge in memory for the replay: it stores comments and counts the requests that GitHub would get."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from msgspec.structs import replace

from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.posting.code_host import (
    CheckReport,
    CodeHostState,
    CommentDraft,
    Summary,
    Thread,
)
from tiller_server.review.posting.comment_markers import read_summary_mark


@dataclass(slots=True, kw_only=True)
class ForgeChange:
    """What the forge has of one change."""

    head: str = ""
    threads: list[Thread] = field(default_factory=list[Thread])
    summary: Summary | None = None
    posts: int = 0
    """Comments, summaries and checks made; a second one of a key counts too."""


class ReplayedHost:
    """The host of one change."""

    comment_chars = 60_000

    def __init__(self, change: ForgeChange) -> None:
        """Count from nothing."""
        self.requests = 0
        self._change = change
        self._ids = count(1)

    def offer(self, suggestion: Suggestion) -> str | None:
        """Offer no suggestions."""
        del suggestion

    async def read(self) -> CodeHostState:
        """Return what is there; GitHub is asked for the change, its threads, its comments."""
        self.requests += 3
        change = self._change
        return CodeHostState(
            head=change.head, threads=tuple(change.threads), summary=change.summary
        )

    async def comment(self, drafts: Sequence[CommentDraft], *, head: str) -> tuple[Finding, ...]:
        """Store comments, with one request."""
        del head
        self.requests += 1
        for draft in drafts:
            name = str(next(self._ids))
            self._change.threads.append(
                Thread(
                    thread=name,
                    comment=name,
                    fingerprint=draft.finding.fingerprint,
                    is_fixed=False,
                    is_resolved=False,
                    is_outdated=False,
                    body=draft.body,
                )
            )
            self._change.posts += 1
        return ()

    async def edit(self, thread: Thread, body: str) -> None:
        """Write a comment anew."""
        self.requests += 1
        threads = self._change.threads
        threads[:] = [
            replace(one, body=body) if one.comment == thread.comment else one for one in threads
        ]

    async def resolve(self, thread: Thread) -> bool:
        """Count the request."""
        del thread
        self.requests += 1
        return True

    async def reopen(self, thread: Thread) -> bool:
        """Count the request."""
        return await self.resolve(thread)

    async def write_summary(self, body: str) -> None:
        """Store the summary."""
        self.requests += 1
        self._change.posts += 1
        mark = read_summary_mark(body)
        if mark is not None:
            self._change.summary = Summary(comment="s", mark=mark, body=body)

    async def edit_summary(self, summary: Summary, body: str) -> None:
        """Write the summary anew."""
        self.requests += 1
        mark = read_summary_mark(body) or summary.mark
        self._change.summary = Summary(comment=summary.comment, mark=mark, body=body)

    async def head(self) -> str:
        """Return the head."""
        self.requests += 1
        return self._change.head

    async def delete(self, own: Thread | Summary) -> None:
        """Count the request; nothing is doubled here."""
        del own
        self.requests += 1

    async def check(self, report: CheckReport) -> str | None:
        """Count the check."""
        self.requests += 1
        self._change.posts += 1
        return f"check-{report.head}"

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""
