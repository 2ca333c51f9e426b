"""Before a process a plain editor's user is asked to save, once; what they choose holds, and the model hears the truth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.events import Answers, QuestionLine
from agent_core.workspace import FileText
from tests.support.clients.editors import FAST, NEW_TEXT, Place, Window, settled
from tests.support.lsp.lsp_profiles import NEOVIM_0_11, PANEL, VSCODE, Profile
from tiller_server.lsp.overlay.save_barrier import DISK, LINE, OLD, SAVED, SILENCE_S, SaveBarrier


class User:
    """Somebody before the editor who answers in their own way."""

    def __init__(self, place: Place, *answers: str | None, saves: bool = False) -> None:
        self.asked: list[QuestionLine] = []
        self.withdrawn = 0
        self._place = place
        self._answers = list(answers)
        self._saves = saves

    async def __call__(
        self, questions: Sequence[QuestionLine], *, timeout_s: float | None = None
    ) -> Answers:
        assert timeout_s == SILENCE_S
        self.asked += questions
        if self._saves:
            self._place.window.desk.save(self._place.uri)
        if not self._answers:
            try:
                await anyio.sleep_forever()
            finally:
                self.withdrawn += 1
        answer = self._answers.pop(0)
        return Answers(answers=None if answer is None else {LINE: answer}, by="user")


async def edited(
    tmp_path: Path, profile: Profile = NEOVIM_0_11, *, typed: str = "", **edit: Any
) -> Place:
    """Edit an open document once, with these `edit` options."""
    window = Window(profile, options={"edit": edit}, timing=FAST)
    place = Place.make(tmp_path, window, typed=typed)
    await place.write()
    return place


def barrier(place: Place, user: User, run: str | None = "r1") -> SaveBarrier:
    """Make the barrier of a session whose user is asked."""
    made = SaveBarrier(place.files)
    made.ask_through(user, run=lambda: run)
    return made


def stale(place: Place) -> str:
    """Give what the model is told of a file that is not saved."""
    return f"Unsaved in the editor, so programs read the old text from the disk: {place.path}."


async def test_the_question_names_the_file_and_three_ways_on(tmp_path: Path) -> None:
    place = await edited(tmp_path)
    user = User(place, OLD)
    assert await barrier(place, user).pass_through() == stale(place)
    (line,) = user.asked
    assert "a.py" in line.text
    assert [one.id for one in line.options] == [SAVED, OLD, DISK]
    assert line.default == OLD
    assert place.disk != NEW_TEXT


async def test_nothing_is_told_once_the_user_has_saved(tmp_path: Path) -> None:
    place = await edited(tmp_path)
    user = User(place, SAVED, saves=True)
    assert await barrier(place, user).pass_through() is None
    assert place.disk == NEW_TEXT


async def test_who_says_saved_and_did_not_save_is_not_believed(tmp_path: Path) -> None:
    place = await edited(tmp_path)
    user = User(place, SAVED)
    assert await barrier(place, user).pass_through() == stale(place)


async def test_the_question_goes_away_when_everything_was_saved(tmp_path: Path) -> None:
    place = await edited(tmp_path)
    user = User(place, saves=True)
    with anyio.fail_after(5):
        assert await barrier(place, user).pass_through() is None
    assert user.withdrawn == 1


@pytest.mark.parametrize("answer", [OLD, None, SAVED], ids=["old", "dismissed", "saved"])
async def test_a_session_asks_once(tmp_path: Path, answer: str | None) -> None:
    place = await edited(tmp_path)
    user = User(place, answer)
    asking = barrier(place, user)
    for _ in range(3):
        assert await asking.pass_through() == stale(place)
    assert len(user.asked) == 1


async def test_who_wants_to_be_asked_is_asked_once_a_run(tmp_path: Path) -> None:
    place = await edited(tmp_path, saveBarrier="ask")
    user = User(place, OLD, OLD)
    asking = barrier(place, user)
    for run in ("r1", "r1", "r2", "r2"):
        asking.ask_through(user, run=lambda run=run: run)
        assert await asking.pass_through() == stale(place)
    assert len(user.asked) == 2


async def test_commands_that_start_at_once_ask_once(tmp_path: Path) -> None:
    place = await edited(tmp_path)
    user = User(place, OLD)
    asking = barrier(place, user)
    told: list[str | None] = []

    async def start() -> None:
        told.append(await asking.pass_through())

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(start)
    assert told == [stale(place)] * 3
    assert len(user.asked) == 1


@pytest.mark.parametrize(
    ("profile", "options", "typed"),
    [
        pytest.param(NEOVIM_0_11, {"saveBarrier": "off"}, "", id="off"),
        pytest.param(PANEL, {}, "typed\n", id="the user's own text in an editor that saves"),
    ],
)
async def test_the_model_alone_is_told(
    tmp_path: Path, profile: Profile, options: dict[str, Any], typed: str
) -> None:
    place = await edited(tmp_path, profile, typed=typed, **options)
    user = User(place)
    assert await barrier(place, user).pass_through() == stale(place)
    assert user.asked == []


async def test_edits_of_clean_documents_go_to_the_disk_when_the_user_wants_it(
    tmp_path: Path,
) -> None:
    place = await edited(tmp_path, VSCODE)
    other = place.root / "b.py"
    other.write_text("old\n")
    place.window.desk.open_file(other)
    await settled(place.window)
    user = User(place, DISK)
    before = place.disk
    assert await barrier(place, user).pass_through() == stale(place)
    # Nothing goes below a buffer with unsaved text, not even the same bytes.
    assert place.disk == before
    read = await place.files.read(other)
    assert isinstance(read, FileText)
    asked = len(place.window.edits_asked())
    written = await place.files.write(other, "new\n", base=read)
    assert written.saved
    assert other.read_text() == "new\n"
    assert len(place.window.edits_asked()) == asked
