"""Facts are found again by questions in other words, among 10,000 entries."""

from pathlib import Path

from tests.memory.retrieval_corpus import DAY, memory_index, seeded_facts

LEAST_SHARE = 0.9
FIRST = 5


def test_nine_of_ten_seeded_facts_are_among_the_first_five(tmp_path: Path) -> None:
    index = memory_index(tmp_path)
    assert index.search("warm up", limit=1, today=DAY) == []
    facts = seeded_facts()
    ranks: list[int] = []
    for fact in facts:
        hits = index.search(fact.question, limit=FIRST, today=DAY)
        texts = [hit.entry.text for hit in hits]
        if fact.text in texts:
            ranks.append(texts.index(fact.text))
    share = len(ranks) / len(facts)
    print(f"{share:.1%} of {len(facts)} in the first {FIRST}, {ranks.count(0)} first")
    assert share >= LEAST_SHARE
