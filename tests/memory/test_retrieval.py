"""Facts are found again by questions in other words, among 10,000 entries and within 20 ms."""

import statistics
import time
from pathlib import Path

from agent_core.kernel import SystemClock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.memory.index import MemoryIndex
from agent_core.memory.markdown import with_entry
from agent_core.memory.store import MemoryFileStore
from agent_core.memory.values import MemoryEntry, MemoryScope
from tests.memory.retrieval_corpus import ENTRIES, corpus, seeded_facts

LEAST_SHARE = 0.9
MOST_S = 0.020
"""Of processor time, which other processes do not stretch."""
FIRST = 5
PROJECT = MemoryScope("p")


def test_nine_of_ten_seeded_facts_are_among_the_first_five(tmp_path: Path) -> None:
    store = MemoryFileStore(tmp_path, env={}, clock=SystemClock(), redactor=Redactor())
    path = store.path(PROJECT)
    path.parent.mkdir(parents=True)
    entries = (
        MemoryEntry(id=f"e{number}", scope=PROJECT, text=text, created="2026-11-28", line=0)
        for number, text in enumerate(corpus())
    )
    path.write_text(
        "\n".join(with_entry(" ", one).partition("\n\n")[2] for one in entries), "utf-8"
    )
    index = MemoryIndex(PROJECT, path=path, read=store.read_now)
    assert len(store.read_now(PROJECT).entries) == ENTRIES
    assert index.search("warm up", limit=1, today="2026-11-28") == []

    facts = seeded_facts()
    took: list[float] = []
    ranks: list[int] = []
    for fact in facts:
        begun = time.thread_time()
        hits = index.search(fact.question, limit=FIRST, today="2026-11-28")
        took.append(time.thread_time() - begun)
        texts = [hit.entry.text for hit in hits]
        if fact.text in texts:
            ranks.append(texts.index(fact.text))
    share, median = len(ranks) / len(facts), statistics.median(took)
    print(
        f"{share:.1%} of {len(facts)} in the first {FIRST}, {ranks.count(0)} first; median {median * 1000:.1f} ms, longest {max(took) * 1000:.1f} ms"
    )
    assert share >= LEAST_SHARE
    assert median <= MOST_S
