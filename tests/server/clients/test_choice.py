"""Which session a client means, and which folders it has open."""

from pathlib import Path
from typing import Any

import pytest

from tiller_server.lsp.clients.session_candidates import SessionOpenOption, session_candidates
from tiller_server.lsp.documents.workspace_folders import Folders, canonical, spelt_as
from tiller_server.lsp.wire.capabilities import SessionById


@pytest.mark.parametrize(
    ("asked", "bound", "opening", "tried"),
    [
        pytest.param("id", "mine", "new", ("id",), id="what is named"),
        pytest.param("new", "mine", "latest", ("new",), id="a new one that is asked for"),
        pytest.param(None, "mine", None, ("mine", "latest"), id="its own"),
        pytest.param(None, "mine", "new", ("mine", "new"), id="its own, else a new one"),
        pytest.param(None, None, "new", ("new",), id="new"),
        pytest.param(None, None, "none", ("new",), id="none, and one is asked for all the same"),
        pytest.param(None, None, None, ("latest",), id="nothing said"),
        pytest.param(None, None, "_odd", ("new",), id="a word of a vendor"),
        pytest.param(None, "mine", SessionById(id="that"), ("that",), id="one by its id"),
    ],
)
def test_sessions_are_tried_in_their_order(
    asked: str | None, bound: str | None, opening: SessionOpenOption, tried: tuple[str, ...]
) -> None:
    assert session_candidates(asked, bound=bound, opening=opening) == tried


@pytest.mark.parametrize(
    ("params", "paths"),
    [
        ({"workspaceFolders": [{"uri": "file:///a"}, {"uri": "file:///b"}]}, ("/a", "/b")),
        ({"workspaceFolders": None, "rootUri": "file:///a%20b"}, ("/a b",)),
        ({"rootUri": None, "rootPath": "/a"}, ("/a",)),
        ({"workspaceFolders": [{"uri": "untitled:x"}, 7, None]}, ()),
        ({"workspaceFolders": "x", "rootUri": 3, "rootPath": ""}, ()),
        ({}, ()),
    ],
    ids=["folders", "root", "path", "no files", "nonsense", "nothing"],
)
def test_the_folders_of_a_client_are_what_it_says(params: Any, paths: tuple[str, ...]) -> None:
    folders = Folders()
    folders.began(params)
    assert folders.paths == tuple(Path(path) for path in paths)


def test_a_folder_that_is_added_again_or_removed_unknown_changes_nothing() -> None:
    folders = Folders()
    folders.began({"rootUri": "file:///a"})
    event = {"added": [{"uri": "file:///a"}], "removed": [{"uri": "file:///b"}]}
    assert not folders.changed({"event": event})
    assert folders.changed({"event": {"added": [], "removed": [{"uri": "file:///a"}]}})
    assert folders.first is None


def test_a_name_is_spelt_as_on_the_disk() -> None:
    assert spelt_as("readme", iter(["README", "src"])) == "README"
    assert spelt_as("readme", iter(["README", "readme"])) == "readme"
    assert spelt_as("gone", iter(["src"])) == "gone"


def test_links_lead_to_the_one_name_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert canonical(tmp_path / "link" / ".." / "link") == (tmp_path / "real").resolve()
