"""Docstrings, identifiers and modules use the terms of the field, and a public name means one thing."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.support.harness.sources import PRODUCT, Source, sources

BANNED_VERBS = frozenset(
    {"give", "gives", "let", "lets", "put", "puts", "say", "says", "take", "takes", "tell", "tells"}
)
"""They say nothing of what a function does with a value: returns, stores, publishes, reports or accepts it."""
BANNED_SUBJECTS = frozenset({"nobody", "somebody", "what", "who", "whoever"})
BANNED_WORDS = frozenset(
    {
        "aside",
        "carry",
        "desk",
        "footing",
        "front",
        "holding",
        "hosted",
        "known",
        "landed",
        "lookout",
    }
    | {"offspring", "reach", "retold", "say", "standing", "stories", "told", "voice", "words"}
)
"""They were the private vocabulary of this code; decision 0073."""
WORDS_KEPT: Mapping[str, str] = {
    "parse_known_args": "a method of argparse",
    "StandingView": "a name in schema.json, which clients generate their types from",
}
NAMES_KEPT: Mapping[str, str] = {}
NOUNS_IN_ING = frozenset(
    {"encoding", "finding", "framing", "mapping", "matching"}
    | {"parsing", "pricing", "reasoning", "spelling", "tuning"}
)
WIRE = "server/tiller_server/lsp/wire/"
"""Its shapes are named as in schema.json, also where the core has a class of the same name."""
ANY_BANNED = re.compile("|".join(sorted(BANNED_WORDS)), re.IGNORECASE)
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
TYPE_NAME = re.compile(r"[A-Z]+[a-z]")
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


def identifiers(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that a module defines or uses, keywords of calls included."""
    for node in ast.walk(source.tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield node.lineno, name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.value.lineno, name
            case ast.alias(name=name, asname=other):
                yield node.lineno, other or name.rpartition(".")[2]
            case _:
                pass


@cache
def has_a_banned_word(identifier: str) -> bool:
    return any(word.lower() in BANNED_WORDS for word in WORD.findall(identifier))


def public_types(source: Source) -> Iterator[str]:
    """Yield the public classes and type aliases that a module defines."""
    for node in source.tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                pass
            case _:
                continue
        if TYPE_NAME.match(name):
            yield name


def test_an_identifier_uses_the_terms_of_the_field() -> None:
    wrong = [
        f"{source.path}:{line}: {name}"
        for source in sources(*PRODUCT)
        if ANY_BANNED.search(source.text)
        for line, name in identifiers(source)
        if has_a_banned_word(name) and name not in WORDS_KEPT
    ]
    assert wrong == []


def test_a_public_name_means_one_thing() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for source in sources(*PRODUCT):
        if not source.path.startswith(WIRE):
            for name in public_types(source):
                places[name].append(source.path)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in NAMES_KEPT} == {}
    assert [name for name in NAMES_KEPT if name not in twice] == []


def test_a_module_is_named_by_its_topic() -> None:
    stems = {source.path: Path(source.path).stem for source in sources(*PRODUCT)}
    wrong = [
        path
        for path, stem in stems.items()
        if has_a_banned_word(stem)
        or (stem.endswith("ing") and stem.rpartition("_")[2] not in NOUNS_IN_ING)
    ]
    assert wrong == []


def test_a_banned_word_is_noticed_in_every_form() -> None:
    for name in ("words", "first_words", "StandingView", "TOLD", "_known", "say_state"):
        assert has_a_banned_word(name)
    for name in ("keywords", "unknown", "essay", "outstanding", "frontmatter"):
        assert not has_a_banned_word(name)
