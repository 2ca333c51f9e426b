"""Edits that land in the editor: small, versioned, verified, and told as they are."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from agent_core.workspace import FileText, WriteResult
from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_behaviours import (
    AppliesInPieces,
    AppliesOther,
    EditBehaviour,
    Honest,
)
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json, operations
from tests.support.lsp.lsp_profiles import (
    EGLOT,
    HELIX,
    MINIMAL,
    NEOVIM_0_11,
    PANEL,
    VSCODE,
    Profile,
)
from tests.support.workspace.memory_files import MemoryFiles
from tiller_server.lsp.documents.positions import PositionEncoding
from tiller_server.lsp.edits.document_writer import UNSAVED
from tiller_server.lsp.edits.write_report import OWN_ENDS, TYPED
from tiller_server.lsp.overlay.workspace_files import OverlayFiles


@pytest.mark.parametrize("first", ["changes", "response"])
async def test_an_edit_is_verified_whichever_comes_first(tmp_path: Path, first) -> None:
    place = Place.make(tmp_path, Window(edits=Honest(first=first)))
    written = await place.write()
    assert written == WriteResult(
        path=place.path,
        sha256=hash_of(NEW_TEXT),
        source="buffer",
        saved=False,
        created=False,
        version=2,
        note=UNSAVED,
    )
    assert (place.text, place.disk) == (NEW_TEXT, OLD)


@pytest.mark.parametrize(
    "profile", [VSCODE, NEOVIM_0_11, HELIX, EGLOT, PANEL], ids=lambda one: one.name
)
async def test_an_edit_is_small_and_names_the_exact_version(
    tmp_path: Path, profile: Profile
) -> None:
    place = Place.make(tmp_path, Window(profile))
    _ = await place.write()
    (params,) = place.window.edits_asked()
    assert params["label"] == "Tiller: edit a.py"
    (step,) = operations(params["edit"])
    assert (step.uri, step.version) == (place.uri, 1)
    assert [one["newText"] for one in step.edits] == ["2", "5"]
    assert place.text == NEW_TEXT


async def test_an_editor_without_versions_gets_the_plain_form(tmp_path: Path) -> None:
    bare = replace(MINIMAL, capabilities={"workspace": {"applyEdit": True}})
    place = Place.make(tmp_path, Window(bare))
    _ = await place.write()
    (params,) = place.window.edits_asked()
    assert list(params["edit"]) == ["changes"]
    assert place.text == NEW_TEXT


async def test_text_that_is_there_already_needs_no_edit(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    written = await place.write(OLD)
    assert (written.saved, written.note, place.window.asked) == (True, None, [])


async def test_edits_follow_one_another(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    for count in range(3):
        written = await place.write(f"{OLD}{count}\n")
        assert (written.version, written.note) == (2 + count, UNSAVED)
    assert place.text == f"{OLD}2\n"


async def test_crlf_stays_crlf(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), text="one\r\ntwo\r\n")
    _ = await place.write("one\r\nnew\r\ntwo\r\n")
    assert place.text == "one\r\nnew\r\ntwo\r\n"


async def test_what_the_user_typed_meanwhile_is_kept_and_told(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=AppliesOther()))
    written = await place.write()
    assert place.text == f"# typed by the user\n{NEW_TEXT}"
    assert (written.changed_by_user, written.note) == (
        True,
        f"{UNSAVED} {TYPED}\n1: # typed by the user",
    )
    assert written.sha256 == hash_of(place.text)


@pytest.mark.parametrize("order", ["down", "up"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(OLD, NEW_TEXT, id="lines"),
        pytest.param(
            "a\nb\n\nx\n\n## You\n",
            "a\nb!\nc\n\nx\n\ny\n\n## You\n",
            id="an insertion among equal lines",
        ),
        pytest.param(
            "a\n\nb\n\nc\n\nd\n",
            "1\n\nx\n\nb\n\nC\n\nx\n\nd\n",
            id="four places, of which two are alike",
        ),
    ],
)
async def test_an_edit_reported_in_pieces_is_applied_once_and_is_no_change_of_the_user(
    tmp_path: Path, order: Literal["down", "up"], text: str, wanted: str
) -> None:
    place = Place.make(tmp_path, Window(edits=AppliesInPieces(order=order)), text=text)
    written = await place.write(wanted)
    assert place.text == wanted
    assert (written.changed_by_user, written.note, len(place.window.edits_asked())) == (
        False,
        UNSAVED,
        1,
    )


async def test_an_answer_that_never_comes_does_not_hide_what_landed(tmp_path: Path) -> None:
    def silent(editor: Desk, params: Json, reply: Reply) -> None:
        Honest()(editor, params, Reply(reply.request, lambda _: None))

    place = Place.make(tmp_path, Window(edits=silent))
    assert (await place.write()).sha256 == hash_of(NEW_TEXT)
    assert place.window.withdrawn == ["workspace/applyEdit"]


async def test_an_edit_that_the_user_applies_by_hand_is_waited_for(tmp_path: Path) -> None:
    def by_hand(editor: Desk, params: Json, reply: Reply) -> None:
        reply({"applied": False, "failureReason": "Decision to apply manually"})
        later = Reply(reply.request, lambda _: None)
        loop = asyncio.get_running_loop()
        loop.call_later(0.1, lambda: Honest()(editor, params, later))

    place = Place.make(tmp_path, Window(EGLOT, edits=by_hand))
    assert (await place.write()).sha256 == hash_of(NEW_TEXT)


async def test_an_editor_that_keeps_its_final_newline_has_applied_the_edit(tmp_path: Path) -> None:
    def adds_newline(editor: Desk, params: Json, reply: Reply) -> None:
        (step,) = operations(params["edit"])
        editor.stage(step.uri, step.edits)
        text = f"{editor.documents[step.uri].text}\n"
        editor.publish(step.uri, editor.stage(step.uri, text))
        reply({"applied": True})

    place = Place.make(tmp_path, Window(edits=adds_newline))
    written = await place.write("one\ntwo")
    assert written.sha256 == hash_of("one\ntwo\n")
    assert (written.changed_by_user, written.note) == (False, f"{UNSAVED} {OWN_ENDS}")


TEXTS = st.text(alphabet=st.sampled_from("ab \n\r\u00e9\u20ac\U0001f600\u2028"), max_size=40)


@given(
    old=TEXTS,
    new=TEXTS,
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]),
    behaviour=st.sampled_from([Honest(), Honest(first="response")]),
)
async def test_any_text_becomes_any_other_on_the_editors_side(
    old: str, new: str, encoding: PositionEncoding, behaviour: EditBehaviour
) -> None:
    root = Path("/no/such/ws")
    files = OverlayFiles(MemoryFiles((root,), Path("/no/such"), files={root / "a.py": b""}))
    window = Window(edits=behaviour, encoding=encoding)
    files.attach(window.editor)
    uri = (root / "a.py").as_uri()
    window.desk.open(uri, old)
    await settled(window)
    base = await files.read(root / "a.py")
    assert isinstance(base, FileText)
    written = await files.write(root / "a.py", new, base=base)
    assert window.desk.documents[uri].text == new
    assert written.sha256 == hash_of(new)
    assert window.desk.complaints == []
