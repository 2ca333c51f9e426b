"""Docstrings use the standard verbs of the field."""

import ast
import re
from collections.abc import Iterator

from tests.support.sources import PRODUCT, Source, sources

BANNED_VERBS = frozenset(
    {"give", "gives", "let", "lets", "put", "puts", "say", "says", "take", "takes", "tell", "tells"}
)
"""They say nothing of what a function does with a value: returns, stores, publishes, reports or accepts it."""
BANNED_SUBJECTS = frozenset({"nobody", "somebody", "what", "who", "whoever"})
FIRST_WORD = re.compile(r"[A-Za-z]+")
SENTENCE = re.compile(r"(?<=[.;:])\s+")


def begins_with_a_banned_verb(docstring: str) -> bool:
    found = FIRST_WORD.match(docstring)
    return found is not None and found[0].lower() in BANNED_VERBS


def sentences_without_a_subject(docstring: str) -> list[str]:
    """Name the sentences whose subject the reader has to guess."""
    return [
        sentence
        for sentence in SENTENCE.split(docstring.strip())
        if (found := FIRST_WORD.match(sentence)) and found[0].lower() in BANNED_SUBJECTS
    ]


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring, those of fields and constants included."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def test_a_docstring_begins_with_a_standard_verb() -> None:
    wrong = [
        f"{source.path}:{line}: {text.splitlines()[0]}"
        for source in sources(*PRODUCT)
        for line, text in docstrings(source)
        if begins_with_a_banned_verb(text)
    ]
    assert wrong == []


def test_a_sentence_of_a_docstring_has_a_subject() -> None:
    wrong = [
        f"{source.path}:{line}: {sentence}"
        for source in sources(*PRODUCT)
        for line, text in docstrings(source)
        for sentence in sentences_without_a_subject(text)
    ]
    assert wrong == []


def test_a_banned_verb_is_noticed() -> None:
    assert begins_with_a_banned_verb("Give the size of a file.")
    assert begins_with_a_banned_verb("Tells hooks of what grows.")
    assert not begins_with_a_banned_verb("Return the size of a file.")
    assert not begins_with_a_banned_verb("Letters of a name.")


def test_a_missing_subject_is_noticed() -> None:
    assert sentences_without_a_subject("Rules. What is written is kept; nobody asks.") == [
        "What is written is kept;",
        "nobody asks.",
    ]
    assert sentences_without_a_subject("The user decides. Whole lines only.") == []
