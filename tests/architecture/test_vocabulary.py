"""Docstrings use the standard verbs of the field."""

import ast
import re
from collections.abc import Iterator

from tests.support.sources import PRODUCT, Source, sources

BANNED_VERBS = frozenset(
    {"give", "gives", "let", "lets", "put", "puts", "say", "says", "take", "takes", "tell", "tells"}
)
"""They say nothing of what a function does with a value: returns, stores, publishes, reports or accepts it."""
FIRST_WORD = re.compile(r"[A-Za-z]+")


def begins_with_a_banned_verb(docstring: str) -> bool:
    found = FIRST_WORD.match(docstring)
    return found is not None and found[0].lower() in BANNED_VERBS


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def test_a_docstring_begins_with_a_standard_verb() -> None:
    wrong = [
        f"{source.path}:{line}: {text.splitlines()[0]}"
        for source in sources(*PRODUCT)
        for line, text in docstrings(source)
        if begins_with_a_banned_verb(text)
    ]
    assert wrong == []


def test_a_banned_verb_is_noticed() -> None:
    assert begins_with_a_banned_verb("Give the size of a file.")
    assert begins_with_a_banned_verb("Tells hooks of what grows.")
    assert not begins_with_a_banned_verb("Return the size of a file.")
    assert not begins_with_a_banned_verb("Letters of a name.")
