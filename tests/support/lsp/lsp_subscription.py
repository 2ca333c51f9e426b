"""The stream of one `agent/subscribe`: checked for holes and overlaps, kept in order, waited on."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, TypeVar

from tests.support.lsp.lsp_connection import Call, ClientError
from tests.support.lsp.lsp_record import USUAL_S

Json = dict[str, Any]
T = TypeVar("T")


class Subscription:
    """What one subscriber has seen.

    A stream with a fault makes every wait fail at once, so a test need not look for faults itself.
    """

    def __init__(self, call: Call, *, last: int | None) -> None:
        self.events: list[Json] = []
        """Every event, in order, without those that came twice."""
        self.snapshot: Json = {}
        """The newest snapshot; empty until one has come."""
        self.last = last
        """The number of the last event that is known."""
        self.frames: list[Json] = []
        """Every progress value as it came."""
        self.faults: list[str] = []
        self.call = call
        self._epoch: object = None
        self._changed = asyncio.Event()

    def take(self, value: Json) -> None:
        """Take one progress value."""
        self.frames.append(value)
        if self.call.answer.done():
            self.faults.append(f"{value.get('kind')!r} came after the subscription's answer")
        match value.get("kind"):
            case "agent/events":
                self._take_events(value)
            case "agent/snapshot":
                self.snapshot = value["snapshot"]
                self.last = value["seq"]
                self._epoch = value.get("epoch")
            case "agent/gap":
                self.last = value["to"]
            case "agent/heartbeat":
                pass
            case kind:
                self.faults.append(f"unknown frame {kind!r}")
        self._touch()

    async def wait(self, *, timeout_s: float = USUAL_S, after: int = 0, **fields: Any) -> Json:
        """Give the first event with these fields, such as `type="run.ended"`.

        Args:
            after: Pass over the events up to this `seq`.

        Raises:
            AssertionError: The stream has a fault, or ended without such an event.
            TimeoutError: No such event has come in time.
        """

        index = bisect_right(self.events, after, key=itemgetter("seq")) if after else 0

        def found() -> Json | None:
            # Each event is looked at once, however often the wait is woken.
            nonlocal index
            while index < len(self.events):
                event = self.events[index]
                index += 1
                if has(event, fields):
                    return event
            return None

        return await self._until(found, f"an event with {fields}", timeout_s)

    async def ready(self, *, timeout_s: float = USUAL_S) -> None:
        """Wait for the first snapshot or frame."""
        await self._until(lambda: self.frames or None, "the first frame", timeout_s)

    async def reached(self, seq: int, *, timeout_s: float = USUAL_S) -> None:
        """Wait until everything up to a number is known."""

        def known() -> Literal[True] | None:
            return True if self.last is not None and self.last >= seq else None

        await self._until(known, f"event {seq}", timeout_s)

    def of(self, *types: str) -> list[Json]:
        """Give the events of these types so far."""
        return [event for event in self.events if event["type"] in types]

    def types(self) -> list[str]:
        """Give the types of all events so far."""
        return [event["type"] for event in self.events]

    def items(self) -> dict[str, Json]:
        """Give every item as its events leave it."""
        return reduce_items(self.events)

    def forget(self) -> None:
        """Drop the events and frames so far."""
        self.events.clear()
        self.frames.clear()

    async def unsubscribe(self, *, timeout_s: float = USUAL_S) -> Json | ClientError:
        """End the subscription by `$/cancelRequest` and give the answer, be it a result or an error."""
        self.call.cancel()
        try:
            return await self.call.result(timeout_s=timeout_s)
        except ClientError as error:
            return error

    def ended(self) -> None:
        """Take note that the server has answered, so that nothing more comes."""
        self._touch()

    def _take_events(self, value: Json) -> None:
        first, to = value["from"], value["to"]
        if self._epoch is None:
            self._epoch = value.get("epoch")
        elif value.get("epoch") != self._epoch:
            self.faults.append(f"epoch {value.get('epoch')!r} without a snapshot")
        if self.last is None:
            self.faults.append(f"events {first}..{to} before any snapshot")
            self.last = first - 1
        if to <= self.last:
            self.faults.append(f"events {first}..{to} came again after {self.last}")
            return
        if first != self.last + 1:
            self.faults.append(f"events {first}..{to} do not follow {self.last}")
        self._check_inside(value["events"], first, to)
        self.events += value["events"]
        self.last = to

    def _check_inside(self, events: Sequence[Json], first: int, to: int) -> None:
        before = first - 1
        for event in events:
            # In `leaf.moved` it is the entry that was left.
            merged = event["type"] != "leaf.moved" and "from" in event
            begins = event["from"] if merged else event["seq"]
            if not before < begins <= event["seq"] <= to:
                self.faults.append(
                    f"{event['type']} {begins}..{event['seq']} is out of place in {first}..{to}"
                )
            before = event["seq"]

    async def _until(self, look: Callable[[], T | None], what: str, timeout_s: float) -> T:
        """Look after every frame until there is something; a fault or the end of the stream ends the wait."""
        try:
            async with asyncio.timeout(timeout_s):
                while (seen := look()) is None:
                    assert not self.faults, self.faults
                    assert not self.call.answer.done(), (
                        f"the subscription ended with {self.call.message} before {what} came"
                    )
                    await self._changed.wait()
        except TimeoutError:
            message = f"{what} has not come within {timeout_s} s; last came {self.types()[-8:]}"
            raise TimeoutError(message) from None
        assert not self.faults, self.faults
        return seen

    def _touch(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def has(event: Json, fields: Mapping[str, Any]) -> bool:
    """Tell whether an event has these fields with these values."""
    return all(name in event and event[name] == value for name, value in fields.items())


def reduce_items(events: Sequence[Json]) -> dict[str, Json]:
    """Give every item as its events leave it: deltas append, any other field replaces.

    An ended item keeps only what its last event says, so that a replay without deltas gives the same.
    """
    items: dict[str, Json] = {}
    for event in events:
        item = event.get("item")
        if item is None:
            continue
        kind, _, step = event["type"].partition(".")
        fields = {
            name: value
            for name, value in event.items()
            if name not in {"seq", "from", "at", "type"}
        }
        if step.endswith("delta"):
            held = items.setdefault(item, {"kind": kind})
            held[step] = held.get(step, "") + event["text"]
        elif step == "ended":
            items[item] = {"kind": kind, **fields, "ended": True}
        else:
            items.setdefault(item, {"kind": kind}).update(fields)
    return items
