"""Streams of providers: server-sent events and JSON lines, with limits on silence and size."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import anyio
import msgspec
from anyio.lowlevel import cancel_shielded_checkpoint

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import Usage
from agent_core.providers.http.client import HttpPool, StreamBody
from agent_core.providers.http.errors import (
    PAGE_HEAD,
    exposed,
    failure_from_event,
    failure_from_response,
    masked,
    web_page,
)
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.messages.builder import MessageBuilder, without_replaced
from agent_core.providers.model import ModelInfo, StreamEvent, StreamFinished, UsageUpdate

BOM = b"\xef\xbb\xbf"
LIMIT_BYTES = 64 * 1024 * 1024
"""Largest size of one event, in bytes; a stream with a larger event is not an event stream."""


class SseEvent(NamedTuple):
    """One event; comments and events without data are dropped."""

    name: bytes
    """Empty when the stream gave none."""
    data: bytes


class BadFraming(ValueError):
    """The bytes are not what was promised; the text says how."""


class EventTooLarge(BadFraming):
    """An event grew beyond every reason."""


class SseDecoder:
    """Turns pieces of a stream into its events; the work is linear in the bytes.

    Line ends may be CR, LF or CRLF, also mixed, and every cut is allowed.
    """

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_newline = False
        self._after_cr = False
        self._first = True

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Decode the next bytes and return the events that they complete.

        Raises:
            EventTooLarge: An event is larger than the limit.
        """
        piece = self._with_newlines(piece)
        if not piece:
            return []
        ends_here = b"\n\n" in piece or (self._after_newline and piece.startswith(b"\n"))
        self._pieces.append(piece)
        self._after_newline = piece.endswith(b"\n")
        if not ends_here:
            self._size += len(piece)
            if self._size > self._limit:
                message = f"an event of more than {self._limit} bytes"
                raise EventTooLarge(message)
            return []
        *blocks, rest = b"".join(self._pieces).split(b"\n\n")
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        return self._events(blocks)

    def flush(self) -> list[SseEvent]:
        """Return what the end of the stream completes: an event that lacks its blank line."""
        rest = b"".join(self._pieces)
        self._pieces = []
        self._size = 0
        return self._events([rest])

    def _with_newlines(self, piece: bytes) -> bytes:
        """Make every line end an LF; a CRLF may have been cut in the middle."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if b"\r" not in piece:
            return piece
        self._after_cr = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, blocks: list[bytes]) -> list[SseEvent]:
        if self._first and blocks:
            self._first = False
            blocks[0] = blocks[0].removeprefix(BOM)
        events: list[SseEvent] = []
        for block in blocks:
            # What nearly every provider sends nearly always: one data line, often with a name before it.
            name, line = b"", block
            if block.startswith(b"event: "):
                name, _, line = block[7:].partition(b"\n")
            if line.startswith(b"data: ") and b"\n" not in line:
                events.append(SseEvent(name, line[6:]))
                continue
            event = _parse(block)
            if event is not None:
                events.append(event)
        return events


def _parse(block: bytes) -> SseEvent | None:
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return SseEvent(name, b"\n".join(data)) if data else None


class NdjsonDecoder:
    """Turns pieces of a stream into its lines, each an event without a name; the work is linear in the bytes."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._first = True

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Decode the next bytes and return the lines that they complete.

        Raises:
            EventTooLarge: A line is longer than the limit.
        """
        self._pieces.append(piece)
        if b"\n" not in piece:
            self._size += len(piece)
            if self._size > self._limit:
                message = f"a line of more than {self._limit} bytes"
                raise EventTooLarge(message)
            return []
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        return self._events(lines)

    def flush(self) -> list[SseEvent]:
        """Return what the end of the stream completes: a last line without its end."""
        rest = b"".join(self._pieces)
        self._pieces = []
        self._size = 0
        return self._events([rest])

    def _events(self, lines: list[bytes]) -> list[SseEvent]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(BOM)
        return [SseEvent(b"", line) for line in map(bytes.strip, lines) if line]


USAGE_FOLLOWS_S = 5.0
"""How long to wait, when the answer has its end, for its usage."""
NOTHING_FOLLOWS_S = 0.5
"""How long to wait, when the answer has all it needs, for the server to close or go on."""
JSON_HEAD = (b"{", b"[")
PIECE_BYTES = 8_192
"""So much of a stream is read in one go: some 25 events, a millisecond at most."""
BEFORE_JSON = BOM + b" \t\r\n"
"""Gateways send blank lines to keep a connection alive until their answer is ready."""
WHOLE_BYTES = 8 * 1024 * 1024
"""An answer in one piece is never bigger."""
DONE = b"[DONE]"

T = TypeVar("T")


class Decoder(Protocol):
    """Turns pieces of a stream into its events, however the pieces were cut."""

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Decode the next bytes, at least one, and return the events that they complete.

        Raises:
            BadFraming: The bytes are not of this framing.
        """
        ...

    def flush(self) -> list[SseEvent]:
        """Return what the end of the stream completes.

        Raises:
            BadFraming: The bytes are not of this framing.
        """
        ...


class StreamReader(Protocol):
    """Reads the events of one answer in one provider's words."""

    @property
    def has_end(self) -> bool:
        """Return whether the event came that says the answer is whole."""
        ...

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is expected."""
        ...

    @property
    def after_end_s(self) -> float:
        """How long to wait for what may come behind the end, in seconds."""
        ...

    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one event.

        Raises:
            ProviderError: The event reports an error, or violates the provider's own rules.
        """
        ...

    def read_texts(self, events: Sequence[SseEvent]) -> bool:
        """Read events that add text and do nothing else, all of them or none; False: none was read."""
        ...

    def read_whole(self, body: JsonObject) -> None:
        """Read a complete answer that a server sent although a stream was requested.

        `has_end` is true afterwards, if it was an answer.

        Raises:
            ProviderError: The answer reports an error, or violates the provider's own rules.
        """
        ...

    def done(self) -> None:
        """Record the closing mark that some providers send."""
        ...

    @property
    def usage(self) -> Usage:
        """Tokens that the provider has counted so far, with their cost; kept when the answer fails."""
        ...

    def take(self) -> list[StreamEvent]:
        """Return the parts since the last time."""
        ...

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: It is none.
        """
        ...


class BuildingReader(ABC):
    """Base of the readers, which build their answer with a `MessageBuilder`."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._builder = MessageBuilder(model)

    @property
    @abstractmethod
    def has_end(self) -> bool:
        """Return whether the event came that says the answer is whole."""

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is expected."""
        return self.has_end

    @property
    def after_end_s(self) -> float:
        """How long to wait for what may come behind the end, in seconds."""
        return NOTHING_FOLLOWS_S

    @abstractmethod
    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one event."""

    def read_texts(self, events: Sequence[SseEvent]) -> bool:
        """Leave all events to `read`."""
        del events
        return False

    def read_whole(self, body: JsonObject) -> None:
        """Read a complete, non-streamed answer, which has the form of an event."""
        self.read(body, name=b"")

    def done(self) -> None:  # noqa: B027 - most APIs have no closing mark
        """Ignore the closing mark: some gateways send it for an API that has none."""

    def take(self) -> list[StreamEvent]:
        """Return the parts since the last time."""
        return self._builder.take()

    def _failure(self, event: JsonObject) -> ProviderError:
        return failure_from_event(
            event, provider=self._model.provider, parts_came=not self._builder.is_empty
        )


async def read_parts(
    body: StreamBody,
    dialect: StreamReader,
    *,
    model: ModelInfo,
    pool: HttpPool,
    post: HttpRequest,
    decoder: Decoder | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the parts of one answer as they arrive, the answer last.

    Args:
        body: The bytes of the answer.
        dialect: Parser of its events; not reusable.
        model: The model of the request.
        pool: The pool of the connection.
        post: The request; its secrets are in no error.
        decoder: Decoder of the bytes into events; None: server-sent events.

    Raises:
        ProviderError: The stream broke, fell silent, reported an error, or ended early.
    """
    framing = decoder or SseDecoder()
    events = _Events(model)
    # Where each line is JSON, a body that begins like JSON is nothing special.
    heads = () if isinstance(framing, NdjsonDecoder) else JSON_HEAD
    begun = False
    came = False
    news = _News(dialect)
    while not dialect.is_over:
        chunk = await _next(body, dialect)
        came = came or bool(chunk)
        head = b"" if begun else chunk.lstrip(BEFORE_JSON)[:1]
        if head == PAGE_HEAD:
            failure = _page(model)
        elif head in heads:
            failure = await _read_whole(body, chunk, dialect, events=events, pool=pool, post=post)
        else:
            failure = await _read_in_pieces(framing, chunk, dialect, events)
        begun = begun or bool(head)
        for part in news.take():
            yield part
        if failure is not None:
            raise _masked(failure, post)
        if not chunk or head in heads:
            break
    if not dialect.has_end:
        raise _cut(model, came=came)
    try:
        answer = dialect.answer()
    except ProviderError as error:
        raise _masked(error, post) from None
    for part in dialect.take():
        yield part
    body.whole = True
    yield without_replaced(answer) if events.has_replaced else answer


def decoded(decoder: msgspec.json.Decoder[T], events: Sequence[SseEvent]) -> Sequence[T] | None:
    """Return events that all are of one type; None when one is not, or is not JSON."""
    try:
        return [decoder.decode(event.data) for event in events]
    except (ValueError, RecursionError):
        return None


class _News:
    """Tracker of the new parts of an answer, and of its usage when that has changed."""

    def __init__(self, dialect: StreamReader) -> None:
        self._dialect = dialect
        self._reported = Usage()

    def take(self) -> list[StreamEvent]:
        """Return what came since the last time."""
        parts, usage = self._dialect.take(), self._dialect.usage
        if usage.total and usage != self._reported:
            self._reported = usage
            parts.append(UsageUpdate(usage=usage))
        return parts


async def _next(body: StreamBody, dialect: StreamReader) -> bytes:
    if not dialect.has_end:
        return await body.read()
    # The answer is whole; only its usage may be missing. That is not worth failing for.
    with anyio.move_on_after(dialect.after_end_s):
        try:
            return await body.read()
        except ProviderError:
            return b""
    return b""


async def _read_in_pieces(
    decoder: Decoder, chunk: bytes, dialect: StreamReader, events: "_Events"
) -> ProviderError | None:
    """Read what a chunk completes; others get their turn before hundreds of events are read."""
    for start in range(0, max(1, len(chunk)), PIECE_BYTES):
        failure = _read(decoder, chunk[start : start + PIECE_BYTES], dialect, events)
        if failure is not None:
            return failure
        # Not cancelled here: what was read has to be told first.
        await cancel_shielded_checkpoint()
    return None


def _read(
    decoder: Decoder, chunk: bytes, dialect: StreamReader, events: "_Events"
) -> ProviderError | None:
    """Read what a chunk completes; the failure is given back, so that what came before it is not lost."""
    try:
        found = decoder.feed(chunk) if chunk else decoder.flush()
        if dialect.read_texts(found):
            return None
        for event in found:
            if event.data == DONE:
                dialect.done()
            elif event.data:
                dialect.read(events.decoded(event), name=event.name)
    except ProviderError as error:
        return None if dialect.has_end and error.reason == "protocol" else error
    except BadFraming as error:
        return None if dialect.has_end else _broken(events.model, str(error))
    return None


class _Events:
    """The events of one answer as JSON. Halves of characters are replaced in them, which is noted."""

    def __init__(self, model: ModelInfo) -> None:
        self.model = model
        self.has_replaced = False

    def decoded(self, event: SseEvent) -> JsonObject:
        """Decode one event.

        Raises:
            ProviderError: It is no JSON, and no error that came as plain text.
        """
        try:
            value = self.value(event.data)
        except (ValueError, RecursionError) as error:
            if event.name == b"error":
                return {"error": event.data.decode("utf-8", "replace")}
            raise _broken(self.model, f"an event that is not JSON ({error})") from None
        return exposed(json.as_object(value))

    def value(self, data: bytes) -> JsonValue:
        """Decode JSON.

        Raises:
            ValueError: It is none.
        """
        try:
            return json.decode_exact(data)
        except json.LoneSurrogate:
            self.has_replaced = True
            return json.decode(data)


async def _read_whole(
    body: StreamBody,
    head: bytes,
    dialect: StreamReader,
    *,
    events: _Events,
    pool: HttpPool,
    post: HttpRequest,
) -> ProviderError | None:
    """Read one JSON value: an answer, what went wrong, or all the events in a list."""
    model = events.model
    whole = bytearray(head)
    while more := await body.read():
        whole += more
        if len(whole) > WHOLE_BYTES:
            return _broken(model, f"an answer of more than {WHOLE_BYTES} bytes")
    raw = bytes(whole).lstrip(BEFORE_JSON)
    try:
        value = events.value(raw)
    except (ValueError, RecursionError) as error:
        return _broken(model, f"JSON that is not whole ({error})")
    items = [
        exposed(json.as_object(one)) for one in (value if isinstance(value, list) else [value])
    ]
    if items and items[0].get("error"):
        return failure_from_response(
            status=200,
            headers={},
            body=raw,
            provider=model.provider,
            now_ms=pool.clock.now_ms(),
            secrets=post.secrets,
            key_source=post.key_source,
        )
    try:
        for event in items:
            if isinstance(value, list):
                dialect.read(event, name=b"")
            else:
                dialect.read_whole(event)
    except ProviderError as error:
        return error
    if dialect.has_end:
        return None
    message = f"{model.ref} answered with JSON that is no answer; check its base URL and api"
    return ProviderError(message, reason="protocol", provider=model.provider)


def _page(model: ModelInfo) -> ProviderError:
    message = web_page(model.provider)
    return ProviderError(
        message, reason="protocol", provider=model.provider, before_first_byte=True
    )


def _broken(model: ModelInfo, what: str) -> ProviderError:
    message = f"{model.ref} sent {what}; try again"
    return ProviderError(message, reason="protocol", provider=model.provider)


def _cut(model: ModelInfo, *, came: bool) -> ProviderError:
    how = "ended its stream before the answer was whole" if came else "sent an empty stream"
    return ProviderError(
        f"{model.ref} {how}; try again",
        reason="protocol",
        provider=model.provider,
        before_first_byte=not came,
    )


def _masked(failure: ProviderError, post: HttpRequest) -> ProviderError:
    failure.args = (masked(str(failure), post.secrets),)
    return failure
