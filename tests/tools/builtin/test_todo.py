"""The tool todo: a whole list each time, forgiving about its form, strict about its limits."""

import pytest

from tests.tools.conftest import Bench, details, words

ITEMS = [
    {"text": "Read the build", "status": "done"},
    {"text": "Mend it", "status": "active", "why": "CI is red"},
    {"text": "Run the tests"},
]


async def test_a_list_is_kept_with_the_state_of_each_step(bench: Bench) -> None:
    outcome = await bench.run("todo", items=ITEMS)
    assert words(outcome) == "The list is kept: 1 pending, 1 active, 1 done."
    assert details(outcome) == {
        "todo": [
            {"id": "1", "text": "Read the build", "status": "done"},
            {"id": "2", "text": "Mend it", "status": "active", "why": "CI is red"},
            {"id": "3", "text": "Run the tests", "status": "pending"},
        ]
    }


async def test_an_empty_list_removes_it(bench: Bench) -> None:
    outcome = await bench.run("todo", items=[])
    assert words(outcome) == "The list is removed."
    assert details(outcome) == {"todo": []}


@pytest.mark.parametrize("name", ["todos", "list", "steps"])
async def test_other_names_of_the_list_are_taken(bench: Bench, name: str) -> None:
    outcome = await bench.run("todo", **{name: '[{"text": "One"}]'})
    assert words(outcome) == "The list is kept: 1 pending."


async def test_texts_are_one_line_without_hidden_characters_and_are_cut(bench: Bench) -> None:
    outcome = await bench.run("todo", items=[{"text": "a\n b\u202e" + "x" * 500}])
    (item,) = details(outcome)["todo"]
    assert item["text"].startswith("a b<U+202E>x")
    assert len(item["text"]) == 200


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([{"text": "x"}] * 51, "The list has 51 items, at most 50 are kept"),
        ([{"text": "x", "status": "active"}] * 2, "More than one step is active"),
        ([{"text": " "}], "Item 1 has no text"),
        ([{"text": "x", "status": "later"}], "status"),
        ([{}], "text"),
    ],
    ids=["many", "two-active", "blank", "status", "no-text"],
)
async def test_an_invalid_list_is_an_error_that_names_the_limit(
    bench: Bench, items: list[dict[str, str]], why: str
) -> None:
    outcome = await bench.run("todo", items=items)
    assert outcome.status == "error"
    assert why in words(outcome)


async def test_the_title_counts_what_is_done(bench: Bench) -> None:
    tool = bench.tools["todo"]
    assert tool.title({"items": ITEMS}) == "todo 1 of 3 done"
    assert tool.title({}) == "todo"
