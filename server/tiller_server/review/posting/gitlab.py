"""A merge request of GitLab: discussions on its lines, and a note as summary."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import count
from typing import Final
from urllib.parse import quote, urlencode

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue
from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.git.diff import read_hunks
from tiller_server.review.posting.ci_environment import GitLabMerge
from tiller_server.review.posting.code_host import (
    CheckReport,
    CodeHost,
    CodeHostState,
    CommentDraft,
    Summary,
    Thread,
)
from tiller_server.review.posting.comment_markers import read_finding_mark, read_summary_mark
from tiller_server.review.posting.errors import HostRefused, PlaceRefused
from tiller_server.review.posting.http_client import (
    ANY_REQUEST,
    CodeHostClient,
    CodeHostResponse,
    RequestRules,
    refuse,
    unreadable,
)
from tiller_server.review.posting.json_fields import each, inside, text

MOST_PAGES: Final = 100
MOST_OFFERED_LINES: Final = 100
"""GitLab takes suggestions that reach this far above the commented line."""
ADVICE: Final[Mapping[int, str]] = {
    301: "the project has moved: check CI_PROJECT_ID",
    401: "the token is not valid (any more): set TILLER_GITLAB_TOKEN to a project access token with scope api",
    403: "the token needs the role Developer and the scope api",
    404: "check CI_PROJECT_ID and the number, and that the token belongs to that project",
}


class GitLabHost(CodeHost):
    """A merge request."""

    def __init__(
        self, target: GitLabMerge, *, clock: Clock, rules: RequestRules = ANY_REQUEST
    ) -> None:
        self.comment_chars = 900_000
        self._target = target
        project = quote(target.project, safe="")
        self._merge_url = f"{target.api_url}/projects/{project}/merge_requests/{target.iid}"
        headers = {"PRIVATE-TOKEN": target.token, "User-Agent": "tiller"}
        self._api = CodeHostClient("GitLab", headers=headers, clock=clock, rules=rules)
        self._commits: JsonObject = {}

    @override
    def offer(self, suggestion: Suggestion) -> str | None:
        above = suggestion.end_line - suggestion.line
        return f"suggestion:-{above}+0" if above <= MOST_OFFERED_LINES else None

    @override
    async def read(self) -> CodeHostState:
        me = text(inside(await self._get(f"{self._target.api_url}/user")).get("id"))
        self._commits = inside(await self._get(self._merge_url), "diff_refs")
        head = text(self._commits.get("head_sha"))
        if not me or not head:
            raise unreadable("GitLab", str(self._target))
        threads: list[Thread] = []
        summaries: list[Summary] = []
        async for discussion in self._pages(f"{self._merge_url}/discussions"):
            note = next(each(discussion.get("notes")), None)
            if note is None or text(inside(note, "author").get("id")) != me:
                continue  # a mark in somebody else's note is a forgery
            threads += _thread(discussion, note)
            summaries += _summaries(note)
        return CodeHostState(
            head=head,
            threads=tuple(threads),
            summary=summaries[0] if summaries else None,
            other_summaries=tuple(summaries[1:]),
        )

    @override
    async def comment(self, drafts: Sequence[CommentDraft], *, head: str) -> tuple[Finding, ...]:
        files = {
            text(file.get("new_path")): file
            async for file in self._pages(f"{self._merge_url}/diffs")
        }
        unplaced = [
            draft for draft in drafts if not await self._place(draft, files.get(draft.finding.path))
        ]
        return tuple(draft.finding for draft in unplaced)

    @override
    async def edit(self, thread: Thread, body: str) -> None:
        url = f"{self._merge_url}/discussions/{thread.thread}/notes/{thread.comment}"
        await self._send("PUT", url, {"body": body}, what="edit a note of ours")

    @override
    async def resolve(self, thread: Thread) -> bool:
        return await self._turn_thread(thread, "true")

    @override
    async def reopen(self, thread: Thread) -> bool:
        return await self._turn_thread(thread, "false")

    @override
    async def write_summary(self, body: str) -> None:
        what = f"comment on {self._target}"
        await self._send("POST", f"{self._merge_url}/notes", {"body": body}, what=what)

    @override
    async def edit_summary(self, summary: Summary, body: str) -> None:
        url = f"{self._merge_url}/notes/{summary.comment}"
        await self._send("PUT", url, {"body": body}, what="edit the summary")

    @override
    async def head(self) -> str:
        return text(inside(await self._get(self._merge_url), "diff_refs").get("head_sha"))

    @override
    async def delete(self, own: Thread | Summary) -> None:
        url = f"{self._merge_url}/notes/{own.comment}"
        answer = await self._api.write("DELETE", url)
        if not answer.is_done and answer.status != HTTPStatus.NOT_FOUND:
            raise self._refused(answer, what="delete a note of ours")

    @override
    async def check(self, report: CheckReport) -> None:
        """Write nothing: the summary is all that a merge request shows."""

    @override
    async def aclose(self) -> None:
        await self._api.aclose()

    async def _place(self, draft: CommentDraft, file: JsonObject | None) -> bool:
        """Post one discussion as near to its lines as GitLab lets us; tells whether it took one."""
        if file is None or not draft.is_sayable:
            return False
        for comment_text, place in _places(draft, file):
            position: JsonObject = {
                "base_sha": self._commits.get("base_sha"),
                "start_sha": self._commits.get("start_sha"),
                "head_sha": self._commits.get("head_sha"),
                "old_path": file.get("old_path"),
                "new_path": file.get("new_path"),
                **place,
            }
            body: JsonObject = {"body": comment_text, "position": position}
            try:
                await self._send(
                    "POST", f"{self._merge_url}/discussions", body, what="open a discussion"
                )
            except PlaceRefused:
                continue
            return True
        return False

    async def _turn_thread(self, thread: Thread, resolved: str) -> bool:
        url = f"{self._merge_url}/discussions/{thread.thread}?resolved={resolved}"
        answer = await self._api.write("PUT", url)
        if answer.is_done:
            return True
        if answer.status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            return False
        raise self._refused(answer, what="close a discussion")

    async def _get(self, url: str) -> JsonValue:
        answer = await self._api.read("GET", url)
        if not answer.is_done:
            raise self._refused(answer, what=f"read {self._target}")
        return answer.body

    async def _pages(self, url: str) -> AsyncIterator[JsonObject]:
        page = "1"
        for number in count(1):
            query = urlencode({"per_page": 100, "page": page})
            answer = await self._api.read("GET", f"{url}?{query}")
            if not answer.is_done:
                raise self._refused(answer, what=f"read {self._target}")
            if number > MOST_PAGES or not isinstance(answer.body, list | tuple):
                raise unreadable("GitLab", str(self._target))
            for item in each(answer.body):
                yield item
            page = answer.headers.get("x-next-page", "")
            if not page:
                return

    async def _send(self, method: str, url: str, body: JsonObject, *, what: str) -> None:
        answer = await self._api.write(method, url, body=body)
        if answer.is_done:
            return
        if answer.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
            message = f"GitLab does not take it there ({answer.message})"
            raise PlaceRefused(message)
        raise self._refused(answer, what=what)

    def _refused(self, answer: CodeHostResponse, *, what: str) -> HostRefused:
        return refuse("GitLab", answer, what=what, advice=ADVICE)


def old_lines(diff: str) -> Mapping[int, int | None]:
    """Return every line of the new side that a diff shows, with its number on the old side; None when it is new."""
    shown: dict[int, int | None] = {}
    for hunk in read_hunks(diff.encode()):
        old, new = hunk.old_line, hunk.new_line
        for line in hunk.lines:
            if line.startswith("+"):
                shown[new] = None
                new += 1
            elif line.startswith("-"):
                old += 1
            elif not line.startswith("\\"):
                shown[new] = old
                old, new = old + 1, new + 1
    return shown


def _thread(discussion: JsonObject, note: JsonObject) -> Iterator[Thread]:
    body = text(note.get("body"))
    mark = read_finding_mark(body)
    if mark is None:
        return
    yield Thread(
        thread=text(discussion.get("id")),
        comment=text(note.get("id")),
        fingerprint=mark.fingerprint,
        is_fixed=mark.is_fixed,
        is_resolved=note.get("resolved") is True,
        is_outdated=False,  # GitLab does not say it; the review itself knows what is gone
        body=body,
    )


def _summaries(note: JsonObject) -> Iterator[Summary]:
    body = text(note.get("body"))
    mark = read_summary_mark(body)
    if mark is not None:
        yield Summary(comment=text(note.get("id")), mark=mark, body=body)


def _places(draft: CommentDraft, file: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    shown = old_lines(text(file.get("diff")))
    last = draft.finding.end_line
    if draft.end_line in shown:
        yield draft.body, _line(draft.end_line, shown)
    if last in shown and draft.end_line != last:
        yield draft.plain_body, _line(last, shown)
    yield draft.plain_body, {"position_type": "file"}


def _line(line: int, shown: Mapping[int, int | None]) -> JsonObject:
    place: dict[str, JsonValue] = {"position_type": "text", "new_line": line}
    if shown[line] is not None:
        place["old_line"] = shown[line]  # a line that did not change is known by both numbers
    return place
