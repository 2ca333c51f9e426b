"""The file tools in a document that its user goes on typing in: what the model never saw is not the model's to remove."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel import JsonValue
from agent_core.tools.runner import ToolOutcome
from agent_core.workspace import Workspace
from tests.support.clients.editors import Place, Window, settled
from tests.support.lsp.lsp_behaviours import EditBehaviour, Json
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk
from tests.tools.conftest import Bench, make_bench, words

OLD = "one\ntwo\nthree\nfour\nfive\n"


class Ahead:
    """A user who is ahead of the first edit."""

    def __init__(self, text: str, uri: Callable[[], str], then: EditBehaviour) -> None:
        self._text: str | None = text
        self._uri = uri
        self._then = then

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        if self._text is not None:
            editor.change(self._uri(), self._text)
            self._text = None
        self._then(editor, params, reply)


class Room:
    """A document, the tools, and a user."""

    def __init__(self, place: Place, bench: Bench) -> None:
        self.place = place
        self._bench = bench
        self.last: ToolOutcome | None = None

    @classmethod
    def make(cls, tmp_path: Path, env: Mapping[str, str]) -> "Room":
        place = Place.make(tmp_path, Window(), text=OLD)
        bench = make_bench(place.root, home=place.root.parent / "home", env=env)
        bench.workspace = Workspace(
            roots=(place.root,),
            files=place.files,
            processes=bench.workspace.processes,
            env=env,
        )
        return cls(place, bench)

    async def run(self, name: str, **arguments: JsonValue) -> tuple[str, str]:
        await settled(self.place.window)
        outcome = await self._bench.run(name, path="a.py", **arguments)
        self.last = outcome
        return outcome.status, words(outcome)

    async def edit(self, old: str, new: str) -> tuple[str, str]:
        return await self.run("edit", edits=[{"oldText": old, "newText": new}])

    def types(self, text: str) -> None:
        self.place.window.desk.change(self.place.uri, text)

    def types_ahead(self, text: str) -> None:
        window = self.place.window
        window.edits = Ahead(text, lambda: self.place.uri, window.edits)

    @property
    def details(self) -> Mapping[str, Any]:
        assert self.last is not None
        assert isinstance(self.last.result.details, Mapping)
        return self.last.result.details


@pytest.fixture
def room(tmp_path: Path, child_env: dict[str, str]) -> Room:
    return partial(Room.make, tmp_path, child_env)()


async def test_a_write_keeps_what_the_user_typed_since_the_model_read(room: Room) -> None:
    _ = await room.run("read")
    room.types(OLD.replace("five", "five\nuser"))
    status, told = await room.run("write", content=OLD.replace("one", "1"))
    assert status == "ok"
    assert told.endswith(
        "What the user changed in the file since you read it is kept. These lines are now:\n6: user"
    )
    assert room.place.text == "1\ntwo\nthree\nfour\nfive\nuser\n"
    assert room.details["changed_by_user"] is True


async def test_it_goes_on_keeping_it(room: Room) -> None:
    _ = await room.run("read")
    room.types(OLD.replace("five", "five\nuser"))
    _ = await room.edit("two", "2")
    _ = await room.run("write", content=OLD.replace("one", "1").replace("two", "2"))
    _ = await room.run("write", content=OLD.replace("one", "1").replace("two", "II"))
    assert room.place.text == "1\nII\nthree\nfour\nfive\nuser\n"


async def test_a_write_over_lines_of_the_user_is_told_what_they_are(room: Room) -> None:
    _ = await room.run("read")
    room.types(OLD.replace("two", "zwei"))
    status, told = await room.run("write", content=OLD.replace("two", "2"))
    assert (status, "in the same lines: nothing was written" in told) == ("error", True)
    assert "\n2: zwei\n" in told
    assert room.place.text == OLD.replace("two", "zwei")
    _ = await room.run("read")
    status, _ = await room.run("write", content=OLD.replace("two", "2"))
    assert (status, room.place.text) == ("ok", OLD.replace("two", "2"))


async def test_a_file_that_the_model_never_read_is_written_over(room: Room) -> None:
    room.types("typed\n")
    assert (await room.run("write", content="new\n"))[0] == "ok"
    assert room.place.text == "new\n"


async def test_an_edit_tells_which_lines_the_user_changed_meanwhile(room: Room) -> None:
    room.types_ahead(f"typed\n{OLD}")
    status, told = await room.edit("four", "4")
    assert (status, told.endswith("Changed lines as they are now:\n1: typed")) == ("ok", True)
    assert room.place.text == "typed\n" + OLD.replace("four", "4")
    assert room.details["first_changed_line"] == 5
    assert "-5 four\n+5 4\n" in room.details["diff"]


async def test_an_edit_finds_its_place_again_in_a_line_that_the_user_changed(room: Room) -> None:
    room.types_ahead(OLD.replace("four", "fourfold"))
    status, _ = await room.edit("four", "4")
    assert (status, room.place.text) == ("ok", OLD.replace("four", "4fold"))


async def test_an_edit_whose_place_is_gone_is_told_what_stands_there(room: Room) -> None:
    room.types_ahead(OLD.replace("four", "vier"))
    status, told = await room.edit("four", "4")
    assert (status, told.endswith("These lines are now:\n4: vier")) == ("error", True)
    assert room.place.text == OLD.replace("four", "vier")


async def test_a_write_that_the_user_is_ahead_of_never_removes_what_they_typed(room: Room) -> None:
    room.types_ahead(OLD.replace("four", "vier"))
    status, told = await room.run("write", content=OLD.replace("four", "4"))
    assert (status, "\n4: vier" in told) == ("error", True)
    assert room.place.text == OLD.replace("four", "vier")
