"""Where a session is kept, which one is opened, and that only one holds it."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel import SessionId
from agent_core.kernel.errors import (
    ModelUnknown,
    SessionLocked,
    SessionNotFound,
    ToolSetInvalid,
)
from agent_core.storage.adapters.memory import MemoryStore
from tests.support.harness.clock import FakeClock
from tests.support.session.folders import Folder, ask, handled


async def test_a_session_is_a_file_once_something_was_said(folder: Folder) -> None:
    async with folder.open(hooks=handled()) as session:
        assert folder.files == []
        await ask(session, "hello")
        (path,) = folder.files
        assert session.info.location == str(path)
        assert session.info.root == str(folder.root)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert (lines[0]["id"], lines[0]["cwd"]) == (session.id, str(folder.root))
    assert not list(path.parent.glob("*.lock"))


async def test_a_session_in_memory_leaves_no_file(folder: Folder) -> None:
    async with folder.open(store="memory", hooks=handled()) as session:
        await ask(session)
        assert session.info.location is None
    assert folder.files == []


async def test_a_session_is_opened_again_with_what_was_said_and_chosen(folder: Folder) -> None:
    keys = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(hooks=handled(), env=keys) as session:
        await session.models.choose("openai/gpt-5")
        await session.models.think("high")
        await ask(session, "remember me")
        first = session.id
    async with folder.open(session=first, model=None, env=keys) as session:
        assert session.id == first
        assert (session.info.config.model, session.info.config.thinking) == (
            "openai/gpt-5",
            "high",
        )
        assert "remember me" in str(session.info.entries)
    async with folder.open(session=first, model=None) as session:
        assert session.models.current is None
        with pytest.raises(ModelUnknown, match="the session's model cannot be used"):
            await session.prompt("hi")
    async with folder.open(session=first, thinking="off", env=keys) as session:
        assert session.info.config.model == "embedded/repair"
        assert session.info.config.thinking == "off"


async def test_what_was_asked_for_on_opening_is_there_when_the_session_is_opened_again(
    folder: Folder,
) -> None:
    keys = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(
        model="openai/gpt-5", thinking="high", hooks=handled(), env=keys
    ) as session:
        await ask(session)
        first = session.id
    async with folder.open(session=first, model=None, env=keys) as session:
        config = session.info.config
        assert (config.model, config.thinking) == ("openai/gpt-5", "high")


async def test_what_nobody_asked_for_is_left_to_the_settings_of_the_day(folder: Folder) -> None:
    folder.settings(defaultThinkingLevel="low")
    async with folder.open(hooks=handled()) as session:
        await ask(session)
        first = session.id
    folder.settings(defaultThinkingLevel="high")
    async with folder.open(session=first) as session:
        assert session.info.config.thinking == "high"


async def test_opening_a_session_differently_changes_its_file_when_something_is_said(
    folder: Folder,
) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
        first = session.id
    (path,) = folder.files
    before = path.read_bytes()
    async with folder.open(session=first, thinking="high"):
        pass
    assert path.read_bytes() == before
    async with folder.open(session=first, thinking="high", hooks=handled()) as session:
        await ask(session)
        await session.models.think("low")
    async with folder.open(session=first) as session:
        assert session.info.config.thinking == "low"


async def test_latest_is_the_newest_of_this_workspace_else_a_new_one(
    folder: Folder, tmp_path: Path
) -> None:
    clock, store = FakeClock(), MemoryStore()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ids: list[SessionId] = []
    for root in (folder.root, folder.root, elsewhere):
        clock.advance(60)
        async with folder.open(
            workspace=root, store=store, clock=clock, hooks=handled()
        ) as session:
            await ask(session)
            ids.append(session.id)
    async with folder.open(session="latest", store=store, clock=clock) as session:
        assert session.id == ids[1]
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    async with folder.open(session="latest", workspace=fresh, store=store, clock=clock) as session:
        assert session.id not in ids
        assert session.info.entries == ()


async def test_latest_is_found_through_a_link_to_the_workspace(
    folder: Folder, tmp_path: Path
) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
    link = tmp_path / "link"
    link.symlink_to(folder.root)
    async with folder.open(workspace=str(link), session="latest") as again:
        assert again.id == session.id


@pytest.mark.parametrize("unknown", ["0197-nope", "../../etc/passwd", "a\0b", "x" * 5000])
async def test_an_unknown_session_is_an_error(folder: Folder, unknown: str) -> None:
    with pytest.raises(SessionNotFound):
        async with folder.open(session=unknown):
            pytest.fail("opened")


@pytest.mark.parametrize("store", ["files", MemoryStore()], ids=["files", "memory"])
async def test_a_session_that_another_has_open_is_locked_until_it_is_closed(
    folder: Folder, store: Any
) -> None:
    async with folder.open(store=store, hooks=handled()) as session:
        await ask(session)
        with pytest.raises(SessionLocked):
            async with folder.open(store=store, session=session.id):
                pytest.fail("opened twice")
    async with folder.open(store=store, session=session.id) as again:
        assert again.id == session.id


async def test_a_session_that_could_not_be_built_is_not_locked(folder: Folder) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
    with pytest.raises(ToolSetInvalid):
        async with folder.open(session=session.id, tools="nope"):
            pytest.fail("opened")
    async with folder.open(session=session.id) as again:
        assert again.id == session.id


async def test_an_error_inside_leaves_the_session_closed_and_comes_out_as_it_is(
    folder: Folder,
) -> None:
    async def fail() -> None:
        async with folder.open(hooks=handled()) as session:
            await ask(session)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()
    async with folder.open(session="latest") as again:
        assert "go" in str(again.info.entries)
