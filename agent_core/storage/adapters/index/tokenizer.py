"""Cuts text into the words that are searched for: pure, and the same for what is stored and what is asked.

Scripts that put no spaces between words are cut into single characters: a phrase of them is found wherever it stands,
so two characters find what a cutter of words would have to know a dictionary for.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from agent_core.kernel.values import Value

SNIPPET_CHARS = 160
LEAD_CHARS = 40
"""How much of a snippet stands before its first word."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"  # kana, Bopomofo, Han
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"  # Hangul, more Han, narrow kana
)
_MARKS = "\u0300-\u036f"
_WORD = re.compile(rf"([{_UNSPACED}])|(?:[^\W_{_UNSPACED}][{_MARKS}]*)+")
_PARTS = re.compile(r'"([^"]*)"?|([^\s"]+)')
_BREAK = "\u00b7"
"""Stands for what separates two characters of an unspaced script, so that they are no phrase; a new line does not."""
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")


class Term(Value, frozen=True):
    """Words that stand one after the other."""

    tokens: tuple[str, ...]
    is_prefix: bool = False
    """The last word may go on."""


def composed(text: str) -> str:
    """Write letters and their marks as one character where there is one: macOS takes them apart."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def stored_form(text: str) -> str:
    """Write a text as words between spaces, for an index that cuts at ASCII separators and folds ASCII letters."""
    if text.isascii():
        return text
    return " ".join([word for word, _, _ in _tokenize(text)])


def terms(query: str) -> tuple[Term, ...]:
    """Read a query; each part between spaces, and each in quotes, is a term."""
    found: list[Term] = []
    query = composed(query)
    for part in _PARTS.finditer(query):
        quoted, plain = part.group(1), part.group(2)
        tokens = tuple(word for word, _, _ in _tokenize(quoted if plain is None else plain))
        if tokens:
            is_last = part.end() == len(query.rstrip()) and plain is not None
            found.append(Term(tokens, is_prefix=is_last and _may_go_on(tokens[-1])))
    return tuple(found)


def match_form(term: Term) -> str:
    """Write a term in the language of FTS5; words hold no quotes, so nothing in them is taken for syntax."""
    phrase = " ".join(term.tokens)
    return f'"{phrase}" *' if term.is_prefix else f'"{phrase}"'


def snippet(text: str, wanted: Sequence[Term]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Cut out the piece of a text that shows the first place of a term, and say where the terms are in it."""
    places = _places(text, wanted)
    start = max(0, places[0][0] - LEAD_CHARS) if places else 0
    end = min(len(text), max(start + SNIPPET_CHARS, places[0][1] if places else 0))
    lead = "…" if start > 0 else ""
    # One character for one: the marks stay where they are.
    shown = "".join(
        " " if char.isspace() or not char.isprintable() else char for char in text[start:end]
    )
    tail = "…" if end < len(text) else ""
    shift = len(lead) - start
    marks = tuple((one + shift, two + shift) for one, two in places if two <= end)
    return f"{lead}{shown}{tail}", marks


def _tokenize(text: str) -> Iterator[tuple[str, int, int]]:
    """Return each word, folded, with its place."""
    if text.isascii():
        for found in _ASCII_WORD.finditer(text):
            yield found.group().lower(), found.start(), found.end()
        return
    after = 0
    was_alone = False
    for found in _WORD.finditer(text):
        # Narrow kana are folded to wide ones; marks that make another sound stay.
        alone = found.group(1)
        word = unicodedata.normalize("NFKC", alone) if alone else _folded(found.group())
        start, end = found.span()
        if alone and was_alone and text[after:start].strip("\r\n"):
            yield _BREAK, after, start
        after, was_alone = end, alone is not None
        if word:
            yield word, start, end


def _folded(word: str) -> str:
    """Normalize case, accents and character widths."""
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFKD", word).casefold()
    kept = "".join(char for char in plain if not unicodedata.combining(char) and char.isalnum())
    return unicodedata.normalize("NFC", kept)


def _may_go_on(word: str) -> bool:
    """A single character of an unspaced script is a whole word already."""
    return not re.fullmatch(f"[{_UNSPACED}]", word)


def _places(text: str, wanted: Sequence[Term]) -> list[tuple[int, int]]:
    """Find where terms are; places that overlap become one."""
    tokens = list(_tokenize(text))
    folded = [word for word, _, _ in tokens]
    found = sorted(
        (tokens[place][1], tokens[place + len(term.tokens) - 1][2])
        for term in wanted
        for place in range(len(tokens) - len(term.tokens) + 1)
        if _stands_at(folded, place, term)
    )
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _stands_at(folded: Sequence[str], place: int, term: Term) -> bool:
    *whole, last = term.tokens
    there = folded[place + len(whole)]
    if there != last and not (term.is_prefix and there.startswith(last)):
        return False
    return all(folded[place + step] == word for step, word in enumerate(whole))
