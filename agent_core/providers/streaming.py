"""From the bytes of an event stream to parts, for every dialect that sends server-sent events."""

from collections.abc import AsyncGenerator
from typing import Protocol

import anyio

from agent_core.kernel import JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.providers.failures import failure_from_response, masked
from agent_core.providers.http import Body, HttpPool
from agent_core.providers.port import Answer, ModelFacts, Part
from agent_core.providers.post import Post
from agent_core.providers.sse import EventTooLarge, SseDecoder, SseEvent

AFTER_END_S = 5.0
"""How long to wait, when the answer has its end, for what may still come: the usage."""
JSON_HEAD = (b"{", b"[")
ERROR_BODY_BYTES = 64 * 1024
DONE = b"[DONE]"


class Dialect(Protocol):
    """Reads the events of one answer in one provider's words."""

    @property
    def has_end(self) -> bool:
        """Tell whether the event came that says the answer is whole."""
        ...

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more is expected."""
        ...

    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Take one event.

        Raises:
            ProviderError: It tells of an error, or breaks the provider's own rules.
        """
        ...

    def done(self) -> None:
        """Take the closing mark that some providers send."""
        ...

    def take(self) -> list[Part]:
        """Give the parts since the last time."""
        ...

    def answer(self) -> Answer:
        """Give the whole answer.

        Raises:
            ProviderError: It is none.
        """
        ...


async def read_parts(
    body: Body, dialect: Dialect, *, facts: ModelFacts, pool: HttpPool, post: Post
) -> AsyncGenerator[Part, None]:
    """Give the parts of one answer as they come, the answer last.

    Raises:
        ProviderError: The stream broke, fell silent, told of an error, or ended before its end.
    """
    decoder = SseDecoder()
    came = False
    while not dialect.is_over:
        chunk = await _next(body, dialect)
        if not came and chunk.lstrip()[:1] in JSON_HEAD:
            raise await _no_stream(body, chunk, facts=facts, pool=pool, post=post)
        came = came or bool(chunk)
        failure = _read(decoder, chunk, dialect, facts)
        for part in dialect.take():
            yield part
        if failure is not None:
            raise _masked(failure, post)
        if not chunk:
            break
    if not dialect.has_end:
        raise _cut(facts, came=came)
    answer = dialect.answer()
    for part in dialect.take():
        yield part
    body.whole = True
    yield answer


async def _next(body: Body, dialect: Dialect) -> bytes:
    if not dialect.has_end:
        return await body.take()
    # The answer is whole; only its usage may be missing. That is not worth failing for.
    with anyio.move_on_after(AFTER_END_S):
        try:
            return await body.take()
        except ProviderError:
            return b""
    return b""


def _read(
    decoder: SseDecoder, chunk: bytes, dialect: Dialect, facts: ModelFacts
) -> ProviderError | None:
    """Read what a chunk completes; the failure is given back, so that what came before it is not lost."""
    try:
        for event in decoder.feed(chunk) if chunk else decoder.flush():
            if event.data == DONE:
                dialect.done()
            elif event.data:
                dialect.read(_decoded(event, facts), name=event.name)
    except ProviderError as error:
        return None if dialect.has_end and error.reason == "protocol" else error
    except EventTooLarge as error:
        return ProviderError(
            f"{facts.ref} sent {error}; try again", reason="protocol", provider=facts.provider
        )
    return None


def _decoded(event: SseEvent, facts: ModelFacts) -> JsonObject:
    try:
        value = json.decode(event.data)
    except (ValueError, RecursionError) as error:
        if event.name == b"error":
            return {"error": event.data.decode("utf-8", "replace")}
        message = f"{facts.ref} sent an event that is not JSON ({error}); try again"
        raise ProviderError(message, reason="protocol", provider=facts.provider) from None
    return json.as_object(value)


async def _no_stream(
    body: Body, head: bytes, *, facts: ModelFacts, pool: HttpPool, post: Post
) -> ProviderError:
    """Some servers answer 200 with a plain JSON body, and tell in it what went wrong."""
    whole = bytearray(head)
    while len(whole) < ERROR_BODY_BYTES and (more := await body.take()):
        whole += more
    if b'"error"' not in whole:
        message = f"{facts.ref} answered with JSON instead of a stream; check its base URL and api"
        return ProviderError(message, reason="protocol", provider=facts.provider)
    return failure_from_response(
        status=200,
        headers={},
        body=bytes(whole),
        provider=facts.provider,
        now_ms=pool.clock.now_ms(),
        secrets=post.secrets,
    )


def _cut(facts: ModelFacts, *, came: bool) -> ProviderError:
    how = "ended its stream before the answer was whole" if came else "sent an empty stream"
    return ProviderError(
        f"{facts.ref} {how}; try again",
        reason="protocol",
        provider=facts.provider,
        before_first_byte=not came,
    )


def _masked(failure: ProviderError, post: Post) -> ProviderError:
    failure.args = (masked(str(failure), post.secrets),)
    return failure
