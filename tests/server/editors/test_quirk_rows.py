"""The table of editors row by row: what it says of each, that the editor bears it out, and that users overrule it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.clients.editors import Window
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor
from tests.support.lsp.lsp_every import EVERY
from tests.support.lsp.lsp_profiles import Profile
from tests.support.programs.pages import page
from tiller_server.lsp.editors.quirks import QUIRKS, quirks_of, wire_name

Json = dict[str, Any]

VSCODE = {
    "trustApplied": True,
    "multiDocEdit": True,
    "singleDialog": False,
    "blockingDialogs": False,
    "autoReload": True,
    "saveViaRefactoring": True,
    "insertModeMerge": False,
    "opensNotebooks": True,
    "silentAnswers": False,
}
EMACS = {
    "trustApplied": True,
    "singleDialog": False,
    "insertModeMerge": False,
    "lateUndoSteps": True,
    "silentAnswers": False,
}
KAKOUNE = {"singleDialog": False, "blockingDialogs": False}
ROWS: Mapping[str, Mapping[str, bool]] = {
    "Visual Studio Code": VSCODE,
    "Visual Studio Code - Insiders": VSCODE,
    "Code - OSS": VSCODE,
    "code-server": VSCODE,
    "VSCodium": VSCODE,
    "Cursor": VSCODE,
    "Windsurf": VSCODE,
    "Neovim": {
        "singleDialog": False,
        "documentChanges": True,
        "zeroUnchecked": True,
        "silentAnswers": False,
    },
    "helix": {"trustApplied": True, "blockingDialogs": False, "insertModeMerge": False},
    "Eglot": EMACS,
    "emacs": EMACS,
    "Sublime Text LSP": {
        "trustApplied": True,
        "singleDialog": False,
        "blockingDialogs": False,
        "autoReload": True,
        "insertModeMerge": False,
        "silentAnswers": False,
    },
    "kakoune-lsp": KAKOUNE,
    "kak-lsp": KAKOUNE,
    "Zed": {"blockingDialogs": False, "autoReload": True},
    "Zed Preview": {"blockingDialogs": False, "autoReload": True},
}
"""By the name that an editor gives itself: where it is other than the worst."""

EACH_ROW = pytest.mark.parametrize("name", ROWS)
EACH_EDITOR = pytest.mark.parametrize("profile", EVERY.values(), ids=EVERY)


def in_force(name: str, overrides: Mapping[str, bool] | None = None) -> dict[str, bool]:
    profile = Profile(name=name, version="1", capabilities={})
    options = {"quirks": dict(overrides)} if overrides else None
    return Window(profile, options=options).editor.quirks_in_force()


@EACH_ROW
def test_a_row_says_where_an_editor_is_other_than_the_worst(name: str) -> None:
    assert in_force(name) == in_force("nobody knows it") | dict(ROWS[name])


def test_every_row_of_the_table_has_its_test() -> None:
    tested = {key for key in QUIRKS for name in ROWS if name.lower().startswith(key)}
    assert tested == set(QUIRKS)


@EACH_EDITOR
def test_every_imitated_editor_has_a_row(profile: Profile) -> None:
    assert any(profile.name.lower().startswith(key) for key in QUIRKS)


@EACH_ROW
def test_each_quirk_of_each_row_can_be_set_by_the_user(name: str) -> None:
    known = in_force(name)
    for quirk, value in known.items():
        assert in_force(name, {quirk: not value}) == known | {quirk: not value}


# ---------------------------------------------------------------------- what the editors do


class Desk:
    """An editor with two documents whose users have typed since the server looked."""

    def __init__(self, profile: Profile, folder: Path) -> None:
        self.told: list[Json] = []
        self.editor = Editor(lambda _method, _params: None)
        self._behaves = profile.edits()
        self.uris = [(folder / name).as_uri() for name in ("a.py", "b.py")]
        for uri in self.uris:
            self.editor.open(uri, "one\ntwo\n")

    def types(self, uri: str) -> None:
        """Type a line at the top."""
        self.editor.change(uri, f"typed\n{self.text(uri)}")

    def text(self, uri: str) -> str:
        return self.editor.documents[uri].text

    async def apply(self, *versions: int | None) -> Json:
        """Ask for `one` → `1` in the first documents, as texts of these versions; give the answer."""
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
        changes = [
            {
                "textDocument": {"uri": uri, "version": version},
                "edits": [{"range": place, "newText": "1"}],
            }
            for uri, version in zip(self.uris, versions, strict=False)
        ]
        self._behaves(
            self.editor,
            {"edit": {"documentChanges": changes}},
            Reply({"id": 1}, self.told.append),
        )
        # Some do it after they have answered.
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return self.told[0]


@EACH_EDITOR
async def test_where_applied_is_trusted_it_is_true(profile: Profile, tmp_path: Path) -> None:
    desk = Desk(profile, tmp_path)
    desk.types(desk.uris[0])
    answer = await desk.apply(1)
    says_done = (answer.get("result") or {}).get("applied") is True
    is_done = desk.text(desk.uris[0]) == "typed\n1\ntwo\n"
    if quirks_of(profile.name).trust_applied:
        assert says_done == is_done
    else:
        assert says_done


@EACH_EDITOR
async def test_where_an_edit_of_several_documents_is_trusted_it_is_all_or_nothing(
    profile: Profile, tmp_path: Path
) -> None:
    desk = Desk(profile, tmp_path)
    desk.types(desk.uris[1])
    _ = await desk.apply(1, 1)
    if quirks_of(profile.name).multi_doc_edit:
        assert [desk.text(uri) for uri in desk.uris] == ["one\ntwo\n", "typed\none\ntwo\n"]


@EACH_EDITOR
async def test_version_zero_is_unchecked_only_where_the_table_or_no_version_counts(
    profile: Profile, tmp_path: Path
) -> None:
    desk = Desk(profile, tmp_path)
    desk.types(desk.uris[0])
    _ = await desk.apply(0)
    overwritten = desk.text(desk.uris[0]) == "1ed\none\ntwo\n"
    looks_at_none = profile.name in {"kak-lsp", "Zed"}
    assert overwritten is (quirks_of(profile.name).zero_unchecked or looks_at_none)


@EACH_EDITOR
def test_versions_are_sent_where_they_are_understood(profile: Profile) -> None:
    declared = profile.capabilities["workspace"]["workspaceEdit"].get("documentChanges") is True
    known = quirks_of(profile.name).document_changes
    assert Window(profile).editor.capabilities.takes_versions is (declared or known)
    assert declared or known


def test_the_names_on_the_page_are_those_of_the_table() -> None:
    told = [line.split("`")[1] for line in page("README.md").splitlines() if line.startswith("| `")]
    assert [name for name in told if not name.startswith("tiller.")] == [
        wire_name(name) for name in quirks_of("").__struct_fields__
    ]
