"""What a client makes of a subscription: the session as its snapshots and events leave it.

The rules are those of the protocol: the first event of an id creates, what is left out stays, null clears, a value
replaces, a delta appends, and `*.ended` is the whole.
"""

import copy
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

SESSION: Mapping[str, str] = {
    "session.state": "state",
    "session.config": "config",
    "session.usage": "usage",
    "session.title": "title",
    "session.roots": "roots",
    "session.clients": "clients",
    "queue.changed": "queue",
}
NUMBERS = frozenset({"seq", "from", "at", "type"})
ITEMS = frozenset({"message", "thought", "tool"})
APPENDED: Mapping[str, str] = {
    "delta": "text",
    "input.delta": "inputText",
    "output.delta": "output",
}


class Reduced:
    """A client's picture of a session, and how far it goes."""

    def __init__(self) -> None:
        self.epoch: str | None = None
        self.last: int | None = None
        self.session: Json = {}
        self.run: Json | None = None
        self.items: dict[str, Json] = {}
        """Every item seen so far; those of older runs stay."""
        self.pending: dict[str, Json] = {}
        self.durable: dict[int, Json] = {}
        """Every event that is no delta, by its number."""
        self.gaps = 0
        self.snapshots = 0

    def take(self, value: Json) -> None:
        """Take one value of the token.

        Raises:
            AssertionError: It does not follow what came before it.
        """
        match value["kind"]:
            case "agent/snapshot":
                self._begin(value)
            case "agent/events":
                self._follow(value)
                for event in value["events"]:
                    self._event(event)
            case "agent/gap":
                self._follow(value)
                self.gaps += 1
            case "agent/heartbeat":
                pass
            case kind:
                raise AssertionError(f"unknown value {kind!r}")

    def now(self) -> Json:
        """Give the session as it is: what every client must agree on, however it came to it."""
        items = {
            name: _seen(item)
            for name, item in self.items.items()
            if self.run is not None and item.get("run") == self.run["run"]
        }
        run = None if self.run is None else self.run["run"]
        session = {name: one for name, one in self.session.items() if name in {"state", "queue"}}
        return copy.deepcopy(
            {**session, "run": run, "items": items, "pending": sorted(self.pending)}
        )

    def _begin(self, value: Json) -> None:
        picture = value["snapshot"]
        self.snapshots += 1
        self.epoch, self.last = value["epoch"], value["seq"]
        assert picture["epoch"] == self.epoch
        assert picture["seq"] == self.last
        self.session = {name: picture.get(name) for name in SESSION.values()}
        self.pending = {one["request"]: one for one in picture["pending"]}
        self.run = None
        if "run" in picture:
            self.run = {"run": picture["run"]["id"]}
            for item in picture["run"]["items"]:
                self.items[item["item"]] = _of_snapshot(item, run=picture["run"]["id"])

    def _follow(self, value: Json) -> None:
        assert value["epoch"] == self.epoch
        assert self.last is not None
        assert value["from"] == self.last + 1, (value["from"], self.last)
        assert value["to"] >= value["from"]
        before = self.last
        for event in value.get("events", ()):
            first = (
                event["seq"] if event["type"] == "leaf.moved" else event.get("from", event["seq"])
            )
            assert before < first <= event["seq"] <= value["to"]
            before = event["seq"]
        self.last = value["to"]

    def _event(self, event: Json) -> None:
        kind, fields = event["type"], {k: v for k, v in event.items() if k not in NUMBERS}
        if not kind.endswith(("delta", "bash.output")):
            whole = {k: v for k, v in event.items() if k != "from" or kind == "leaf.moved"}
            assert self.durable.setdefault(event["seq"], whole) == whole
        head, _, step = kind.partition(".")
        if kind in SESSION:
            self.session[SESSION[kind]] = event[SESSION[kind]]
        elif kind == "run.started":
            self.run = fields
        elif kind == "run.ended":
            self.run = None
        elif kind == "permission.requested":
            self.pending[event["request"]["request"]] = event["request"]
        elif kind == "permission.resolved":
            self.pending.pop(event["request"], None)
        elif head in ITEMS:
            self._item(head, step, fields)

    def _item(self, head: str, step: str, fields: Json) -> None:
        item = self.items.setdefault(fields["item"], {"kind": head})
        if step in APPENDED:
            name = APPENDED[step]
            item[name] = item.get(name, "") + fields.pop("text")
            item.update(fields)
        elif step == "ended":
            self.items[fields["item"]] = {"kind": head, **fields, "ended": True}
        else:
            item.update(fields)


def _of_snapshot(item: Json, *, run: str) -> Json:
    """Give an item of a snapshot; deltas go on after what was said so far."""
    so_far = _text(item)
    rest = {name: one for name, one in item.items() if name not in {"content", "text"}}
    return {"run": run, **rest, ("output" if item["kind"] == "tool" else "text"): so_far}


def _seen(item: Json) -> Json:
    """Give of an item what a person sees of it."""
    shown = {"kind", "role", "call", "name", "status", "details"}
    seen = {name: one for name, one in item.items() if name in shown}
    return {**seen, "words": _text(item)}


def _text(item: Json) -> str:
    if "content" in item:
        return "".join(block.get("text", "") for block in item["content"])
    return item.get("output" if item["kind"] == "tool" else "text", "")
