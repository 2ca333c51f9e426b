"""Options of `create_session` for programs: folders, models, origin, title, set-up, files; commands and exports."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core import AgentSession, export_session
from agent_core.kernel.errors import StorageUnavailable, UsageError
from agent_core.messages import BashMessage
from agent_core.resources.paths import AppPaths
from tests.support.session.folders import Folder, ask
from tests.support.session.scripted_model import SCRIPTED_FACTS, ScriptedModel, say


def header_of(file: Path) -> dict[str, object]:
    return json.loads(file.read_text(encoding="utf-8").split("\n", 1)[0])


async def test_a_model_of_the_program_answers(folder: Folder) -> None:
    model = ScriptedModel([say("from the program")])
    async with folder.open(model=None, models=[model], store="memory") as session:
        assert session.models.current is not None
        assert session.models.current.ref == SCRIPTED_FACTS.ref
        assert session.models.current.context_window == SCRIPTED_FACTS.context_window
        _ = await session.prompt("hi")
        result = await session.wait_idle()
        assert result is not None
        assert result.text == "from the program"


async def test_sessions_are_kept_in_the_folders_of_the_program(
    folder: Folder, tmp_path: Path
) -> None:
    paths = AppPaths(config=tmp_path / "c", data=tmp_path / "d", runtime=tmp_path / "r")
    paths.config.mkdir()
    paths.settings.write_text('{"defaultThinkingLevel": "high"}', encoding="utf-8")
    async with folder.open(paths=paths, models=[ScriptedModel([say("ok")])], model=None) as session:
        _ = await ask(session, "hi")
        assert session.info.config.thinking == "high"
        assert session.info.location is not None
        assert Path(session.info.location).is_relative_to(paths.sessions)
    assert folder.files == []


async def test_a_new_session_has_parent_title_and_set_up_and_an_old_one_keeps_its_own(
    folder: Folder,
) -> None:
    prepared: list[str] = []

    async def setup(session: AgentSession) -> None:
        prepared.append(session.id)
        _ = await session.add("Use tabs.", custom_type="notes")

    model = ScriptedModel([say("ok"), say("again")])
    options = {"models": [model], "parent": "an-id", "title": "Tabs", "setup": setup}
    async with folder.open(model=None, **options) as session:
        _ = await ask(session, "hi")
        assert (session.tree.title, session.tree.header.parent_session) == ("Tabs", "an-id")
        assert "Use tabs." in str(model.requests[0].messages)
        first = session.id
    assert header_of(folder.files[0])["parentSession"] == "an-id"
    async with folder.open(session=first, **(options | {"title": "Other"})) as session:
        assert session.tree.title == "Tabs"
    assert prepared == [first]


async def test_a_session_file_elsewhere_is_continued_where_it_is(
    folder: Folder, tmp_path: Path
) -> None:
    async with folder.open(models=[ScriptedModel([say("one")])], model=None) as session:
        _ = await ask(session, "first")
    moved = tmp_path / "elsewhere.jsonl"
    folder.files[0].rename(moved)
    model = ScriptedModel([say("two")])
    async with folder.open(session=moved, models=[model], model=SCRIPTED_FACTS.ref) as session:
        _ = await ask(session, "second")
        assert session.info.location == str(moved)
    sent = str(model.requests[0].messages)
    assert ("first" in sent, "one" in sent) == (True, True)
    assert "second" in moved.read_text(encoding="utf-8")


async def test_a_file_that_is_not_there_or_has_no_place_is_refused(
    folder: Folder, tmp_path: Path
) -> None:
    with pytest.raises(StorageUnavailable, match=r"nothing\.jsonl"):
        async with folder.open(session=tmp_path / "nothing.jsonl"):
            pass
    with pytest.raises(UsageError, match="store='files'"):
        async with folder.open(session=tmp_path / "nothing.jsonl", store="memory"):
            pass


@asynccontextmanager
async def answered(folder: Folder) -> AsyncGenerator[AgentSession]:
    model = ScriptedModel([say("the answer")])
    async with folder.open(models=[model], model=None, store="memory") as session:
        _ = await ask(session, "the question")
        yield session


async def test_a_session_in_memory_is_exported(folder: Folder) -> None:
    async with answered(folder) as session:
        lines = (await export_session(session, "jsonl")).decode().strip().split("\n")
        assert json.loads(lines[0])["id"] == session.id
        assert [entry.id for entry in session.tree.entries] == [
            json.loads(line)["id"] for line in lines[1:]
        ]
        for how in ("md", "html"):
            text = (await export_session(session, how)).decode()
            assert "the question" in text
            assert "the answer" in text


async def test_a_command_of_the_program_is_recorded_for_the_model(folder: Folder) -> None:
    model = ScriptedModel([say("seen")])
    async with folder.open(models=[model], model=None, store="memory") as session:
        shown = await session.programs.record_bash("make", "failed: a.c\n", exit_code=2)
        hidden = await session.programs.record_bash("env", "SECRET", exclude_from_context=True)
        assert (shown.exit_code, shown.deferred, hidden.cancelled) == (2, False, False)
        _ = await ask(session, "why?")
        sent = str(model.requests[0].messages)
        assert "failed: a.c" in sent
        assert "SECRET" not in sent
        kept = [one for one in session.info.messages if isinstance(one, BashMessage)]
        assert next((one.command, one.exit_code) for one in kept) == ("make", 2)
        with pytest.raises(UsageError, match="empty"):
            _ = await session.programs.record_bash(" ", "")
