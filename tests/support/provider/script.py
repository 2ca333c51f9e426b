"""What a scripted model says: the turns of a script, read from JSON and checked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

Json = dict[str, Any]

CHUNKINGS = ("events", "glue", "utf8", "boundary")
FOREVER = -1


class ScriptError(ValueError):
    """The script cannot be served; the message names the turn and the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call of a turn."""

    name: str
    arguments: str
    """The argument text exactly as streamed; a script may give an object or, for broken JSON, a string."""
    id: str | None = None
    pieces: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model, and how it is delivered."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop: str | None = None
    """`stop`, `length` or `tool_calls`; anything else goes out as it stands."""
    usage: Json | None = field(default_factory=dict)
    """`input`, `output`, `cacheRead`, `cacheWrite`, `reasoning`; what is left out is estimated; null sends none."""
    deltas: int | None = None
    """The number of text deltas: the text is cut, or repeated when it is shorter; the usual text is `word `."""
    when: str | None = None
    """Serve this turn only if what the model was told last contains these words."""
    repeat: int = 1
    """How often the turn is served; -1 for ever."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """Sent instead of a stream: JSON, or a string as it stands."""
    chunking: str = "events"
    malformed: str | None = None
    """Put into the stream as it stands, after half of its events."""
    cut_after_bytes: int | None = None
    """Drop the connection there, in the middle of the HTTP body."""
    eof_after_bytes: int | None = None
    """End the HTTP body there, as if all had been said."""
    stall_after_bytes: tuple[int, float] | None = None
    stall_forever_after_deltas: int | None = None
    delay_s: float = 0.0
    """Wait before the response begins."""
    delta_delay_s: float = 0.0
    """Wait before every delta."""


def read_script(source: object) -> tuple[Turn, ...]:
    """Check a decoded script, a list of turns or an object that holds one as `turns`.

    Raises:
        ScriptError: A turn has an unknown field or a value that cannot be served.
    """
    turns = source.get("turns") if isinstance(source, Mapping) else source
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        message = f"a script is a list of turns, not {type(turns).__name__}"
        raise ScriptError(message)
    return tuple(_turn(raw, place=f"turn {index}") for index, raw in enumerate(turns))


def _turn(raw: object, *, place: str) -> Turn:
    values = _known(raw, Turn, place=place)
    if "tool_calls" in values:
        values["tool_calls"] = tuple(
            _tool_call(call, place=f"{place}, tool call {index}")
            for index, call in enumerate(values["tool_calls"])
        )
    if "stall_after_bytes" in values:
        offset, seconds = values["stall_after_bytes"]
        values["stall_after_bytes"] = (int(offset), float(seconds))
    turn = Turn(**values)
    _check(turn, place=place)
    return turn


def _tool_call(raw: object, *, place: str) -> ToolCall:
    values = _known(raw, ToolCall, place=place)
    if "name" not in values:
        message = f"{place} has no name"
        raise ScriptError(message)
    arguments = values.get("arguments", {})
    if not isinstance(arguments, str):
        values["arguments"] = json.dumps(arguments, ensure_ascii=False)
    else:
        values["arguments"] = arguments
    return ToolCall(**values)


def _known(raw: object, shape: type[Turn | ToolCall], *, place: str) -> Json:
    if not isinstance(raw, Mapping):
        message = f"{place} is {raw!r}, not an object"
        raise ScriptError(message)
    unknown = set(raw) - {one.name for one in fields(shape)}
    if unknown:
        message = f"{place} has the unknown fields {sorted(map(str, unknown))!r}"
        raise ScriptError(message)
    return dict(raw)


def _check(turn: Turn, *, place: str) -> None:
    if turn.deltas is not None and turn.deltas < 1:
        message = f"{place}: {turn.deltas!r} deltas; leave out `text` for an answer without words"
        raise ScriptError(message)
    if turn.chunking not in CHUNKINGS and not _is_bytes_chunking(turn.chunking):
        message = f"{place}: chunking is {turn.chunking!r}, not one of {CHUNKINGS} or bytes:N"
        raise ScriptError(message)
    if turn.cut_after_bytes is not None and turn.eof_after_bytes is not None:
        message = f"{place} can be cut or end early, not both"
        raise ScriptError(message)


def _is_bytes_chunking(chunking: str) -> bool:
    kind, _, size = chunking.partition(":")
    return kind == "bytes" and size.isdecimal() and int(size) > 0


@dataclass(slots=True, kw_only=True)
class _Slot:
    turn: Turn
    left: int


class Script:
    """The turns still to be served, in order."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._slots = [_Slot(turn=turn, left=turn.repeat) for turn in turns]

    def take(self, heard: str) -> Turn | None:
        """Give the first turn that fits what the model was told last, or None when none is left."""
        for slot in self._slots:
            wanted = slot.turn.when
            if slot.left == 0 or (wanted is not None and wanted not in heard):
                continue
            if slot.left != FOREVER:
                slot.left -= 1
            return slot.turn
        return None
