"""However many sessions there are, a folder is watched once, and each hears of it for as long as it listens."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from watchdog.observers import Observer

from agent_core.resources.folder_watch import FolderChanges, FolderWatches


async def heard(news: FolderChanges, path: Path) -> bool:
    with anyio.move_on_after(5):
        while path not in await news.next(quiet_s=0.05):
            pass
        return True
    return False


async def test_one_watch_serves_many_and_ends_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    observer: Any = Observer
    schedule = observer.schedule

    def count(self: object, handler: object, path: str, **more: object) -> object:
        started.append(path)
        return schedule(self, handler, path, **more)

    monkeypatch.setattr(observer, "schedule", count)
    mine, ours = tmp_path / "a", tmp_path / "b"
    mine.mkdir()
    ours.mkdir()
    watches = FolderWatches()
    async with AsyncExitStack() as stack:
        listening = [
            await stack.enter_async_context(watches.watch([ours, *more])) for more in ([], [mine])
        ]
        path = ours / "x"
        path.write_text("1")
        assert [await heard(news, path) for news in listening] == [True, True]
        own = mine / "y"
        own.write_text("1")
        assert await heard(listening[1], own)
    assert sorted(started) == [str(mine), str(ours)]
    async with watches.watch([ours]) as news:
        path.write_text("2")
        assert await heard(news, path)
    assert len(started) == 3


async def test_a_folder_that_is_not_there_is_no_harm(tmp_path: Path) -> None:
    watches = FolderWatches()
    async with watches.watch([tmp_path / "none", tmp_path]) as news:
        (tmp_path / "x").write_text("1")
        assert await heard(news, tmp_path / "x")
