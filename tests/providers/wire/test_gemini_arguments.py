"""Arguments that come leaf by leaf make one object, or an error, and never half an object."""

from typing import Any

import pytest

from agent_core.providers.wire.gemini.arguments import PartialArguments

YES = True


def leaf(path: str, value: Any, *, goes_on: bool = False) -> dict[str, Any]:
    match value:
        case bool():
            told = {"boolValue": value}
        case str():
            told = {"stringValue": value}
        case None:
            told = {"nullValue": "NULL_VALUE"}
        case _:
            told = {"numberValue": value}
    return {"jsonPath": path, **told, **({"willContinue": True} if goes_on else {})}


@pytest.mark.parametrize(
    ("leaves", "whole"),
    [
        ([], {}),
        ([leaf("$.a", "x")], {"a": "x"}),
        (
            [leaf("$.a", 0.5), leaf("$.b", YES), leaf("$.c", None)],
            {"a": 0.5, "b": True, "c": None},
        ),
        (
            [leaf("$.a", "x", goes_on=True), leaf("$.a", "y", goes_on=True), leaf("$.a", "")],
            {"a": "xy"},
        ),
        ([leaf("$.a", "x", goes_on=True), leaf("$.b", "y")], {"a": "x", "b": "y"}),
        (
            [leaf("$.a[0].b", "x"), leaf("$.a[0].c", 1), leaf("$.a[1].b", "y")],
            {"a": [{"b": "x", "c": 1}, {"b": "y"}]},
        ),
        ([leaf("$.a[0][1]", 1), leaf("$.a[0][0]", 0)], {"a": [[0, 1]]}),
        (
            [leaf("$['a b'].c", "x"), leaf('$["d.e"]["f]"]', "y"), leaf(r"$['it\'s']", "z")],
            {"a b": {"c": "x"}, "d.e": {"f]": "y"}, "it's": "z"},
        ),
        ([leaf("a.b", "x")], {"a": {"b": "x"}}),
        ([leaf("$.größe", "ü")], {"größe": "ü"}),
        ([{"stringValue": "no path"}], {}),
    ],
)
def test_leaves_make_the_object(leaves: list[Any], whole: Any):
    arguments = PartialArguments()
    for each in leaves:
        arguments.add(each)
    assert arguments.so_far() == whole


@pytest.mark.parametrize(
    "leaves",
    [
        [leaf("$", 1)],
        [leaf("$.a[", 1)],
        [leaf("$..a", 1)],
        [leaf("$.a", 1), leaf("$.a.b", 1)],
        [leaf("$.a[0]", 1), leaf("$.a.b", 1)],
        [leaf("$.a[1000000000]", 1)],
    ],
    ids=["root", "open", "blank", "below a value", "name in a list", "far away"],
)
def test_a_path_that_does_not_fit_is_an_error(leaves: list[Any]):
    *before, last = leaves
    arguments = PartialArguments()
    for each in before:
        arguments.add(each)
    with pytest.raises(ValueError, match=r"path|place|value"):
        arguments.add(last)


def test_a_text_that_still_grows_is_not_whole():
    arguments = PartialArguments()
    arguments.add(leaf("$.a", "x", goes_on=True))
    assert not arguments.is_whole
    arguments.add(leaf("$.a", ""))
    assert arguments.is_whole
