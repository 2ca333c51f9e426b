"""JSON as a type and as bytes: one line, UTF-8, always valid.

The fast parser is loaded with its first text: it takes 16 ms, and an editor waits for a daemon that reads none yet.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeGuard

JsonScalar = str | int | float | bool | None
JsonValue = JsonScalar | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
JsonObject = Mapping[str, JsonValue]


class LoneSurrogate(ValueError):
    """A text holds half of a character: one of U+D800 to U+DFFF without its other half."""

    def __init__(self) -> None:
        super().__init__(
            "a text in them holds half of a character (a lone surrogate, \\ud800 to \\udfff): write the whole character or leave it out"
        )


def encode(value: JsonValue) -> bytes:
    """Write JSON on one line.

    A lone surrogate (broken output of a tool) becomes U+FFFD, NaN and infinities become null: every JSON
    parser can read the result.
    """
    import pydantic_core  # noqa: PLC0415 - see above

    try:
        return pydantic_core.to_json(value, inf_nan_mode="null")
    except pydantic_core.PydanticSerializationError:
        # Also for what is nested deeper than the fast encoder goes, as other programs may have written it.
        return json.dumps(_scrub(value), ensure_ascii=False, separators=(",", ":")).encode()


def decode(text: bytes | str) -> JsonValue:
    """Read one JSON value.

    Raises:
        ValueError: The text is not JSON; the message says where.
    """
    import pydantic_core  # noqa: PLC0415 - see above

    try:
        return _typed(pydantic_core.from_json(text, allow_inf_nan=False))  # pyright: ignore[reportAny] - a parser gives Any
    except (ValueError, TypeError):
        # A lone surrogate is refused there, yet other programs write them: read it, replaced.
        return _typed(_read_slowly(text)[1])


def decode_exact(text: bytes | str) -> JsonValue:
    """Read one JSON value as `decode` does, without replacing anything: for what names files and commands.

    Raises:
        ValueError: The text is not JSON.
        LoneSurrogate: A text in it holds half of a character.
    """
    try:
        return decode_sound(text)
    except (ValueError, TypeError):
        value, scrubbed = _read_slowly(text)
        if has_lone_surrogate(_typed(value)):
            raise LoneSurrogate from None
        return _typed(scrubbed)


def decode_sound(text: bytes | str) -> JsonValue:
    """Read one JSON value that nothing has to be replaced in: the quick way, for whole files.

    Raises:
        ValueError: The text is not JSON, or holds half of a character.
    """
    import pydantic_core  # noqa: PLC0415 - see above

    return pydantic_core.from_json(text, allow_inf_nan=False)  # pyright: ignore[reportAny] - a parser gives Any


def decode_partial(text: bytes | str) -> JsonValue:
    """Read what is there of an unfinished JSON text (streamed tool arguments); never to be executed.

    Raises:
        ValueError: Not even the beginning is JSON.
    """
    import pydantic_core  # noqa: PLC0415 - see above

    value: object = pydantic_core.from_json(  # pyright: ignore[reportAny] - a parser gives Any
        text, allow_inf_nan=False, allow_partial="trailing-strings"
    )
    return _typed(value)


def is_object(value: JsonValue) -> TypeGuard[JsonObject]:
    """Return whether a JSON value is an object."""
    return isinstance(value, Mapping)


def as_object(value: JsonValue) -> JsonObject:
    """Return an object as it is and anything else as an empty one."""
    return value if isinstance(value, dict | Mapping) else {}


def as_text(value: JsonValue) -> str:
    """Return a value that is text; else an empty one."""
    return value if isinstance(value, str) else ""


def scrub(text: str) -> str:
    """Replace lone surrogates, which no encoder takes, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def has_lone_surrogate(value: JsonValue) -> bool:
    """Return whether a text somewhere in a JSON value holds half of a character."""
    if isinstance(value, str):
        if value.isascii():
            return False
        try:
            _ = value.encode()
        except UnicodeEncodeError:
            return True
        return False
    if isinstance(value, dict | Mapping):
        return any(map(has_lone_surrogate, value)) or any(map(has_lone_surrogate, value.values()))
    if isinstance(value, list | Sequence):
        return any(map(has_lone_surrogate, value))
    return False


def _read_slowly(text: bytes | str) -> tuple[object, object]:
    """Read JSON that the fast parser refuses: as it is, and with what no encoder takes replaced."""
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)  # pyright: ignore[reportAny] - a parser gives Any
        return value, _scrub(value)
    except RecursionError as error:
        message = "the JSON is nested too deeply; nothing of it was read"
        raise ValueError(message) from error


def _scrub(value: object) -> object:
    match value:
        case str():
            return scrub(value)
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {scrub(str(key)): _scrub(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON by construction
        case Sequence():
            return [_scrub(item) for item in value]
        case _:
            return value


def _typed(value: object) -> JsonValue:
    """Name the type of a value that a JSON parser made: nothing else can come out of it."""
    return value  # pyright: ignore[reportReturnType] - by construction


def _refuse_constant(name: str) -> object:
    message = f"{name} is not JSON"
    raise ValueError(message)
