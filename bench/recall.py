"""How long a search of the memory takes among 10,000 entries."""

import tempfile
import time
from pathlib import Path

from agent_core.memory.index import MemoryIndex
from bench.kit import Bar, Benchmark, Plan, Row
from bench.lab import Workshop
from tests.memory.retrieval_corpus import DAY, ENTRIES, memory_index, seeded_facts

SEARCH_MS = Bar(of="median", at_most=20)
FIRST = 5


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Ask for each seeded fact in other words; the first search, which builds the index, is told apart."""
    _ = plan, shop
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        index = memory_index(Path(folder))
        first_ms = _search_ms(index, "warm up")
        took_ms = tuple(_search_ms(index, fact.question) for fact in seeded_facts())
    return [
        Row(
            what=f"a search among {ENTRIES:,} entries for a fact in other words",
            unit="ms",
            ours=took_ms,
            bar=SEARCH_MS,
            note=f"the first search, which reads the file and builds the index {first_ms:.0f} ms",
        )
    ]


def _search_ms(index: MemoryIndex, question: str) -> float:
    begun_s = time.monotonic()
    _ = index.search(question, limit=FIRST, today=DAY)
    return (time.monotonic() - begun_s) * 1000


BENCHMARK = Benchmark(name="recall", title="The memory", run=measure)
