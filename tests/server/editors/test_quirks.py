"""What is assumed of an editor: by its name, by what it declares, and by what its user sets."""

from dataclasses import asdict

import pytest

from tests.support.clients.editors import Window
from tests.support.lsp.lsp_profiles import (
    EGLOT,
    HELIX,
    MINIMAL,
    NEOVIM_0_11,
    PANEL,
    VSCODE,
    Profile,
)

WORST = {
    "trustApplied": False,
    "multiDocEdit": False,
    "singleDialog": True,
    "blockingDialogs": True,
    "autoReload": False,
    "saveViaRefactoring": False,
    "insertModeMerge": True,
    "documentChanges": False,
    "lateUndoSteps": False,
    "opensNotebooks": False,
    "zeroUnchecked": False,
    "silentAnswers": True,
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
        "zeroUnchecked": True,
        "silentAnswers": False,
    }


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            VSCODE,
            {
                "applies_edits",
                "takes_versions",
                "edits_together",
                "saves_refactorings",
                "reloads",
                "deletes",
                "renames",
            },
        ),
        (
            NEOVIM_0_11,
            {"applies_edits", "takes_versions", "least_version", "deletes", "renames"},
        ),
        (HELIX, {"applies_edits", "takes_versions", "deletes", "renames"}),
        (EGLOT, {"applies_edits", "takes_versions"}),
        (MINIMAL, set()),
        (
            PANEL,
            {
                "applies_edits",
                "takes_versions",
                "takes_requests",
                "tells_of_each",
                "saves_edits",
                "saves",
                "reads",
                "deletes",
                "renames",
                "shows",
            },
        ),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_abilities_are_what_was_declared_or_is_known(profile: Profile, expected: set[str]) -> None:
    abilities = asdict(Window(profile).editor.capabilities)
    told = {name for name, value in abilities.items() if value and not isinstance(value, str)}
    assert told == expected


def test_an_editor_may_declare_in_its_options_what_it_cannot_elsewhere() -> None:
    capabilities = {"documents": {"save": {}}}
    assert Window(HELIX, options={"capabilities": capabilities}).editor.capabilities.saves is True


@pytest.mark.parametrize("odd", [None, [], "x", {"workspace": []}, {"experimental": {"agent": 7}}])
def test_misshapen_capabilities_offer_nothing(odd: object) -> None:
    window = Window(Profile(name="", version="", capabilities={}))
    window.client_params = {"capabilities": odd, "initializationOptions": odd, "clientInfo": odd}
    editor = type(window.editor).of(window, window.mirror)
    assert (editor.name, editor.capabilities.applies_edits) == ("unknown", False)


@pytest.mark.parametrize(
    ("info", "capabilities", "name"),
    [
        ({"name": "Neovim"}, {}, "Neovim"),
        ({"name": ""}, {}, "unknown"),
        (None, EGLOT.capabilities, "Eglot"),
        (None, HELIX.capabilities, "unknown"),
        (None, [], "unknown"),
        (7, {"workspace": 7}, "unknown"),
    ],
)
def test_a_client_that_does_not_say_its_name_is_known_by_what_it_declares(
    info: object, capabilities: object, name: str
) -> None:
    window = Window(MINIMAL)
    window.client_params = {"clientInfo": info, "capabilities": capabilities}
    assert type(window.editor).of(window, window.mirror).name == name
