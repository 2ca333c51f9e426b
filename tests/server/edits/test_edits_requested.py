"""Editors that take edits by `agent/edit/apply`: what they are asked, and what is made of each answer."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel import RunId, SessionId, ToolCallId
from agent_core.kernel.errors import EditRefused, EditUnverified, StaleText
from agent_core.workspace.files.proxy import EditOrigin, changing
from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_answers import Reads
from tests.support.lsp.lsp_behaviours import Honest, NeverAnswers, SaysAppliedButDidNothing
from tests.support.lsp.lsp_connection import METHOD_NOT_FOUND, Reply
from tests.support.lsp.lsp_editor import Editor, Json, operations
from tests.support.lsp.lsp_profiles import PANEL, Profile

AGENT = PANEL.capabilities["experimental"]["agent"]


def panel(*, without: str = "", review: list[str] | None = None) -> Profile:
    """Make a panel that does not offer something."""
    agent = {name: one for name, one in AGENT.items() if name != without}
    if review is not None:
        agent["edit"] = {**agent["edit"], "review": review}
    capabilities = {**PANEL.capabilities, "experimental": {"agent": agent}}
    return Profile(name=PANEL.name, version="1", capabilities=capabilities, edits=PANEL.edits)


def request(place: Place) -> Json:
    """Give the only edit that was asked for."""
    ((method, params),) = [one for one in place.window.asked if one[0] != "agent/documents/read"]
    assert method == "agent/edit/apply"
    return params


async def test_the_editor_is_told_whose_edit_it_is_and_what_must_hold(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL))
    origin = EditOrigin(edit="e", run=RunId("r"), call=ToolCallId("c"), session=SessionId("s"))
    base = await place.read()
    with changing(origin):
        written = await place.files.write(place.path, NEW_TEXT, base=base)
    asked = request(place)
    assert asked["edit"] == {
        "id": "e",
        "session": "s",
        "run": "r",
        "toolCall": "c",
        "label": "Tiller: edit a.py",
    }
    assert asked["pre"] == [
        {"uri": place.uri, "version": 1, "sha256": hash_of(OLD), "exists": True}
    ]
    assert (asked["save"], asked["review"], asked["undo"]) == ("ifWasClean", "none", "oneStep")
    (change,) = asked["workspaceEdit"]["documentChanges"]
    assert change["textDocument"] == {"uri": place.uri, "version": 1}
    assert (written.saved, place.disk, place.text) == (True, NEW_TEXT, NEW_TEXT)


async def test_what_is_saved_with_the_edit_is_not_saved_again(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL))
    await place.write()
    assert [method for method, _ in place.window.asked] == ["agent/edit/apply"]


async def test_what_the_user_typed_is_not_saved(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL), typed=f"typed\n{OLD}")
    written = await place.write(f"typed\n{NEW_TEXT}")
    assert (written.saved, place.disk) == (False, OLD)
    assert place.text == f"typed\n{NEW_TEXT}"


@pytest.mark.parametrize(
    ("offered", "wanted", "asked"),
    [
        (["inline"], "inline", "inline"),
        (["inline"], "preview", "none"),
        (["inline"], "hints", "none"),
        ([], "inline", "none"),
    ],
)
async def test_an_edit_is_reviewed_as_the_user_wants_where_the_editor_can(
    tmp_path: Path, offered: list[str], wanted: str, asked: str
) -> None:
    window = Window(panel(review=offered), options={"edit": {"review": wanted}})
    place = Place.make(tmp_path, window)
    await place.write()
    assert request(place)["review"] == asked


async def test_an_editor_that_does_not_know_the_request_is_asked_as_any_other(
    tmp_path: Path,
) -> None:
    window = Window(PANEL, edits=_Unknown())
    place = Place.make(tmp_path, window)
    await place.write()
    assert place.text == NEW_TEXT
    methods = [method for method, _ in window.asked]
    assert methods[:2] == ["agent/edit/apply", "workspace/applyEdit"]


class _Unknown:
    """Knows `workspace/applyEdit` alone, whatever was declared."""

    def __init__(self) -> None:
        self._knows = False

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        if not self._knows:
            self._knows = True
            reply.error(METHOD_NOT_FOUND, "unknown method")
            return
        Honest()(editor, params, reply)


class _Answers:
    """Does nothing and answers so."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def __call__(self, params: Json, reply: Reply) -> None:
        reply(self._result)


@pytest.mark.parametrize(
    ("result", "kind", "told"),
    [
        ({"documents": [{"uri": "x", "status": "refused", "why": "no"}]}, EditRefused, "no"),
        ({"documents": [{"uri": "x", "status": "failed"}]}, EditRefused, "did not say why"),
        ({"documents": [{"uri": "x", "status": "_odd"}]}, EditRefused, "cannot be read"),
        ({"documents": []}, EditRefused, "cannot be read"),
        (None, EditRefused, "cannot be read"),
        ([7], EditRefused, "cannot be read"),
        ({"documents": [{"uri": "x", "status": "applied"}]}, StaleText, "did not change"),
    ],
)
async def test_an_answer_is_told_as_it_is_and_never_believed(
    tmp_path: Path, result: Any, kind: type[Exception], told: str
) -> None:
    window = Window(PANEL)
    window.handlers["agent/edit/apply"] = _Answers(result)
    place = Place.make(tmp_path, window)
    assert told in await place.refusal(kind)
    assert (place.text, place.disk) == (OLD, OLD)


class _TellsLate:
    """Applies an edit, says so, and tells of the change only when the test wants it."""

    def __init__(self) -> None:
        self.tell: list[tuple[Editor, str, list[Json]]] = []

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        for step in operations(params["edit"]):
            changes = editor.perform(step)
            editor.documents[step.uri].version += 1
            self.tell.append((editor, step.uri, changes))
        reply({"applied": True})

    def publish(self) -> None:
        """Tell of what was changed, under the version that it has had since."""
        for editor, uri, changes in self.tell:
            editor.documents[uri].version -= 1
            editor.publish(uri, changes)


async def test_an_edit_that_is_not_told_of_is_verified_by_asking_for_the_text(
    tmp_path: Path,
) -> None:
    late = _TellsLate()
    window = Window(PANEL, edits=late)
    window.handlers["agent/documents/read"] = Reads(window.desk)
    place = Place.make(tmp_path, window)
    written = await place.write()
    assert (written.sha256, written.version) == (hash_of(NEW_TEXT), 2)
    late.publish()
    window.desk.change(place.uri, [_typed_at_top()])
    await settled(window)
    assert (await place.read()).text == f"typed\n{NEW_TEXT}"


def _typed_at_top() -> Json:
    start = {"line": 0, "character": 0}
    return {"range": {"start": start, "end": start}, "newText": "typed\n"}


@pytest.mark.parametrize(
    "answer", [None, {"text": 7}, {"text": NEW_TEXT}, {"text": OLD, "version": 1}]
)
async def test_a_text_that_is_not_given_verifies_nothing(tmp_path: Path, answer: Any) -> None:
    window = Window(PANEL, edits=SaysAppliedButDidNothing())
    window.handlers["agent/documents/read"] = _Answers(answer)
    place = Place.make(tmp_path, window)
    assert "did not change" in await place.refusal(StaleText)


async def test_an_edit_that_is_not_answered_may_be_there(tmp_path: Path) -> None:
    window = Window(PANEL, edits=NeverAnswers())
    window.handlers["agent/documents/read"] = Reads(window.desk)
    place = Place.make(tmp_path, window)
    assert "may still come" in await place.refusal(EditUnverified)
