"""What is no edit of an open text: notebooks, files that are opened first, and what no editor takes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel.errors import EditDeferred, EditRefused
from agent_core.workspace import FileText
from tests.support.clients.editors import FAST, NEW_TEXT, OLD, Place, Window, settled
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Json, path_of
from tests.support.lsp.lsp_profiles import HELIX, MINIMAL, NEOVIM_0_11, VSCODE, Profile

NOTEBOOK = '{"cells": []}\n'


def notebook(place: Place) -> Path:
    """Make a notebook on the disk."""
    path = place.root / "n.ipynb"
    path.write_text(NOTEBOOK)
    return path


def opened_as_notebook(place: Place, path: Path) -> None:
    place.window.mirror.notebooks.add(path.as_uri())


def opened_by_its_cells(place: Place, path: Path) -> None:
    _ = place.window.desk.open(f"vscode-notebook-cell:{path.as_posix()}#W0sZmlsZQ", "a = 1\n")


def opened_as_text(place: Place, path: Path) -> None:
    _ = place.window.desk.open_file(path, language="json")


async def read_text(place: Place, path: Path) -> FileText:
    await settled(place.window)
    read = await place.files.read(path)
    assert isinstance(read, FileText)
    return read


@pytest.mark.parametrize("opens", [opened_as_notebook, opened_by_its_cells, opened_as_text])
async def test_a_notebook_that_is_open_is_not_written(tmp_path: Path, opens: Any) -> None:
    place = Place.make(tmp_path, Window(VSCODE))
    path = notebook(place)
    opens(place, path)
    base = await read_text(place, path)
    doings = (
        place.files.write(path, "{}\n", base=base),
        place.files.delete(path, base=base),
        place.files.move(path, place.root / "m.ipynb"),
    )
    for doing in doings:
        with pytest.raises(EditRefused, match="open as a notebook in Visual Studio Code"):
            await doing
    assert path.read_text() == NOTEBOOK
    assert place.window.edits_asked() == []


async def test_a_notebook_is_written_when_nobody_shows_it_as_one(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    path = notebook(place)
    _ = place.window.desk.open_file(path, language="json")
    written = await place.files.write(path, "{}\n", base=await read_text(place, path))
    assert written.source == "buffer"
    place.window.mirror.notebooks.add(path.as_uri())
    place.window.mirror.notebooks.discard(path.as_uri())
    assert place.window.desk.documents[path.as_uri()].text == "{}\n"


class Shows:
    """Answers `window/showDocument` as an editor does: opens the file, without a text of its own."""

    def __init__(self, window: Window, *, opens: bool = True, success: bool = True) -> None:
        self.asked: list[Json] = []
        self._window = window
        self._opens = opens
        self._success = success

    def __call__(self, params: Json, reply: Reply) -> None:
        self.asked.append(params)
        reply({"success": self._success})
        if self._opens:
            _ = self._window.desk.open_file(path_of(params["uri"]))


def beside(place: Place) -> Path:
    """Make a file that nobody has open."""
    path = place.root / "closed.py"
    path.write_text(OLD)
    return path


@pytest.mark.parametrize("profile", [VSCODE, NEOVIM_0_11, HELIX], ids=lambda one: one.name)
async def test_a_closed_file_is_opened_and_edited_there_where_the_user_wants_it(
    tmp_path: Path, profile: Profile
) -> None:
    window = Window(profile, options={"edit": {"closed": "buffer"}})
    shows = window.handlers["window/showDocument"] = Shows(window)
    place = Place.make(tmp_path, window)
    path = beside(place)
    written = await place.files.write(path, NEW_TEXT, base=await read_text(place, path))
    assert (written.source, written.saved) == ("buffer", False)
    assert shows.asked == [{"uri": path.as_uri(), "external": False, "takeFocus": False}]
    assert window.desk.documents[path.as_uri()].text == NEW_TEXT
    assert path.read_text() == OLD


@pytest.mark.parametrize(
    ("profile", "edit", "asks"),
    [
        pytest.param(VSCODE, {}, False, id="not wanted"),
        pytest.param(MINIMAL, {"closed": "buffer"}, False, id="cannot"),
        pytest.param(VSCODE, {"closed": "buffer"}, True, id="refused"),
    ],
)
async def test_else_a_closed_file_is_edited_on_the_disk(
    tmp_path: Path, profile: Profile, edit: Json, asks: bool
) -> None:
    window = Window(profile, options={"edit": edit})
    shows = window.handlers["window/showDocument"] = Shows(window, opens=False, success=False)
    place = Place.make(tmp_path, window)
    path = beside(place)
    written = await place.files.write(path, NEW_TEXT, base=await read_text(place, path))
    assert (written.source, path.read_text()) == ("disk", NEW_TEXT)
    assert bool(shows.asked) is asks


async def test_a_new_file_is_made_on_the_disk_and_then_shown(tmp_path: Path) -> None:
    window = Window(VSCODE, options={"edit": {"closed": "buffer"}})
    shows = window.handlers["window/showDocument"] = Shows(window)
    place = Place.make(tmp_path, window)
    path = place.root / "new/b.py"
    written = await place.files.write(path, "b = 1\n", base=None)
    assert (written.source, written.created, path.read_text()) == ("disk", True, "b = 1\n")
    assert [one["uri"] for one in shows.asked] == [path.as_uri()]
    assert window.edits_asked() == []


async def test_an_edit_that_no_editor_takes_is_kept_as_a_patch_of_the_unsaved_text(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(MINIMAL), typed=f"typed\n{OLD}")
    told: list[tuple[Path, Path]] = []
    proposals = place.files.edits.proposals
    proposals.keep_in(tmp_path / "proposals", root=place.root)
    proposals.on_kept = lambda path, patch: told.append((path, patch))
    message = await place.refusal(EditDeferred, f"typed\n{NEW_TEXT}")
    ((path, patch),) = told
    assert path == place.path
    assert str(patch) in message
    assert "not applied" in message
    assert (place.disk, place.text) == (OLD, f"typed\n{OLD}")
    lines = patch.read_text().splitlines()
    assert lines[:2] == ["--- a/a.py", "+++ b/a.py"]
    assert {"-two", "+2", " typed", "-five", "+5"} <= set(lines)
    assert patch.stat().st_mode & 0o077 == 0


async def test_without_a_place_for_patches_the_model_is_told_all_the_same(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(MINIMAL), typed=f"typed\n{OLD}")
    assert "not applied" in await place.refusal(EditDeferred, f"typed\n{NEW_TEXT}")


async def test_so_many_patches_are_kept_and_no_more(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(MINIMAL, timing=replace(FAST)), typed=f"typed\n{OLD}")
    folder = tmp_path / "proposals"
    place.files.edits.proposals.keep_in(folder, root=place.root)
    for number in range(53):
        await place.refusal(EditDeferred, f"typed {number}\n{OLD}")
    assert len(list(folder.iterdir())) == 100
    names = sorted(one.name for one in folder.glob("*.diff"))
    assert (len(names), names[0], names[-1]) == (50, "000004-a.py.diff", "000053-a.py.diff")
