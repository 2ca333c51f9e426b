"""Many sessions in one process: they cost little, run side by side, and none is mistaken for another."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import Path as AsyncPath

from tests.support.clients.server import Ground, prompt, says
from tests.support.clients.windows import opened, serving
from tests.support.harness.sizes import at_size
from tests.support.workspace.processes import resident_bytes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SESSIONS = at_size(ci=50, campaign=1_000)
AT_ONCE = at_size(ci=5, campaign=50)
MIB = 1024 * 1024


async def test_many_sessions_are_open_at_once_and_some_of_them_run(
    ground: Ground, tmp_path: Path
) -> None:
    ground.provider.script([says(f"answer {number}") for number in range(AT_ONCE + 1)])
    folders = [tmp_path / f"w{number}" for number in range(SESSIONS)]
    for folder in folders:
        await AsyncPath(folder).mkdir()
    async with serving(ground) as windows, windows.window(session={"open": "none"}) as window:
        await opened(window, "new")
        await window.request("agent/prompt", prompt("warm up", wait=True))
        before = resident_bytes(os.getpid())
        sessions = [
            (await opened(window, "new", folders=[folder.as_uri()]))["session"]
            for folder in folders
        ]
        assert len(await windows.sessions()) == SESSIONS + 1
        per_session = (resident_bytes(os.getpid()) - before) / SESSIONS / MIB
        print(f"{SESSIONS} idle sessions: {per_session:.3f} MiB each")
        assert per_session <= 1.0
        spread = sessions[:: SESSIONS // AT_ONCE][:AT_ONCE]
        results: list[dict[str, Any]] = []

        async def go(session: str) -> None:
            asked = prompt("go", wait=True, session=session)
            results.append(await window.request("agent/prompt", asked, timeout_s=120))

        async with anyio.create_task_group() as group:
            for one in spread:
                group.start_soon(go, one)
        assert {result["status"] for result in results} == {"completed"}
        assert {result["message"] for result in results} == {
            f"answer {number}" for number in range(1, AT_ONCE + 1)
        }
        loaded = await windows.sessions()
        assert all(len(loaded[one].session.info.entries) >= 2 for one in spread)
