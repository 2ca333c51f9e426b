"""What is assumed of an editor: by its name, by what it declares, and by what its user sets."""

import pytest

from server.lsp.abilities import Abilities
from tests.support.editors import Window
from tests.support.lsp_profiles import EGLOT, HELIX, MINIMAL, NEOVIM_0_11, PANEL, VSCODE, Profile

WORST = {
    "trustApplied": False,
    "multiDocEdit": False,
    "singleDialog": True,
    "blockingDialogs": True,
    "autoReload": False,
    "saveViaRefactoring": False,
    "insertModeMerge": True,
    "documentChanges": False,
}


def test_an_unknown_editor_is_taken_for_the_worst() -> None:
    editor = Window(MINIMAL).editor
    assert (editor.name, editor.quirks_in_force()) == ("minimal", WORST)


def test_users_overrule_the_table_with_booleans_only() -> None:
    quirks = {"trustApplied": True, "insertModeMerge": "no", "singleDialog": 0, "other": True}
    in_force = Window(NEOVIM_0_11, options={"quirks": quirks}).editor.quirks_in_force()
    assert in_force == WORST | {
        "trustApplied": True,
        "singleDialog": False,
        "documentChanges": True,
    }


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (VSCODE, (True, True, False, True)),
        (NEOVIM_0_11, (True, True, False, False)),
        (HELIX, (True, True, False, False)),
        (EGLOT, (True, True, False, False)),
        (MINIMAL, (False, False, False, False)),
        (PANEL, (True, True, True, False)),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_abilities_are_what_was_declared_or_is_known(
    profile: Profile, expected: tuple[bool, bool, bool, bool]
) -> None:
    edits, versions, saves, reloads = expected
    assert Window(profile).editor.abilities == Abilities(
        applies_edits=edits,
        takes_versions=versions,
        saves=saves,
        reloads=reloads,
        prefers_disk=False,
    )


def test_an_editor_may_declare_in_its_options_what_it_cannot_elsewhere() -> None:
    capabilities = {"documents": {"save": {}}}
    assert Window(HELIX, options={"capabilities": capabilities}).editor.abilities.saves is True


@pytest.mark.parametrize("odd", [None, [], "x", {"workspace": []}, {"experimental": {"agent": 7}}])
def test_misshapen_capabilities_offer_nothing(odd: object) -> None:
    window = Window(Profile(name="", version="", capabilities={}))
    window.client_params = {"capabilities": odd, "initializationOptions": odd, "clientInfo": odd}
    editor = type(window.editor).of(window, window.mirror)
    assert (editor.name, editor.abilities.applies_edits) == ("unknown", False)
