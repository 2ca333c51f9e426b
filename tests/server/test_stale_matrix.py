"""Users type while the agent edits, in each editor as it is: nobody's words are lost, and all that is told is true."""

import random

import pytest

from tests.support.lsp_lenient import KAKOUNE, SUBLIME, ZED, LikeKakoune
from tests.support.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile
from tests.support.sizes import at_size
from tests.support.slow_windows import Versions
from tests.support.stale_matrix import Story
from tests.support.virtual_time import run_in_virtual_time

STORIES = at_size(ci=30, campaign=1_430)
PROFILES = [VSCODE, NEOVIM_0_11, HELIX, EGLOT, SUBLIME, KAKOUNE, ZED]


async def _play(profile: Profile, seed: int) -> None:
    chosen = random.Random(f"{profile.name} {seed}")  # noqa: S311 - the same story each time
    edits = profile.edits()
    if profile is KAKOUNE:
        edits = LikeKakoune(delay_s=lambda: chosen.choice([0, 0.05, 0.5]) * chosen.random())
    await Story(profile, chosen, edits=edits, versions=_versions(profile)).play()


def _versions(profile: Profile) -> Versions:
    if profile is NEOVIM_0_11:
        return "checked but for 0"
    return "ignored" if profile in (KAKOUNE, ZED) else "checked"


@pytest.mark.slow
@pytest.mark.timeout(at_size(ci=60, campaign=1_800))
@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_nobodys_words_are_lost_and_all_that_is_told_is_true(profile: Profile) -> None:
    for seed in range(STORIES):
        try:
            run_in_virtual_time(_play(profile, seed))
        except BaseException as error:
            error.add_note(f"seed {seed} of {profile.name}")
            raise
