"""What counts as a word, in every script, and what a query asks for."""

import pytest

from agent_core.storage.adapters.index.tokenizer import (
    SNIPPET_CHARS,
    Term,
    match_form,
    snippet,
    stored_form,
    terms,
)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Plain ASCII, as_it is.", "Plain ASCII, as_it is."),
        ("Héllo Wörld", "hello world"),
        ("He\u0301llo", "hello"),
        ("STRASSE Straße", "strasse strasse"),
        ("会话索引works", "会 话 索 引 works"),
        ("会 话，索\n引", "会 · 话 · 索 引"),
        ("ガイド", "ガ イ ド"),
        ("ｶｲﾄ", "カ イ ト"),
        ("한국어를", "한 국 어 를"),
        ("ＡＢＣ１２", "abc12"),
        ("naïve_name–foo…", "naive name foo"),
        ("😀 ü", "u"),
    ],
)
def test_text_is_stored_as_words_without_case_accents_and_widths(text: str, stored: str) -> None:
    assert stored_form(text) == stored


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ()),
        ("  ", ()),
        ('"', ()),
        ("* : - ^ ( ) ' \\ \x00", ()),
        ("one Two", (Term(("one",)), Term(("two",), is_prefix=True))),
        ("one two ", (Term(("one",)), Term(("two",), is_prefix=True))),
        ('"one two"', (Term(("one", "two")),)),
        ('"one two', (Term(("one", "two")),)),
        ('a "b c" d*', (Term(("a",)), Term(("b", "c")), Term(("d",), is_prefix=True))),
        ("a AND b", (Term(("a",)), Term(("and",)), Term(("b",), is_prefix=True))),
        ("text:word", (Term(("text", "word"), is_prefix=True),)),
        ("get_name", (Term(("get", "name"), is_prefix=True),)),
        ("会话", (Term(("会", "话")),)),
        ("か\u3099い", (Term(("が", "い")),)),
        ("修复bug", (Term(("修", "复", "bug"), is_prefix=True),)),
    ],
)
def test_a_query_is_words_and_phrases_and_nothing_else(
    query: str, wanted: tuple[Term, ...]
) -> None:
    assert terms(query) == wanted


def test_a_term_is_always_quoted_so_that_no_word_is_an_operator() -> None:
    assert [match_form(term) for term in terms('near "or not" and')] == [
        '"near"',
        '"or not"',
        '"and" *',
    ]


def marked(text: str, query: str) -> list[str]:
    shown, marks = snippet(text, terms(query))
    return [shown[start:end] for start, end in marks]


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("We read the Parser and parse", "pars", ["Parser", "parse"]),
        ("Straße und STRASSE", '"strasse"', ["Straße", "STRASSE"]),
        ("修复会话索引的错误", "索引", ["索引"]),
        ("one two, three; one-two", '"one two"', ["one two", "one-two"]),
        ("ab ab ab", '"ab ab"', ["ab ab ab"]),
        ("nothing of it", "else", []),
    ],
)
def test_a_snippet_says_where_the_words_are(text: str, query: str, found: list[str]) -> None:
    assert marked(text, query) == found


def test_a_snippet_is_short_on_one_line_and_shows_the_place() -> None:
    text = "before\n" * 200 + "the\tneedle\x1b[31m " + "after " * 200
    shown, marks = snippet(text, terms("needle"))
    assert [shown[start:end] for start, end in marks] == ["needle"]
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= SNIPPET_CHARS + 2
    assert shown.isprintable()
