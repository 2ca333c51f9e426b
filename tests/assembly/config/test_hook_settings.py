"""Hooks of sessions as they are really opened: of extensions that the settings name, with the limits that the settings say."""

from pathlib import Path

import anyio

from agent_core.events import ExtensionError
from agent_core.hooks import Hook, HookTable, TurnBegun
from tests.support.hooks.hook_functions import hangs
from tests.support.session.folders import Folder, ask

EXTENSION = """
from pathlib import Path

from agent_core.hooks import RunSettled, SessionBegun

SEEN = Path(__file__).with_name("seen.txt")

def extension(api):
    @api.on(SessionBegun)
    def begun(event, ctx):
        SEEN.write_text(event.reason)

    @api.on(RunSettled)
    def settled(event, ctx):
        SEEN.write_text(f"{SEEN.read_text()} {event.status}")
"""


async def test_hooks_of_an_extension_that_the_settings_name_are_asked(
    folder: Folder, tmp_path: Path
) -> None:
    code = tmp_path / "looks.py"
    code.write_text(EXTENSION, encoding="utf-8")
    folder.settings(extensions=[str(code)])
    async with folder.open() as session:
        await ask(session)
    assert (tmp_path / "seen.txt").read_text(encoding="utf-8") == "new completed"


async def test_a_limit_of_the_settings_holds(folder: Folder) -> None:
    folder.settings(hooks={"timeoutS": 0.05})
    table = HookTable()
    table.add(Hook("slow", hangs), at=TurnBegun)
    async with folder.open(hooks=table) as session:
        reader = session.subscribe()
        with anyio.fail_after(10):
            await ask(session)
        told = [one.event for one in reader.take_now() if isinstance(one.event, ExtensionError)]
    assert {one.error for one in told} == {"no answer within 0.05 s"}
    assert "in hangs" in (told[0].stack or "")
