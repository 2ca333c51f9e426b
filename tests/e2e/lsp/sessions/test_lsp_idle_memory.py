"""The memory of a project is consolidated when nobody has written a prompt for long, where the user has asked for it."""

from typing import Any, Final

import anyio.lowlevel
import pytest

from agent_core.kernel import SystemClock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.memory.access import FolderMemory, open_memory
from agent_core.memory.consolidation import Consolidation
from agent_core.resources.paths import app_paths
from tests.support.clients.server import Ground, prompt, says
from tests.support.clients.windows import opened, serving
from tests.support.harness.clock import FakeClock, HeldClock
from tests.support.provider.loopback import write_config

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]
LINE: Final = '{"prompt": 1, "kind": "decision", "text": "Deploys happen on Tuesdays"}'
PRICED: Final = {"cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}}
LOOKS: Final = 60
"""At 30 s each: half an hour."""


def configure(ground: Ground, **memory: Any) -> None:
    settings = {"permission": {"mode": "yolo"}, "memory": memory}
    write_config(ground.dirs.config, ground.provider, settings=settings, model=PRICED)


async def memory_of(ground: Ground, *, on: bool) -> FolderMemory:
    folder = app_paths(ground.env).memory
    memory = await open_memory(
        folder, ground.root, env=ground.env, clock=FakeClock(), redactor=Redactor()
    )
    await memory.switch(on=on)
    return memory


async def pass_half_an_hour(clock: HeldClock) -> None:
    for _ in range(LOOKS):
        clock.advance(30)
        await anyio.lowlevel.checkpoint()


async def test_entries_are_proposed_once_when_the_project_is_idle(ground: Ground) -> None:
    configure(ground, consolidateAfterMinutes=10)
    job = Consolidation(await memory_of(ground, on=True), clock=FakeClock())
    ground.provider.script([says("ok"), says(LINE)])
    clock = HeldClock(SystemClock().now_ms())
    async with serving(ground, clock=clock) as windows, windows.window(clientId="w") as window:
        _ = await opened(window)
        await window.request("agent/prompt", prompt("We deploy on Tuesdays", wait=True))
        clock.advance(300)
        await anyio.lowlevel.checkpoint()
        assert len(ground.provider.requests) == 1
        await pass_half_an_hour(clock)
        with anyio.fail_after(20):
            while not await job.proposed():  # noqa: ASYNC110 - a file that the server writes sets no event
                await anyio.sleep(0.01)
        await pass_half_an_hour(clock)
    body = ground.provider.requests[1]["body"]
    assert "We deploy on Tuesdays" in str(body)
    assert len(ground.provider.requests) == 2
    (entry,) = await job.proposed()
    assert entry.text == "Deploys happen on Tuesdays"


@pytest.mark.parametrize(("settings", "on"), [({}, True), ({"consolidateAfterMinutes": 1}, False)])
async def test_no_model_is_asked_where_the_user_did_not_ask_for_it(
    ground: Ground, settings: Any, on: bool
) -> None:
    configure(ground, **settings)
    _ = await memory_of(ground, on=on)
    ground.provider.script([says("ok"), says(LINE)])
    clock = HeldClock(SystemClock().now_ms())
    async with serving(ground, clock=clock) as windows, windows.window(clientId="w") as window:
        _ = await opened(window)
        await window.request("agent/prompt", prompt("We deploy on Tuesdays", wait=True))
        await pass_half_an_hour(clock)
        await window.request("agent/session/list", {})
    assert len(ground.provider.requests) == 1
