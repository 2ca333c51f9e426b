"""The page about JSON lines names events that there are, and every one that a plain run has."""

import re

from agent_core.events.codec import NAMES
from tests.support.harness.shared import ROOT

PAGE = (ROOT / "docs/terminal/json.md").read_text("utf-8")
TABLE = PAGE[PAGE.index("| Type |") : PAGE.index("## Stability")]
NAMED = {
    name
    for row in TABLE.splitlines()[2:]
    for name in re.findall(r"`([a-z.*]+)`", row.split("|")[1] if "|" in row else "")
}
OF_EVERY_RUN = {"run.", "turn.", "message.", "thought.", "tool.", "retry.", "compaction."}


def test_every_event_that_is_named_exists() -> None:
    known = set(NAMES.values())
    unknown = [
        name
        for name in NAMED
        if name not in known
        and not (name.endswith("*") and any(one.startswith(name[:-1]) for one in known))
    ]
    assert unknown == []


def test_every_event_of_a_run_is_named() -> None:
    of_a_run = {name for name in NAMES.values() if any(map(name.startswith, OF_EVERY_RUN))}
    assert of_a_run - NAMED == set()
