"""JSON-RPC messages: bytes to checked values, values to bytes."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeAlias, TypeGuard, cast

from server.lsp.rpc import INVALID_REQUEST, PARSE_ERROR, RpcError

RequestId: TypeAlias = int | str

MAX_DEPTH: Final = 64
"""How deeply arrays and objects may be nested: ten times what any message of LSP needs."""
MAX_DIGITS: Final = 32
"""How many digits a whole number may have."""

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A message that must be answered exactly once."""

    id: RequestId
    method: str
    params: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message that is never answered."""

    method: str
    params: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The client's answer to a request of ours."""

    id: object
    result: object
    error: Any
    """None when it is a result; whatever was sent otherwise."""


Message: TypeAlias = Request | Notification | Response


class BadMessage(Exception):
    """A body that is no message. Carries the answer to give and the id to give it under."""

    def __init__(self, error: RpcError, *, request_id: RequestId | None) -> None:
        super().__init__(error.message)
        self.error = error
        self.request_id = request_id


def decode(body: bytes) -> Message:
    """Read one message.

    Raises:
        BadMessage: It is no JSON, or no JSON-RPC 2.0 message; or a request with half of a surrogate pair, which has
            no UTF-8. In a notification that passes: an editor's text may hold one, and must be followed all the same.
    """
    parsed = _parse(body)
    message = as_object(parsed)
    if message is None:
        why = "A batch is no LSP message." if isinstance(parsed, list) else "It is no object."
        raise _invalid(why, None)
    given_id = message.get("id", _ABSENT)
    request_id = given_id if is_request_id(given_id) else None
    if "method" not in message and ("result" in message or "error" in message):
        return Response(id=given_id, result=message.get("result"), error=message.get("error"))
    if message.get("jsonrpc") != "2.0":
        raise _unfit("jsonrpc", '"2.0"', message.get("jsonrpc"), request_id)
    method = message.get("method")
    if not isinstance(method, str) or not method:
        raise _unfit("method", "a name", method, request_id)
    if given_id is _ABSENT:
        return Notification(method=method, params=message.get("params"))
    if request_id is None:
        raise _unfit("id", "an integer or a string", given_id, None)
    if _has_lone_surrogate(body, message):
        why = "The message is no JSON: it holds half of a surrogate pair."
        raise BadMessage(RpcError(PARSE_ERROR, why), request_id=request_id)
    return Request(id=request_id, method=method, params=message.get("params"))


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


def as_object(value: object) -> dict[str, Any] | None:
    """Give a JSON value as the object it is, or None."""
    if not isinstance(value, dict):
        return None
    return cast("dict[str, Any]", value)  # the keys of what JSON calls an object are strings


def as_array(value: object) -> list[object] | None:
    """Give a JSON value as the array it is, or None."""
    return cast("list[object]", value) if isinstance(value, list) else None  # of JSON values


def _depth(body: bytes) -> int:
    """Say how deeply a JSON text is nested, without reading it: a parser may run out of stack on it."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return 0  # no deeper than it has brackets
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(bare.translate(None, _NO_BRACKETS).split(b'"')[::2])
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


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
        if _depth(body) > MAX_DEPTH:
            why = f"it is nested more than {MAX_DEPTH} levels deep"
            raise ValueError(why)  # noqa: TRY301 - told as all that is wrong below
        # Not json.loads(bytes): that guesses UTF-16 and lets encoded surrogates pass.
        return _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
    except json.JSONDecodeError as error:
        why = f"{error.msg} at character {error.pos}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError as error:
        why = str(error)
    raise BadMessage(RpcError(PARSE_ERROR, f"The message is no JSON: {why}."), request_id=None)


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
    if number in {float("inf"), float("-inf")}:
        raise ValueError("a number is too large")
    return number


def _whole(text: str) -> int:
    digits = len(text.removeprefix("-"))
    if digits > MAX_DIGITS:
        why = f"a whole number has {digits} digits, and {MAX_DIGITS} is the most"
        raise ValueError(why)
    return int(text)


_SHOWN_CHARS: Final = 60
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS: Final[Mapping[int, int]] = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_DECODER: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)
