"""Params of standard LSP methods: from JSON to lsprotocol's types, without lenience."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import cattrs
from lsprotocol import types
from pygls.protocol import default_converter

from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.jsonrpc.messages import as_object


def make_converter() -> cattrs.Converter:
    """Make a converter that never turns a value into a different one.

    Left alone, cattrs reads 0.5 as line 0, 7 as the text "7", and refuses a whole `initialize`
    for one enum value that is newer than this program. A converter may serve any number of
    connections.
    """
    converter = default_converter()
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook(float, _number)
    return converter


def read_params(converter: cattrs.Converter, *, method: str, params: object) -> Any:
    """Read the params of a method: typed when lsprotocol knows it, else the object itself.

    Raises:
        RpcError: -32602, they do not have the method's shape.
    """
    given = read_object(method=method, params=params)
    method_types = types.METHOD_TO_TYPES.get(method)
    if method_types is None:
        return given
    if method_types[2] is None:
        return None
    try:
        return converter.structure(given, method_types[2])
    except Exception as error:
        raise RpcError(INVALID_PARAMS, f"{method}: {_why(error)}.") from error


def read_object(*, method: str, params: object) -> dict[str, object]:
    """Return params as the object that was sent, {} when none were.

    Raises:
        RpcError: -32602, they are something else.
    """
    given = {} if params is None else as_object(params)
    if given is None:
        what = "an array" if isinstance(params, list) else repr(params)[:60]
        raise RpcError(INVALID_PARAMS, f"{method}: params must be an object, got {what}.")
    return given


def _why(error: Exception) -> str:
    try:
        first = cattrs.transform_error(error, path="params", format_exception=_fault)[0]
    except (IndexError, TypeError):
        return "params do not have the shape of this method"
    fault, _, path = first.partition(" @ ")
    # The path is spelt with Python's names; the client knows the wire's.
    return re.sub("_([a-z])", lambda match: match[1].upper(), path) + f" {fault}"


def _fault(error: BaseException, wanted: type | None) -> str:
    if isinstance(error, KeyError):
        return "is missing"
    names = {int: "an integer", str: "a string", bool: "a boolean", float: "a number"}
    if wanted in names:
        return f"must be {names[wanted]}"
    return "has a value that the protocol does not allow"


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def take(value: Any, wanted: Any) -> Any:
        # lsprotocol's enums are also int or str, and cattrs asks the hook of their base.
        if issubclass(wanted, Enum):
            return _member_or_raw(value, wanted)
        if type(value) is kind:
            return value
        # Clients written in Lua or Vim script say 3.0 and 1 where they mean 3 and true.
        if type(value) in {int, float} and kind is not str and kind(value) == value:
            return kind(value)
        why = f"expected {kind.__name__}"
        raise TypeError(why)

    return take


def _number(value: Any, _: Any) -> float:
    if type(value) not in {int, float}:
        raise TypeError("expected a number")
    return float(value)


def _member_or_raw(value: Any, wanted: Any) -> Any:
    """Return the member, or the value itself when a newer protocol may have added it."""
    try:
        return wanted(value)
    except ValueError:
        if any(type(member.value) is type(value) for member in wanted):
            return value
        raise
