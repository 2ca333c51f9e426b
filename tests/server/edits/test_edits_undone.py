"""The user's own undo of an edit is noticed, once; so is doing it again, and saving it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_core.kernel import RunId, ToolCallId
from agent_core.workspace import FileText
from agent_core.workspace.files.proxy import EditOrigin, changing
from tests.support.clients.editors import FAST, NEW_TEXT, OLD, Place, Window, settled
from tests.support.lsp.lsp_profiles import EGLOT, NEOVIM_0_11, PANEL, VSCODE
from tiller_server.lsp.edits.undo_matches import KEPT_CHARS
from tiller_server.lsp.edits.undo_tracker import EditOutcome
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

TYPED = "# a thought\n"


class News:
    """What is told of the edits in a workspace."""

    def __init__(self, files: OverlayFiles) -> None:
        self._files = files
        self._sends, self._receives = anyio.create_memory_object_stream[EditOutcome](100)
        files.edits.undo_tracker.on_outcome = self._sends.send

    async def next(self) -> tuple[str, str]:
        """Give what was told next: the fate, and the edit."""
        with anyio.fail_after(5):
            news = await self._receives.receive()
        assert news.origin is not None
        return news.fate, news.origin.edit

    async def nothing(self) -> None:
        """Check that nothing is told for a while that is longer than it takes."""
        with anyio.move_on_after(0.2):
            pytest.fail(f"told {await self._receives.receive()}")

    def close(self) -> None:
        self._sends.close()
        self._receives.close()


@asynccontextmanager
async def followed(place: Place) -> AsyncGenerator[News]:
    """Follow the edits in a workspace for as long as the block."""
    news = News(place.files)
    async with anyio.create_task_group() as group:
        group.start_soon(place.files.edits.undo_tracker.run)
        yield news
        place.files.edits.undo_tracker.close()
    news.close()


async def edit(place: Place, text: str, name: str = "e1") -> None:
    """Write as a tool call does."""
    origin = EditOrigin(edit=name, run=RunId("r"), call=ToolCallId("c"))
    base = await place.read()
    with changing(origin):
        await place.files.write(place.path, text, base=base)


async def test_the_text_from_before_an_edit_is_its_undo(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        place.window.desk.change(place.uri, OLD)
        assert await news.next() == ("undone", "e1")
        place.window.desk.change(place.uri, NEW_TEXT)
        assert await news.next() == ("redone", "e1")
        place.window.desk.change(place.uri, OLD)
        assert await news.next() == ("undone", "e1")


async def test_an_undo_is_told_once(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        place.window.desk.change(place.uri, OLD)
        assert await news.next() == ("undone", "e1")
        place.window.desk.change(place.uri, TYPED + OLD)
        place.window.desk.change(place.uri, TYPED + TYPED + OLD)
        await news.nothing()


async def test_changes_that_are_gone_among_others_are_an_undo(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        place.window.desk.change(place.uri, TYPED + OLD + TYPED)
        assert await news.next() == ("undone", "e1")
        place.window.desk.change(place.uri, TYPED + NEW_TEXT)
        assert await news.next() == ("redone", "e1")


@pytest.mark.parametrize(
    "text",
    [TYPED + NEW_TEXT, NEW_TEXT.replace("2", "two"), NEW_TEXT.replace("2", "zwei")],
    ids=["typed elsewhere", "one of two taken back", "typed into"],
)
async def test_what_the_user_types_is_no_undo(tmp_path: Path, text: str) -> None:
    place = Place.make(tmp_path, Window())
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        place.window.desk.change(place.uri, text)
        await news.nothing()


async def test_each_of_several_edits_is_undone_in_its_turn(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    third = NEW_TEXT.replace("three", "3")
    async with followed(place) as news:
        await edit(place, NEW_TEXT, "e1")
        await edit(place, third, "e2")
        place.window.desk.change(place.uri, NEW_TEXT)
        assert await news.next() == ("undone", "e2")
        place.window.desk.change(place.uri, OLD)
        assert await news.next() == ("undone", "e1")
        place.window.desk.change(place.uri, third)
        assert await news.next() == ("redone", "e1")
        assert await news.next() == ("redone", "e2")


async def test_all_that_one_step_takes_back_is_told(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    async with followed(place) as news:
        await edit(place, NEW_TEXT, "e1")
        await edit(place, NEW_TEXT.replace("three", "3"), "e2")
        place.window.desk.change(place.uri, OLD)
        assert {await news.next(), await news.next()} == {("undone", "e1"), ("undone", "e2")}


async def test_what_the_agent_takes_back_itself_is_no_undo(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    async with followed(place) as news:
        await edit(place, NEW_TEXT, "e1")
        await edit(place, OLD, "e2")
        await news.nothing()
        place.window.desk.change(place.uri, NEW_TEXT)
        assert await news.next() == ("undone", "e2")


async def test_an_edit_of_a_text_too_long_to_keep_is_known_by_its_hash(tmp_path: Path) -> None:
    long = "".join(f"line {number}\n" for number in range(KEPT_CHARS // 8))
    assert len(long) > KEPT_CHARS
    place = Place.make(tmp_path, Window(), text=long)
    async with followed(place) as news:
        await edit(place, long.replace("line 7\n", "line seven\n"))
        place.window.desk.change(place.uri, long)
        assert await news.next() == ("undone", "e1")


async def test_a_document_that_was_closed_is_not_followed(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        place.window.desk.close(place.uri)
        place.window.desk.open_file(place.path)
        await settled(place.window)
        await news.nothing()
        assert isinstance(await place.files.read(place.path), FileText)


async def test_a_save_by_the_user_is_told_once(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(VSCODE))
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        place.window.desk.save(place.uri)
        assert await news.next() == ("saved", "e1")
        place.window.desk.save(place.uri)
        await news.nothing()


async def test_what_was_saved_with_the_edit_is_not_told_again(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL))
    async with followed(place) as news:
        await edit(place, NEW_TEXT)
        assert place.disk == NEW_TEXT
        await news.nothing()


@pytest.mark.parametrize(("typed", "waits"), [(False, True), (True, False)])
async def test_emacs_parts_two_edits_only_after_a_while_or_when_its_user_does_something(
    tmp_path: Path, typed: bool, waits: bool
) -> None:
    window = Window(EGLOT, timing=replace(FAST, undo_step_s=0.5))
    place = Place.make(tmp_path, window)
    await edit(place, NEW_TEXT, "e1")
    if typed:
        window.desk.change(place.uri, TYPED + NEW_TEXT)
        await settled(window)
    begun_s = anyio.current_time()
    await edit(place, place.text.replace("three", "3"), "e2")
    assert (anyio.current_time() - begun_s >= 0.4) is waits
