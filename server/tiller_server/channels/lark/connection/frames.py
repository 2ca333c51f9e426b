"""Frames of the long connection: nine fields of protobuf (proto2), written and read without a library."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value

FRAME_BYTES: Final = 8 * 1024 * 1024
"""Largest frame that is read."""
CONTROL: Final = 0
DATA: Final = 1
_HEADERS: Final = 256
"""Most headers of a frame that is read; the platform sends fewer than ten."""
_U64: Final = (1 << 64) - 1
_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_SIZES: Final[Mapping[int, int]] = {_FIXED64: 8, _FIXED32: 4}


class FrameInvalid(TillerError):
    """Bytes of the connection that are no frame."""


class Frame(Value, frozen=True, kw_only=True):
    """A frame of the connection; fields are numbered in this order from 1."""

    sequence: int = 0
    log_id: int = 0
    service: int = 0
    method: int
    """`CONTROL` or `DATA`."""
    headers: Sequence[tuple[str, str]] = ()
    payload_encoding: str = ""
    payload_type: str = ""
    payload: bytes = b""
    log_id_new: str = ""

    def header(self, key: str) -> str:
        """Return the first header of a name; empty without one."""
        return next((value for name, value in self.headers if name == key), "")


def encode_frame(frame: Frame) -> bytes:
    """Write a frame. The four numbers are required fields, so they are written also when they are 0."""
    numbers = (frame.sequence, frame.log_id, frame.service, frame.method)
    parts = [_number(field, value) for field, value in enumerate(numbers, start=1)]
    for key, value in frame.headers:
        parts.append(_bytes(5, _bytes(1, key.encode()) + _bytes(2, value.encode())))
    optional = (
        (6, frame.payload_encoding.encode()),
        (7, frame.payload_type.encode()),
        (8, frame.payload),
        (9, frame.log_id_new.encode()),
    )
    parts += [_bytes(field, value) for field, value in optional if value]
    return b"".join(parts)


def decode_frame(data: bytes) -> Frame:
    """Read a frame; unknown fields are ignored, of repeated ones the last counts.

    Raises:
        FrameInvalid: The bytes are no frame, or exceed a limit.
    """
    if len(data) > FRAME_BYTES:
        message = f"A frame of {len(data)} bytes exceeds the limit of {FRAME_BYTES} bytes"
        raise FrameInvalid(message)
    numbers: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    headers: list[tuple[str, str]] = []
    for field, value in _fields(data):
        if field <= 9 and isinstance(value, int) != (field <= 4):  # noqa: PLR2004 - the numbers come first
            msg = f"Field {field} of a frame has the wrong type"
            raise FrameInvalid(msg)
        if isinstance(value, int):
            numbers[field] = value
        elif field == 5:  # noqa: PLR2004 - the number of the field
            headers.append(_header(value))
        else:
            texts[field] = value
        if len(headers) > _HEADERS:
            msg = f"A frame has more than {_HEADERS} headers"
            raise FrameInvalid(msg)
    if missing := [field for field in (1, 2, 3, 4) if field not in numbers]:
        msg = f"A frame lacks the required field {missing[0]}"
        raise FrameInvalid(msg)
    return Frame(
        sequence=numbers[1],
        log_id=numbers[2],
        service=_signed32(numbers[3]),
        method=_signed32(numbers[4]),
        headers=tuple(headers),
        payload_encoding=_text(texts.get(6, b"")),
        payload_type=_text(texts.get(7, b"")),
        payload=texts.get(8, b""),
        log_id_new=_text(texts.get(9, b"")),
    )


def ping_frame(service: int) -> Frame:
    """Return a ping."""
    return Frame(service=service, method=CONTROL, headers=(("type", "ping"),))


def ack_frame(frame: Frame, *, payload: bytes, duration_ms: int) -> Frame:
    """Return the acknowledgement of a frame: the same frame with another payload and the time of the handler."""
    return Frame(
        sequence=frame.sequence,
        log_id=frame.log_id,
        service=frame.service,
        method=frame.method,
        headers=(*frame.headers, ("biz_rt", str(duration_ms))),
        payload_encoding=frame.payload_encoding,
        payload_type=frame.payload_type,
        payload=payload,
        log_id_new=frame.log_id_new,
    )


def _varint(value: int) -> bytes:
    # Negative numbers of 32 bits are written with 64 bits, as protobuf requires.
    rest = value & _U64
    out = bytearray()
    while rest >= 0x80:  # noqa: PLR2004 - seven bits per byte
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _signed32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _header(data: bytes) -> tuple[str, str]:
    texts = {field: value for field, value in _fields(data) if isinstance(value, bytes)}
    return _text(texts.get(1, b"")), _text(texts.get(2, b""))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field with a type that frames use."""
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        field, kind = key >> 3, key & 7
        if field == 0:
            raise FrameInvalid("A frame has a field with the number 0")
        if kind == _VARINT:
            number, place = _read_varint(data, place)
            yield field, number
            continue
        size, place = _read_size(data, place, kind)
        if place + size > len(data):
            msg = f"Field {field} of a frame ends {place + size - len(data)} bytes after it"
            raise FrameInvalid(msg)
        value, place = data[place : place + size], place + size
        if kind != _BYTES:
            continue
        yield field, value


def _read_size(data: bytes, place: int, kind: int) -> tuple[int, int]:
    if kind == _BYTES:
        return _read_varint(data, place)
    if kind in _SIZES:
        return _SIZES[kind], place
    msg = f"A frame has a field of the unknown type {kind}"
    raise FrameInvalid(msg)


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise FrameInvalid("A frame ends inside a number")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return value & _U64, place
    raise FrameInvalid("A frame has a number of more than 10 bytes")
