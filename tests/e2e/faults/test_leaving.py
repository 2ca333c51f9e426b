"""However a client leaves in the middle of a run, the server ends at once, the run is settled, no process stays."""

import os
import signal
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.support.clients.server import Ground, calls, prompt
from tests.support.harness.sizes import paired
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import HELIX, PANEL, Profile
from tests.support.session.session_files import checked_entries, messages, runs
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

SLEEP = ("bash", {"command": "sleep 600 & sleep 600"})
LEAVES_WITHIN_S = 3.0


async def _says_goodbye(client: RawClient) -> None:
    await client.shutdown()
    client.notify("exit")


async def _just_exits(client: RawClient) -> None:
    client.notify("exit")


async def _hangs_up(client: RawClient) -> None:
    client.link.close_input()


async def _ends_it(client: RawClient) -> None:
    os.kill(client.pid, signal.SIGTERM)


@pytest.mark.parametrize(
    ("leave", "code"),
    [(_says_goodbye, 0), (_just_exits, 1), (_hangs_up, 0), (_ends_it, 143)],
    ids=["shutdown-exit", "exit", "eof", "sigterm"],
)
@pytest.mark.parametrize(
    ("how", "profile"),
    paired(["sends", "waits", "listens"], [HELIX, PANEL]),
    ids=lambda one: getattr(one, "name", one),
)
async def test_a_client_that_leaves_in_mid_run_is_let_go_and_the_run_settled(
    ground: Ground,
    how: str,
    profile: Profile,
    leave: Callable[[RawClient], Awaitable[None]],
    code: int,
) -> None:
    ground.provider.script([calls(SLEEP)])
    async with ground.client(profile) as client:
        if how == "listens":
            await client.subscribe().ready()
        _ = client.call("agent/prompt", prompt("sleep", wait=how == "waits"))
        await ground.provider.requests_arrived(1)
        sleepers = processes_with("sleep", "600", below=client.pid, at_least=2)
        begun = time.monotonic()
        await leave(client)
        assert await client.exit_code() == code
        took_s = time.monotonic() - begun
        print(f"{profile.name} {how}: the server has left after {took_s * 1000:.0f} ms")
        assert took_s < LEAVES_WITHIN_S
        assert "Traceback" not in client.stderr
    assert wait_gone(sleepers, timeout_s=2) == set()
    entries = checked_entries(*ground.sessions())
    assert [status for _, status in runs(entries)] == ["started", "cancelled"]
    assert len(messages(entries, "toolResult")) == 1
