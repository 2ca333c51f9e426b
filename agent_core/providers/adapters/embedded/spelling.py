"""Measures how close two spellings are."""

from collections.abc import Iterable

LETTERS_PER_SLIP = 3
"""One slip of the finger is forgiven for as many letters."""


def slips(one: str, two: str) -> int:
    """Count the letters to add, drop, change or swap with their neighbour to get from one to the other."""
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(two, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and b == one[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the one candidate that the word is a slip of; None when there is none, or no single one."""
    allowed = max(1, len(word) // LETTERS_PER_SLIP)
    near = [one for one in candidates if abs(len(one) - len(word)) <= allowed and one != word]
    ranked = sorted((slips(word, one), one) for one in near)
    ranked = [pair for pair in ranked if pair[0] <= allowed]
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1]
