"""What hides is written out; what belongs to words stays."""

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel.text import (
    PlainStream,
    as_meant,
    for_model,
    one_line,
    plain,
    readable,
    shown,
)

PIECES = st.lists(
    st.sampled_from(["\x1b", "[", "3", "1", "m", "]", "\x07", "\\", "a", "\n", "P", "\x9b", "\u202e", " ", "\x9d"]),
    max_size=20,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\r\nb", "a\r\nb"),
        ("a\rb", "a<U+000D>b"),
        ("\x1b[31mred\x1b[0m", "<U+001B>[31mred<U+001B>[0m"),
        ("\x9b1m\x85", "<U+009B>1m<U+0085>"),
        ("user\u202etxt.exe", "user<U+202E>txt.exe"),
        ("a\u200bb\u200cc\u200dd\u2060e\ufefff", "a<U+200B>b<U+200C>c<U+200D>d<U+2060>e<U+FEFF>f"),
        ("x\U000e0072\U000e007f", "x<U+E0072><U+E007F>"),
        ("a\u00adb", "a<U+00AD>b"),
        ("a\ufe0f\U000e0100", "a<U+FE0F><U+E0100>"),
        ("\u2764\ufe0f 1\ufe0f\u20e3", "\u2764\ufe0f 1\ufe0f\u20e3"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("Grüße, 你好 ñ", "Grüße, 你好 ñ"),
    ],
)
def test_everything_hidden_is_written_out(text: str, written: str) -> None:
    assert shown(text) == written
    if "\r" not in text:
        assert for_model(text) == written


def test_a_model_reads_returns_as_they_are() -> None:
    assert for_model("a\rb\r\n") == "a\rb\r\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\x1b[8mhidden\x1b[0m\x1b[2K\rBuild OK\n", "hidden\nBuild OK\n"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x1bPq#0\x1b\\b\x1b(Bc\x1b7d", "bcd"),
        ("10%\r20%\r\n", "10%\n20%\r\n"),
        ("a\0b\x1b", "a<U+0000>b<U+001B>"),
        ("\x1b]never closed\nnext", "<U+001B>]never closed\nnext"),
    ],
)
def test_orders_to_a_terminal_are_dropped_from_what_commands_print(text: str, words: str) -> None:
    assert plain(text) == words


@given(pieces=PIECES)
def test_orders_are_found_in_any_chunking(pieces: list[str]) -> None:
    stream = PlainStream()
    assert "".join([*map(stream.push, pieces), stream.finish()]) == plain("".join(pieces))


@given(text=st.text())
def test_nothing_hidden_is_left_and_the_written_form_means_the_same(text: str) -> None:
    written = for_model(text)
    assert for_model(written) == written
    if "<U+" not in text:
        assert as_meant(written) == text


def test_only_what_hides_is_meant_by_its_number() -> None:
    assert as_meant("<U+202E><U+0041><U+FFFFFF>") == "\u202e<U+0041><U+FFFFFF>"


def test_bytes_of_a_name_that_are_no_characters_are_written_out() -> None:
    name = b"\xff\x1b[2J.py".decode("utf-8", "surrogateescape")
    assert readable(name) == "\\udcff<U+001B>[2J.py"


def test_a_title_is_one_line() -> None:
    assert one_line(" a\n\tb\u202e ") == "a b<U+202E>"
