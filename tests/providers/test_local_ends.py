"""The model of this machine ends: its work when nobody wants it, its process when it hangs, dies or is alone."""

import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.providers import Answer, Model, TextDelta
from agent_core.providers.adapters.local import LocalServer
from tests.providers.conftest import Pools
from tests.providers.local_model import WINDOW, asked, model_of, needs_model
from tests.support.processes import living, wait_gone
from tests.support.sizes import at_size


@pytest.fixture
async def server() -> AsyncGenerator[LocalServer]:
    made = LocalServer(context_window=WINDOW)
    yield made
    await made.aclose()


# Stopping. The caller is free at once; the work ends with the token or the batch that is being computed.

ROUNDS = at_size(ci=5, campaign=50)
FREE_S = 0.1
IDLE_S = 0.5
"""A machine that is busy with other tests is slow to say that this process rests."""


@pytest.mark.timeout(600)
@needs_model
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to see whether a process works")
@pytest.mark.parametrize(
    ("words", "window"),
    [("Tell a long story.", 1), (" ".join(f"w{at}" for at in range(250)), 0)],
    ids=["while it writes", "while it reads the prompt"],
)
async def test_leaving_frees_the_caller_at_once_and_ends_the_work(
    server: LocalServer, pools: Pools, words: str, window: int
) -> None:
    pool = pools(first_byte_s=300, idle_s=120)
    free: list[float] = []
    idle: list[float] = []
    for number in range(ROUNDS):
        model = model_of(server, pool, max_tokens=500)
        left_at = 0.0
        with anyio.CancelScope() as scope:
            async with model.stream(asked(f"{number} {words}")) as parts:
                # Entered: its first sign of life was there, so it computes.
                if window:
                    _ = await anext(parts)
                left_at = time.monotonic()
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        free.append(time.monotonic() - left_at)
        assert server.pid is not None
        idle.append(await _resting_after(server.pid, left_at))
    print(f"free after {max(free):.3f} s, resting after {sorted(idle)} s")
    assert sorted(free)[len(free) // 2] < FREE_S
    assert sorted(idle)[len(idle) // 2] < IDLE_S
    async with model_of(server, pool).stream(asked("Hello.")) as parts:
        assert isinstance([part async for part in parts][-1], Answer)


async def _resting_after(pid: int, since: float) -> float:
    """Wait until a process computes nothing for a while; gives when it last did, in seconds."""
    worked_at = time.monotonic()
    spent = _computed_ns(pid)
    while time.monotonic() - worked_at < 0.05:
        await anyio.sleep(0.005)
        now = _computed_ns(pid)
        if now - spent > 300_000:
            worked_at = time.monotonic()
        spent = now
    return worked_at - since


def _computed_ns(pid: int) -> int:
    found = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += int(file.read_text(encoding="ascii").split()[0])
    return found


# Hanging and dying.


async def _story(model: Model, pid: int, sent: signal.Signals) -> None:
    """Send a signal to a process within its answer, and read on."""
    async with model.stream(asked("Tell a long story.")) as parts:
        _ = await anext(parts)
        os.kill(pid, sent)
        async for _ in parts:
            pass


@pytest.mark.timeout(300)
@needs_model
async def test_a_process_that_hangs_ends_by_the_idle_timeout_and_is_replaced(
    server: LocalServer, pools: Pools
) -> None:
    story = model_of(server, pools(first_byte_s=120, idle_s=2.0), max_tokens=500)
    _ = await server.url()
    hung = server.pid or 0
    with pytest.raises(ProviderError, match="sent nothing for 2 s") as caught:
        await _story(story, hung, signal.SIGSTOP)
    assert caught.value.reason == "timeout"
    assert living([hung]) == set()
    async with model_of(server, pools(first_byte_s=120)).stream(asked("Hello.")) as parts:
        assert isinstance([part async for part in parts][-1], Answer)
    assert server.pid not in {None, hung}


@pytest.mark.timeout(300)
@needs_model
async def test_a_process_that_dies_within_an_answer_breaks_it_off_and_is_replaced(
    server: LocalServer, pools: Pools
) -> None:
    model = model_of(server, pools(first_byte_s=120), max_tokens=500)
    _ = await server.url()
    with pytest.raises(ProviderError) as caught:
        await _story(model, server.pid or 0, signal.SIGKILL)
    assert caught.value.reason in {"network", "protocol"}
    async with model.stream(asked("Hello.")) as parts:
        assert isinstance(await anext(parts), TextDelta)


@pytest.mark.timeout(300)
@needs_model
async def test_a_process_that_died_unseen_is_replaced_by_the_next_request(
    server: LocalServer, pools: Pools
) -> None:
    _ = await server.url()
    died = server.pid
    # Nobody waits for it: the request may find it dead before we know.
    os.kill(died or 0, signal.SIGKILL)
    async with model_of(server, pools(first_byte_s=120)).stream(asked("Hello.")) as parts:
        got = [part async for part in parts]
    assert isinstance(got[-1], Answer)
    assert server.pid not in {None, died}


@pytest.mark.timeout(300)
@needs_model
async def test_a_server_that_is_closed_leaves_no_process_and_can_be_started_again(
    server: LocalServer,
) -> None:
    await server.aclose()
    first = await server.url()
    pid = server.pid or 0
    await server.aclose()
    await server.aclose()
    assert living([pid]) == set()
    assert await server.url() != first


PARENT = """
import anyio
from agent_core.providers.adapters.local import LocalServer

async def main():
    server = LocalServer(context_window=512)
    await server.url()
    print(server.pid, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.timeout(300)
@needs_model
@pytest.mark.parametrize(
    "held",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it"),
        ),
    ],
    ids=["free", "stopped"],
)
async def test_the_process_does_not_outlive_a_parent_that_is_killed(
    tmp_path: Path, child_env: dict[str, str], held: bool
) -> None:
    # What a workspace calls itself is never imported: these would end the start.
    for name in ("anyio", "xllamacpp", "json", "agent_core"):
        tmp_path.joinpath(f"{name}.py").write_text("raise SystemExit(9)", encoding="utf-8")
    parent = await anyio.open_process(
        [sys.executable, "-P", "-c", PARENT],
        cwd=tmp_path,
        env=child_env,
        stderr=None,
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.receive())
    if held:
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    await parent.aclose()
    assert await anyio.to_thread.run_sync(wait_gone, [pid]) == set()


@pytest.mark.timeout(300)
@needs_model
async def test_where_python_is_told_to_look_nothing_is_imported(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("anyio", "xllamacpp", "agent_core", "sitecustomize"):
        tmp_path.joinpath(f"{name}.py").write_text("raise SystemExit(9)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert (await server.url()).startswith("http://127.0.0.1:")
