"""The store keeps what a person wrote, without secrets, one file per scope, and can take changes back."""

import sqlite3
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import ConfigError, UsageError
from agent_core.memory.values import USER, MemoryDraft
from tests.memory.conftest import MemoryGround


def draft(text: str) -> MemoryDraft:
    return MemoryDraft(text=text)


async def test_entries_are_stored_once_found_and_forgotten(
    ground: MemoryGround, tmp_path: Path
) -> None:
    memory = await ground.open(tmp_path / "p")
    scope = memory.project.scope
    first = await memory.remember(draft("Tests need the staging database"), scope)
    again = await memory.remember(draft("tests  need the STAGING database"), scope)
    assert again.id == first.id
    mine = await memory.remember(draft("Answer briefly"), USER)
    assert [one.id for one in await memory.search("testing databases", limit=5)] == [first.id]
    assert [one.id for one in await memory.best(limit=5)] == [first.id, mine.id]
    await memory.store.mark_used([first])
    assert (await memory.store.find([first.id], memory.scopes))[0].used == "2026-11-18"
    await memory.store.forget([first])
    assert await memory.search("testing databases", limit=5) == []
    with pytest.raises(UsageError, match="memory has no entry"):
        await memory.store.find([first.id], memory.scopes)


async def test_two_projects_and_two_users_never_see_each_others_entries(
    ground: MemoryGround, tmp_path: Path
) -> None:
    ours = await ground.open(tmp_path / "ours")
    theirs = await ground.open(tmp_path / "theirs")
    other_user = await MemoryGround(tmp_path / "other").open(tmp_path / "ours")
    await ours.remember(draft("alpha of ours"), ours.project.scope)
    await theirs.remember(draft("alpha of theirs"), theirs.project.scope)
    await other_user.remember(draft("alpha of another user"), USER)
    await other_user.remember(draft("alpha in the same folder"), other_user.project.scope)
    assert ours.project == other_user.project
    for memory, texts in (
        (ours, {"alpha of ours"}),
        (theirs, {"alpha of theirs"}),
        (other_user, {"alpha of another user", "alpha in the same folder"}),
    ):
        assert {one.text for one in await memory.search("alpha", limit=9)} == texts
        assert {one.text for one in await memory.best(limit=9)} == texts
        assert {one.text for one in (await memory.store.read(*memory.scopes)).entries} == texts
    foreign = (await theirs.best(limit=1))[0].id
    with pytest.raises(UsageError):
        await ours.store.find([foreign], ours.scopes)


async def test_memory_is_off_until_it_is_switched_on(ground: MemoryGround, tmp_path: Path) -> None:
    memory = await ground.open(tmp_path / "p", on=False)
    with pytest.raises(UsageError, match="memory is off in this project"):
        await memory.remember(draft("x"), memory.project.scope)
    assert not ground.folder.exists()
    await memory.switch(on=True)
    await memory.remember(draft("x"), memory.project.scope)
    await memory.switch(on=False)
    assert not await memory.is_on()


async def test_secrets_and_hidden_characters_are_not_written(
    ground: MemoryGround, tmp_path: Path
) -> None:
    ground.redactor.hold("hunter2-hunter2")
    memory = await ground.open(tmp_path / "p")
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    text = f"The token is {token}, the password hunter2-hunter2 \u202e\x1b[31m"
    entry = await memory.remember(draft(text), memory.project.scope)
    written = memory.store.path(memory.project.scope).read_bytes()
    assert token.encode() not in written
    assert b"hunter2" not in written
    assert "[redacted:" in entry.text
    assert "\u202e" not in entry.text
    assert "\x1b" not in entry.text


@pytest.mark.parametrize("text", ["", "  \n", "x" * 501])
async def test_a_text_that_is_empty_or_too_long_is_refused(
    ground: MemoryGround, tmp_path: Path, text: str
) -> None:
    memory = await ground.open(tmp_path / "p")
    with pytest.raises(UsageError):
        await memory.remember(draft(text), memory.project.scope)


async def test_a_file_that_is_no_text_is_named_and_kept(
    ground: MemoryGround, tmp_path: Path
) -> None:
    memory = await ground.open(tmp_path / "p")
    path = memory.store.path(USER)
    path.write_bytes(b"# Mine\n\xff\n")
    with pytest.raises(ConfigError, match=r"user\.md is not UTF-8 text \(line 2\)"):
        await memory.remember(draft("x"), USER)
    assert path.read_bytes() == b"# Mine\n\xff\n"


async def test_the_index_is_only_a_cache(ground: MemoryGround, tmp_path: Path) -> None:
    memory = await ground.open(tmp_path / "p")
    entry = await memory.remember(draft("Deploy on Tuesdays"), memory.project.scope)
    path = memory.store.path(memory.project.scope)
    index = path.with_suffix(".sqlite3")
    assert [one.id for one in await memory.search("deploying", limit=1)] == [entry.id]
    index.write_bytes(b"no database" * 999)
    assert [one.id for one in await memory.search("deploying", limit=1)] == [entry.id]
    with sqlite3.connect(index) as connection:
        connection.execute("UPDATE entries SET body = x'00'")
    path.write_text(path.read_text("utf-8").replace("Tuesdays", "Fridays"), "utf-8")
    assert (await memory.search("fridays", limit=1))[0].text == "Deploy on Fridays"


async def test_every_change_can_be_taken_back(ground: MemoryGround, tmp_path: Path) -> None:
    memory = await ground.open(tmp_path / "p")
    scope = memory.project.scope
    first = await memory.remember(draft("one"), scope)
    second = await memory.remember(draft("two"), scope)
    await memory.store.forget([first])
    await memory.store.mark_used([second])
    assert await memory.store.undo() == f"Remove {first.id}"
    assert {one.id for one in (await memory.store.read(scope)).entries} == {first.id, second.id}
    assert memory.store.path(scope).stat().st_mode & 0o77 == 0


async def test_writers_at_the_same_time_lose_nothing(ground: MemoryGround, tmp_path: Path) -> None:
    memories = [await ground.open(tmp_path / "p") for _ in range(4)]

    async def write(number: int) -> None:
        memory = memories[number % 4]
        await memory.remember(draft(f"text {number}"), memory.project.scope)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, number)
    entries = (await memories[0].store.read(memories[0].project.scope)).entries
    assert {one.text for one in entries} == {f"text {number}" for number in range(8)}
