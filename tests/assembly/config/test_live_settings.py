"""A session follows its settings: what is written into a file counts from the next run, and what is wrong is told."""

import json
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from typing_extensions import override

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import EventSubscription, Notice, SessionConfigured
from agent_core.resources.folder_watch import FolderChanges, FolderWatches
from agent_core.session import AgentSession
from tests.support.session.folders import Folder, is_of_machine


class ToldWatches(FolderWatches):
    """Watches that say when the first of them stands: what is written before it nobody hears of."""

    def __init__(self) -> None:
        super().__init__()
        self.stand = anyio.Event()

    @override
    @asynccontextmanager
    async def watch(self, folders: Collection[Path]) -> AsyncGenerator[FolderChanges]:
        async with super().watch(folders) as news:
            self.stand.set()
            yield news


@asynccontextmanager
async def watched(
    folder: Folder, **more: Any
) -> AsyncGenerator[tuple[AgentSession, EventSubscription]]:
    watches = ToldWatches()
    request = SessionRequest(
        workspace=folder.root, env=folder.env, watches=watches, trusted=True, **more
    )
    async with open_session(request) as session:
        reader = session.subscribe()
        with anyio.fail_after(10):
            await watches.stand.wait()
        yield session, reader
        reader.close()


async def until(reader: EventSubscription, kind: type[Any]) -> Any:
    with anyio.fail_after(10):
        async for stamped in reader:
            event = stamped.event
            if isinstance(event, kind) and not (
                isinstance(event, Notice) and is_of_machine(event.text)
            ):
                return event
    raise AssertionError("the session is over")


async def test_what_is_written_into_the_users_file_counts_and_is_told(folder: Folder) -> None:
    folder.settings(permission={"mode": "ask"})
    async with watched(folder) as (session, reader):
        folder.settings(permission={"mode": "plan"}, steeringMode="all")
        told = await until(reader, SessionConfigured)
        assert (told.config.mode, told.config.steering) == ("plan", "all")
        assert session.info.allowed_mode == "plan"


async def test_a_projects_file_counts_also_when_its_folder_is_new(folder: Folder) -> None:
    folder.settings(permission={"mode": "auto"})
    async with watched(folder) as (_, reader):
        own = folder.root / ".tiller"
        own.mkdir()
        (own / "settings.json").write_text(json.dumps({"permission": {"mode": "plan"}}), "utf-8")
        assert (await until(reader, SessionConfigured)).config.mode == "plan"
        (own / "settings.json").write_text(json.dumps({"permission": {"mode": "ask"}}), "utf-8")
        assert (await until(reader, SessionConfigured)).config.mode == "ask"


async def test_a_broken_file_is_told_with_its_place_and_the_rest_holds(folder: Folder) -> None:
    folder.settings(permission={"mode": "plan"})
    async with watched(folder) as (session, reader):
        folder.write("settings.json", '{"permission": {"mode": "plan"},\n "sandbox": 3}')
        notice = await until(reader, Notice)
        assert "settings.json:2: " in notice.text
        assert session.info.config.mode == "plan"


async def test_an_editors_layer_is_exchanged_whole(folder: Folder) -> None:
    folder.settings(permission={"mode": "auto"})
    layers = {"editor": {"permission": {"mode": "plan"}, "followUpMode": "all"}}
    async with watched(folder, settings=layers) as (session, reader):
        assert session.info.config.mode == "plan"
        await session.resources.configure({"steeringMode": "all", "skills": ["/x"]})
        config = session.info.config
        assert (config.mode, config.steering, config.follow_up) == ("auto", "all", "one-at-a-time")
        notice = await until(reader, Notice)
        assert '"skills"' in notice.text


async def test_a_file_that_no_session_may_begin_with_changes_nothing_in_an_open_one(
    folder: Folder,
) -> None:
    folder.settings(permission={"mode": "plan"})
    async with watched(folder) as (session, reader):
        folder.settings(permission={"mod": "plan"}, steeringMode="all")
        notice = await until(reader, Notice)
        assert 'did you mean "permission.mode"?' in notice.text
        assert session.info.allowed_mode == "plan"
        config = session.info.config
        assert (config.mode, config.steering) == ("plan", "one-at-a-time")
