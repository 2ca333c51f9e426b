"""Long lists have pages, and what is pressed is understood also where only a title comes back."""

from collections.abc import Mapping
from typing import Any

import pytest

from tiller_server.lsp.plain.paged_menu import MORE, MenuChoice, choose, pages

NINE = [MenuChoice(id=f"m{number}", title=f"Model {number}") for number in range(1, 10)]


class Presses:
    """Presses buttons in order by their titles; `bare` gives back nothing else."""

    def __init__(self, *titles: str | None, bare: bool = False) -> None:
        self.shown: list[Mapping[str, Any]] = []
        self._titles = list(titles)
        self._bare = bare

    async def __call__(self, params: Mapping[str, Any]) -> object:
        self.shown.append(params)
        title = self._titles.pop(0)
        found = next((one for one in params["actions"] if one["title"] == title), None)
        return {"title": title} if self._bare and found else found


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (4, [4]), (5, [3, 2]), (9, [3, 3, 3])])
def test_a_page_has_four_buttons_with_the_one_to_the_next(count: int, sizes: list[int]) -> None:
    assert [len(page) for page in pages(NINE[:count])] == sizes


@pytest.mark.parametrize("bare", [False, True], ids=["with data", "title only"])
async def test_a_choice_on_a_later_page(bare: bool) -> None:
    presses = Presses(MORE, MORE, "Model 8", bare=bare)
    assert await choose(presses, "which?", NINE) == "m8"
    assert [one["message"] for one in presses.shown] == [
        "Tiller: which? (1 of 3)",
        "Tiller: which? (2 of 3)",
        "Tiller: which? (3 of 3)",
    ]
    assert all(len(one["actions"]) <= 4 for one in presses.shown)


async def test_behind_the_last_page_comes_the_first() -> None:
    assert await choose(Presses(MORE, MORE, MORE, "Model 1"), "which?", NINE) == "m1"


async def test_a_closed_dialog_chooses_nothing() -> None:
    assert await choose(Presses(MORE, None), "which?", NINE) is None


async def test_a_button_that_was_not_there_chooses_nothing() -> None:
    async def odd(params: Mapping[str, Any]) -> object:
        return {"title": "Delete everything", "optionId": "m99"}

    assert await choose(odd, "which?", NINE[:2]) is None


async def test_two_of_one_title_are_told_apart_or_not_at_all() -> None:
    twins = [MenuChoice(id="a", title="Same"), MenuChoice(id="b", title="Same")]
    assert await choose(Presses("Same", bare=True), "which?", twins) is None
