"""Protocol of a code host to which reviews are posted."""

from collections.abc import Sequence
from typing import Literal, Protocol

from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.posting.comment_markers import SummaryMark


class Thread(Value, frozen=True, kw_only=True):
    """A comment of ours on a finding, and the conversation it began."""

    thread: str
    """Id by which the thread is resolved."""
    comment: str
    """Id by which the comment is edited."""
    fingerprint: str
    is_fixed: bool
    """Whether an earlier run wrote that the finding is gone."""
    is_resolved: bool
    is_outdated: bool
    """Whether the lines have changed since."""
    body: str


class Summary(Value, frozen=True, kw_only=True):
    """The comment of ours that tells of the whole."""

    comment: str
    mark: SummaryMark
    body: str


class CodeHostState(Value, frozen=True, kw_only=True):
    """State of a change on its host: its head, and our own threads and summary."""

    head: str
    """The newest commit of the change."""
    threads: tuple[Thread, ...] = ()
    summary: Summary | None = None
    other_summaries: tuple[Summary, ...] = ()
    """Summaries of ours after the first: a stopped process that continued wrote them."""


class CommentDraft(Value, frozen=True, kw_only=True):
    """A comment to be posted."""

    finding: Finding
    body: str
    """With the suggestion as one that can be taken over, for the lines of `line` to `end_line`."""
    plain_body: str
    """With the suggestion as text, for any place."""
    line: int
    end_line: int

    @property
    def is_sayable(self) -> bool:
        """Return whether the path can stand in JSON; bytes that are no UTF-8 cannot."""
        return not any("\ud800" <= sign <= "\udfff" for sign in self.finding.path)


class CheckReport(Value, frozen=True, kw_only=True):
    """Outcome of a review as a check on a commit."""

    head: str
    external_id: str
    """Id of the job."""
    conclusion: Literal["success", "neutral"]
    title: str
    text: str


class CodeHost(Protocol):
    """A pull request or merge request. Every method may raise a `PostingFailed`."""

    comment_chars: int
    """How long a comment may be."""

    def offer(self, suggestion: Suggestion) -> str | None:
        """Return the word behind a fence that makes it a suggestion; None when the host cannot take this one."""
        ...

    async def read(self) -> CodeHostState:
        """Look at what is there; changes nothing."""
        ...

    async def comment(self, drafts: Sequence[CommentDraft], *, head: str) -> tuple[Finding, ...]:
        """Post comments on lines, on their files where the host takes no such line.

        Gives the findings that the host took neither way.
        """
        ...

    async def edit(self, thread: Thread, body: str) -> None:
        """Write a comment anew."""
        ...

    async def resolve(self, thread: Thread) -> bool:
        """Close a conversation; tells whether the token may."""
        ...

    async def reopen(self, thread: Thread) -> bool:
        """Open a conversation again; tells whether the token may."""
        ...

    async def write_summary(self, body: str) -> None:
        """Post the summary."""
        ...

    async def edit_summary(self, summary: Summary, body: str) -> None:
        """Write the summary anew."""
        ...

    async def head(self) -> str:
        """Return the newest commit of the change."""
        ...

    async def delete(self, own: Thread | Summary) -> None:
        """Delete a comment of ours; one that is gone is no error."""
        ...

    async def check(self, report: CheckReport) -> str | None:
        """Write the one check of a commit; returns its id, None: the host has none, or the token may not."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
