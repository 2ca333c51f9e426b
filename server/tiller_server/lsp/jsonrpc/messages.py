"""JSON-RPC messages: bytes to checked values, values to bytes."""

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NoReturn, TypeAlias, TypeGuard, cast

from tiller_server.lsp.jsonrpc.errors import INVALID_REQUEST, PARSE_ERROR, RpcError

RequestId: TypeAlias = int | str
Params: TypeAlias = dict[str, object]
"""A JSON object, as it was sent."""

MAX_DEPTH: Final = 64
"""How deeply arrays and objects may be nested: ten times what any message of LSP needs."""
MAX_DIGITS: Final = 32
"""How many digits a whole number may have."""
MAX_VALUES: Final = 1_000_000
"""How many strings, and how many other values, a message may have: the event loop reads it for everybody."""

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRpcRequest:
    """A message that must be answered exactly once."""

    id: RequestId
    method: str
    params: object


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRpcNotification:
    """A message that is never answered."""

    method: str
    params: object


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRpcResponse:
    """The client's answer to a request of ours."""

    id: object
    result: object
    error: object | None
    """None when it is a result; whatever was sent otherwise."""


JsonRpcMessage: TypeAlias = JsonRpcRequest | JsonRpcNotification | JsonRpcResponse


class BadMessage(Exception):
    """A body that is no message. Carries the answer to give and the id to give it under."""

    def __init__(self, error: RpcError, *, request_id: RequestId | None) -> None:
        super().__init__(error.message)
        self.error = error
        self.request_id = request_id


def decode(body: bytes) -> JsonRpcMessage:
    """Read one message.

    Raises:
        BadMessage: It is no JSON, or no JSON-RPC 2.0 message; or a request with half of a surrogate pair, which has
            no UTF-8. In a notification that passes: an editor's text may hold one, and must be followed all the same.
            It carries the id of the request wherever that can be read, so that the request is answered.
    """
    parsed = _parse(body)
    message = as_object(parsed)
    if message is None:
        why = "A batch is no LSP message." if isinstance(parsed, list) else "It is no object."
        raise _invalid(why, None)
    given_id = message.get("id", _ABSENT)
    request_id = given_id if is_request_id(given_id) else None
    if "method" not in message and ("result" in message or "error" in message):
        return JsonRpcResponse(
            id=given_id, result=message.get("result"), error=message.get("error")
        )
    if message.get("jsonrpc") != "2.0":
        raise _unfit("jsonrpc", '"2.0"', message.get("jsonrpc"), request_id)
    method = message.get("method")
    if not isinstance(method, str) or not method:
        raise _unfit("method", "a name", method, request_id)
    if given_id is _ABSENT:
        return JsonRpcNotification(method=method, params=message.get("params"))
    if request_id is None:
        raise _unfit("id", "an integer or a string", given_id, None)
    if _has_lone_surrogate(body, message):
        why = "The message is no JSON: it holds half of a surrogate pair."
        raise BadMessage(RpcError(PARSE_ERROR, why), request_id=request_id)
    return JsonRpcRequest(id=request_id, method=method, params=message.get("params"))


def make_encoder(default: Callable[[object], object]) -> Callable[[object], bytes]:
    """Make the function that writes values as UTF-8 JSON.

    It raises ValueError, TypeError or RecursionError for what JSON cannot say: NaN and the
    infinities, circles, values for which `default` has no answer.
    """
    encode_text = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
    ).encode

    def encode(value: object) -> bytes:
        text = encode_text(value)
        try:
            return text.encode()
        except UnicodeEncodeError:
            # A lone surrogate has no UTF-8, and strict clients refuse it as an escape too.
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()

    return encode


def as_object(value: object) -> Params | None:
    """Return a JSON value as the object it is, or None."""
    if not isinstance(value, dict):
        return None
    return cast("Params", value)  # the keys of what JSON calls an object are strings


def as_array(value: object) -> list[object] | None:
    """Return a JSON value as the array it is, or None."""
    return cast("list[object]", value) if isinstance(value, list) else None  # of JSON values


class _TooMuch(ValueError):
    """A text that is refused before it is parsed, not even for its id."""


def _check_size(body: bytes) -> None:
    """Check the nesting and the number of values of a JSON text without parsing it. Costs 10 ms a megabyte at most.

    Raises:
        ValueError: It is nested too deeply: a parser may run out of stack on it.
        _TooMuch: It has too many values.
    """
    # No comma or bracket, no value: most messages end here.
    if sum(map(body.count, (b"[", b"{", b","))) <= MAX_DEPTH:
        return
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 2 * MAX_VALUES:
        raise _TooMuch(_MOST_VALUES)
    signs = b"".join(bare.translate(None, _NO_SIGNS).split(b'"')[::2])
    if sum(map(signs.count, (b"[", b"{", b","))) > MAX_VALUES:
        raise _TooMuch(_MOST_VALUES)
    brackets = signs.translate(None, b",")
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        why = f"it is nested more than {MAX_DEPTH} levels deep"
        raise ValueError(why)


def _has_lone_surrogate(body: bytes, message: object) -> bool:
    if _SURROGATE.search(body) is None:
        return False
    try:
        _ = json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _parse(body: bytes) -> object:
    try:
        _check_size(body)
        # Not json.loads(bytes): that guesses UTF-16 and lets encoded surrogates pass.
        return _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
    except json.JSONDecodeError as error:
        why = f"{error.msg} at character {error.pos}"
    except RecursionError:
        why = "it is nested too deeply"
    except _TooMuch as error:
        refusal = RpcError(PARSE_ERROR, f"The message cannot be read: {error}.")
        raise BadMessage(refusal, request_id=_request_id_before(body)) from None
    except ValueError as error:
        why = str(error)
    error = RpcError(PARSE_ERROR, f"The message is no JSON: {why}.")
    raise BadMessage(error, request_id=_request_id_in(body))


def _request_id_before(body: bytes) -> RequestId | None:
    """Return the id of a request that is refused unread, where it stands at the beginning, as editors write it."""
    match = _HEAD.match(body)
    return None if match is None else _request_id_in(match[0] + b"}")


def _request_id_in(body: bytes) -> RequestId | None:
    """Return the id of a request that is refused for its numbers, depth or encoding; None when there is none.

    Values that cannot be kept become null here: only the id and the method are used.
    """
    try:
        parsed: object = _TOLERANT.decode(body.decode(errors="surrogateescape"))
    except (ValueError, RecursionError):
        return None
    message = as_object(parsed)
    if message is None or not isinstance(message.get("method"), str):
        return None  # A response carries an id of ours, under which nothing may be answered.
    request_id = message.get("id")
    return request_id if is_request_id(request_id) else None


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Whether the value may stand as the id of a request."""
    if isinstance(value, str):
        # An id that cannot be sent back as it came could never be matched by its owner.
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(message: str, request_id: RequestId | None) -> BadMessage:
    return BadMessage(RpcError(INVALID_REQUEST, message), request_id=request_id)


def _unfit(member: str, wanted: str, got: object, request_id: RequestId | None) -> BadMessage:
    return _invalid(f"'{member}' must be {wanted}, got {_shown(got)}.", request_id)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_SHOWN_CHARS])
    if isinstance(value, int | float):
        return repr(value)[:_SHOWN_CHARS]
    if value is None:
        return "nothing"
    return "an array" if isinstance(value, list) else "an object"


def _refuse_constant(name: str) -> NoReturn:
    why = f"{name} is no JSON number"
    raise ValueError(why)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        why = (
            f"the number {text:.{_SHOWN_CHARS}} is too large, and {sys.float_info.max} is the most"
        )
        raise ValueError(why)
    return number


def _whole(text: str) -> int:
    digits = len(text.removeprefix("-"))
    if digits > MAX_DIGITS:
        why = f"a whole number has {digits} digits, and {MAX_DIGITS} is the most"
        raise ValueError(why)
    return int(text)


def _whole_or_none(text: str) -> int | None:
    return int(text) if len(text.removeprefix("-")) <= MAX_DIGITS else None


_SHOWN_CHARS: Final = 60
_MOST_VALUES: Final = f"it has more than {MAX_VALUES:,} values"
_NO_SIGNS: Final = bytes(set(range(256)) - set(b'",[]{}'))
_HEAD: Final = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|id|method)"\s*:\s*(?:-?\d{1,32}|"[^"\\]{0,256}")\s*(?:,\s*(?="(?:jsonrpc|id|method)")|(?=,))){3}'
)
_STEPS: Final[Mapping[int, int]] = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_DECODER: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)
_TOLERANT: Final = json.JSONDecoder(parse_constant=lambda _: None, parse_int=_whole_or_none)
