"""Arguments are taken apart and put into their places once, whatever they say themselves."""

import time

import pytest

from agent_core.resources.templates import fill_in, split_arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", ()),
        ("   ", ()),
        ("it's fine", ("it's", "fine")),
        ('a"b c"', ('a"b', 'c"')),
        ('"open a b', ('"open', "a", "b")),
        ('"" a', ("", "a")),
        (r'say "x \"y\""', ("say", 'x "y"')),
        ("'a  b' c", ("a  b", "c")),
        (r"'a\' b'", ("a\\", "b'")),
        ('"a"b c', ('"a"b', "c")),
        ('"a\nb"\tc', ("a\nb", "c")),
        (r'"a\\" b', ("a\\", "b")),
        ("$1 ${@}", ("$1", "${@}")),
    ],
)
def test_arguments_are_taken_apart(text: str, arguments: tuple[str, ...]) -> None:
    assert split_arguments(text) == arguments


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("$1-$2-$3", ("a", "b"), "a-b-"),
        ("${1:-d} ${2:-e}", ("x",), "x e"),
        ("${@:2:1}", ("a", "b", "c"), "b"),
        ("${@:2}", ("a", "b", "c"), "b c"),
        ("${@:0}", ("a", "b"), "a b"),
        ("${@:9}", ("a", "b"), ""),
        ("${@:1:0}", ("a", "b"), ""),
        ("[$0]", ("a",), "[]"),
        ("$1", ("$@",), "$@"),
        ("${1:-d}", ("${2}", "b"), "${2}"),
        ("${@:-none}", (), "none"),
        ("${@:-none}", ("a",), "a"),
        ("$@|$ARGUMENTS|${ARGUMENTS}|${@}", ("a", "b c"), "a b c|a b c|a b c|a b c"),
        ("$ARGUMENTSX $10 ${10}", ("a",), "$ARGUMENTSX  "),
        ("${1:-}", (), ""),
        ("${1:-d}", ("",), "d"),
        ("${1:-${2:-x}}", (), "x"),
        ("${1:-${2:-x}}", ("", "y"), "y"),
        ("${1:-a ${@:1:1} b}", (), "a  b"),
        ("costs $5.00, $x, ${HOME}, $", ("a",), "costs .00, $x, ${HOME}, $"),
        ("${1:-open ${2", ("a",), "${1:-open ${2"),
        ("${1:-open $2", ("a", "b"), "${1:-open b"),
        ("${1:2} ${1:-x:y}", ("",), "${1:2} x:y"),
    ],
)
def test_each_place_gets_what_belongs_there(
    template: str, arguments: tuple[str, ...], text: str
) -> None:
    assert fill_in(template, arguments).text == text


@pytest.mark.parametrize(
    ("template", "has_places"),
    [("do it", False), ("cost: $x ${HOME}", False), ("do $1", True), ("${@:-x}", True)],
)
def test_a_template_says_whether_it_has_a_place(template: str, has_places: bool) -> None:
    assert fill_in(template, ()).has_places is has_places


@pytest.mark.parametrize("open_or_closed", ["", "}" * 20_000])
def test_deeply_nested_places_take_no_time(open_or_closed: str) -> None:
    template = "${1:-" * 20_000 + open_or_closed
    began_s = time.process_time()
    assert fill_in(template, ()).text
    assert fill_in("$" * 100_000, ()).text == "$" * 100_000
    assert time.process_time() - began_s < 2
