"""Requests to a host's API: waits out its limits, tries reading again, and never sends a change twice."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio.to_thread

from agent_core.kernel import Clock
from agent_core.kernel.json import JsonValue, decode, encode
from agent_core.kernel.values import Value
from tiller_server.review.posting.ci_environment import LOOPBACK
from tiller_server.review.posting.errors import HostLimited, HostRefused, HostUnsure

if TYPE_CHECKING:
    import httpx  # a third of a second that a review without posting does not pay

TRIES: Final = 4
FIRST_WAIT_S: Final = 2.0
LIMIT_WAIT_S: Final = 60.0
"""Wait that GitHub asks for when it names no time."""
MOST_WAIT_S: Final = 600.0
WriteGuard = Callable[[], Awaitable[None]]
"""Called right before every request that changes something; raises to prevent it."""
REQUEST_S: Final = 60.0
ANSWER_BYTES: Final = 32 * 1024 * 1024


class CodeHostResponse(Value, frozen=True, kw_only=True):
    """Answer of a host."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: JsonValue

    @property
    def is_done(self) -> bool:
        """Return whether the host did what was asked."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def message(self) -> str:
        """Message of the host about a failure, on one line."""
        body = self.body
        if not isinstance(body, Mapping):
            return "" if body is None else str(body)[:300]
        parts = [body.get("message") or body.get("error"), body.get("errors")]
        return " ".join(_text_of(part) for part in parts if part)[:300]


class RequestRules(Value, frozen=True, kw_only=True):
    """Rules of the caller for its requests."""

    guard: WriteGuard | None = None
    most_wait_s: float = MOST_WAIT_S
    """Longest wait for a limit of the host; a longer one is a `HostLimited`."""


ANY_REQUEST: Final = RequestRules()


class CodeHostClient:
    """A host's API; the caller closes it."""

    def __init__(
        self, host: str, *, headers: Mapping[str, str], clock: Clock, rules: RequestRules
    ) -> None:
        """Prepare; nothing is sent yet. `host` is its name for people, `headers` hold the token."""
        self.host = host
        self._headers = dict(headers)
        self._clock = clock
        self._rules = rules
        self._client: httpx.AsyncClient | None = None

    async def read(self, method: str, url: str, *, body: JsonValue = None) -> CodeHostResponse:
        """Ask something that changes nothing, again when the host fails.

        Raises:
            HostUnsure: It failed every time.
            HostLimited: It wants us to wait for too long.
        """
        for attempt in range(TRIES):
            try:
                return await self._within_limits(method, url, body)
            except HostUnsure:
                if attempt == TRIES - 1:
                    raise
            await self._clock.sleep(FIRST_WAIT_S * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    async def write(self, method: str, url: str, *, body: JsonValue = None) -> CodeHostResponse:
        """Send a change once; a host that is over its limit did nothing, so then it is sent when the limit is over.

        Raises:
            HostUnsure: The host failed, or the connection broke: the change may have been made.
            HostLimited: It wants us to wait for too long.
        """
        return await self._within_limits(method, url, body, guard=self._rules.guard)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _within_limits(
        self, method: str, url: str, body: JsonValue, *, guard: WriteGuard | None = None
    ) -> CodeHostResponse:
        waited_s = 0.0
        while True:
            if guard is not None:
                await guard()
            answer = await self._send(method, url, body)
            wait_s = self._limited_for_s(answer)
            if wait_s is None:
                break
            waited_s += wait_s
            if waited_s > self._rules.most_wait_s:
                message = (
                    f"{self.host} takes no more requests for {wait_s:.0f} s (status {answer.status}); "
                    "run the job again after that, what is posted already is not posted twice"
                )
                raise HostLimited(message, wait_s=wait_s)
            await self._clock.sleep(wait_s)
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            message = f"{self.host} failed with status {answer.status}; run the job again later"
            raise HostUnsure(message)
        return answer

    async def _send(self, method: str, url: str, body: JsonValue) -> CodeHostResponse:
        import httpx  # noqa: PLC0415 - see above

        if self._client is None:
            is_here = urlsplit(url).hostname in LOOPBACK
            make = partial(_new_client, self._headers, trust_env=not is_here)
            self._client = await anyio.to_thread.run_sync(make)
        content = None if body is None else encode(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = await self._client.request(method, url, content=content, headers=headers)
        except httpx.HTTPError as error:
            message = (
                f"{self.host} cannot be reached at {urlsplit(url).netloc} "
                f"({type(error).__name__}: {error}); run the job again later"
            )
            raise HostUnsure(message) from error
        return CodeHostResponse(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=await _decoded(response.content),
        )

    def _limited_for_s(self, answer: CodeHostResponse) -> float | None:
        """Return how long the host wants us to wait; None when it does not."""
        if answer.status not in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN}:
            return None
        headers = answer.headers
        asked_s = _number(headers.get("retry-after"))
        if asked_s is not None:
            return asked_s
        left = headers.get("x-ratelimit-remaining", headers.get("ratelimit-remaining"))
        reset_s = _number(headers.get("x-ratelimit-reset", headers.get("ratelimit-reset")))
        if left == "0" and reset_s is not None:
            return max(1.0, reset_s - self._clock.now_ms() / 1000)
        is_limited = (
            answer.status == HTTPStatus.TOO_MANY_REQUESTS or "rate limit" in answer.message.lower()
        )
        return LIMIT_WAIT_S if is_limited else None


def refuse(
    host: str, answer: CodeHostResponse, *, what: str, advice: Mapping[int, str]
) -> HostRefused:
    """Return the error for a refusal of `what`, as `read pull request 3 of o/r`, with the advice for its status."""
    said = f", {answer.message!r}" if answer.message else ""
    todo = advice.get(answer.status, "run it again with --dry-run to see what would be sent")
    return HostRefused(f"{host} did not let us {what} (status {answer.status}{said}); {todo}")


def unreadable(host: str, what: str) -> HostUnsure:
    """Return the error for an incomplete answer: a comment that is missing from it would be posted twice."""
    return HostUnsure(
        f"{host} did not tell all of {what}, so nothing was posted; run the job again later"
    )


def _new_client(headers: Mapping[str, str], *, trust_env: bool) -> "httpx.AsyncClient":
    """Import httpx and read the certificates, which takes its time."""
    import httpx  # noqa: PLC0415 - see above

    return httpx.AsyncClient(headers=headers, timeout=REQUEST_S, trust_env=trust_env)


async def _decoded(content: bytes) -> JsonValue:
    if not content or len(content) > ANSWER_BYTES:
        return None
    read: Callable[[], JsonValue] = partial(decode, content)
    try:
        return await anyio.to_thread.run_sync(read)
    except ValueError:
        return None  # a page of some proxy: the status tells


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None  # a date: hosts of ours give seconds


def _text_of(value: JsonValue) -> str:
    return value if isinstance(value, str) else encode(value).decode()
