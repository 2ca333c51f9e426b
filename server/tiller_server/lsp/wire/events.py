"""The table of events: every type that can appear in a frame, and its shape."""

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from pydantic import ValidationError

from agent_core.kernel.values import Value
from tiller_server.lsp.wire import run_events, session_events
from tiller_server.lsp.wire.event_base import EventBase
from tiller_server.lsp.wire.parsing import validation_issue

__all__ = ["EVENTS", "EventShape", "check_event"]

EventKind = Literal["delta", "state"]


class EventShape(Value, frozen=True, kw_only=True):
    """One type of event."""

    name: str
    model: type[EventBase]
    kind: EventKind
    """A delta appends and may be merged with its neighbours; a state stands by itself and is stored first."""


_DELTAS = frozenset(
    {"message.delta", "thought.delta", "tool.input.delta", "tool.output.delta", "bash.output"}
)


def _shapes() -> Iterator[EventShape]:
    for module in (session_events, run_events):
        for name in module.__all__:
            model: object = getattr(module, name)
            if not (isinstance(model, type) and issubclass(model, EventBase)):
                continue
            kind = model.model_fields.get("type")
            names: tuple[str, ...] = get_args(kind.annotation) if kind else ()
            for word in names:
                yield EventShape(
                    name=word, model=model, kind="delta" if word in _DELTAS else "state"
                )


EVENTS: Mapping[str, EventShape] = {shape.name: shape for shape in _shapes()}


def check_event(event: Mapping[str, object]) -> None:
    """Hold an event against the vocabulary: its type is known, every field is there, typed and known.

    Stricter than clients should be, who ignore fields that they do not know: this is the rule for senders.

    Raises:
        ValueError: One sentence of what is wrong.
    """
    kind = event.get("type")
    shape = EVENTS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        message = f"event: type must be a known type of event, got {kind!r}"
        raise ValueError(message)
    try:
        shape.model.model_validate(dict(event), extra="forbid", by_alias=True, by_name=False)
    except ValidationError as error:
        message = f"{shape.name}: {validation_issue(error, event).text}"
        raise ValueError(message) from error
