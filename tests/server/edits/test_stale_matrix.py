"""Users type while the agent edits, in each editor as it is: nobody's words are lost, and all that is told is true."""

import random
from dataclasses import dataclass

import pytest

from tests.server.edits.slow_windows import Numbering, Versions
from tests.server.edits.stale_matrix import Story
from tests.server.edits.virtual_time import run_in_virtual_time
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_lenient import KAKOUNE, SUBLIME, ZED, LikeKakoune
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile

STORIES = at_size(ci=20, campaign=1_430)
"""Of each of the seven editors as it is: 10,010 in all."""
MORE_STORIES = at_size(ci=20, campaign=770)
"""Of each habit beyond these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An editor with a habit."""

    profile: Profile
    numbering: Numbering = "counted"
    gathers: float = 0.3
    """How likely it tells of several changes at once."""
    most_wrong: float = 0.0
    """The share of stories that may end badly: where an editor puts an edit into text that it was not made for, and its user
    goes on in those very lines before it is mended, or it tells of both at once, there is room for a wrong guess."""

    @property
    def name(self) -> str:
        habits = {"none": " without versions", "odd": " with odd versions", "counted": ""}
        gathers = " that gathers" if self.gathers == 1 else ""
        return f"{self.profile.name}{habits[self.numbering]}{gathers}"

    @property
    def stories(self) -> int:
        is_usual = self.numbering == "counted" and self.gathers < 1
        return STORIES if is_usual else MORE_STORIES

    @property
    def versions(self) -> Versions:
        if self.profile in (KAKOUNE, ZED) or self.numbering != "counted":
            # Where versions do not tell texts apart, to look at them is of no use.
            return "ignored"
        return "checked but for 0" if self.profile is NEOVIM_0_11 else "checked"


CASES = [
    *(Case(profile=one) for one in (VSCODE, NEOVIM_0_11, HELIX, EGLOT, SUBLIME, KAKOUNE, ZED)),
    Case(profile=KAKOUNE, gathers=1, most_wrong=0.01),
    Case(profile=ZED, gathers=1, most_wrong=0.01),
    Case(profile=VSCODE, numbering="none", gathers=0),
    Case(profile=HELIX, numbering="none", gathers=0, most_wrong=0.01),
    Case(profile=VSCODE, numbering="odd"),
    Case(profile=EGLOT, numbering="odd"),
]


async def _play(case: Case, seed: int) -> None:
    profile = case.profile
    chosen = random.Random(f"{case.name} {seed}")  # noqa: S311 - the same story each time
    edits = profile.edits()
    if profile is KAKOUNE:
        edits = LikeKakoune(delay_s=lambda: chosen.choice([0, 0.05, 0.5]) * chosen.random())
    story = Story(
        profile,
        chosen,
        edits=edits,
        versions=case.versions,
        numbering=case.numbering,
        gathers=case.gathers,
    )
    await story.play()


@pytest.mark.timeout(at_size(ci=60, campaign=1_800))
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_nobodys_words_are_lost_and_all_that_is_told_is_true(case: Case) -> None:
    wrong: list[BaseException] = []
    for seed in range(case.stories):
        try:
            run_in_virtual_time(_play(case, seed))
        except BaseException as error:
            error.add_note(f"seed {seed} of {case.name}, the {len(wrong) + 1}. of {case.stories}")
            wrong.append(error)
            if len(wrong) > case.stories * case.most_wrong:
                raise
