"""Faults outside of Tiller: streams that break or stall, disks that are full. It says so at once, and the session goes on."""

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import Ground, prompt, says
from tests.support.harness.sizes import paired
from tests.support.lsp.lsp_client import RawClient, Subscription
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.session.session_files import checked_entries, read_entries, runs, said
from tests.support.workspace.mounts import small_file_system

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

WORDS = {"text": "all that was to be said " * 40, "deltas": 60}
FAULTS: dict[str, dict[str, Any]] = {
    "cut": {**WORDS, "cut_after_bytes": 3000},
    "cut-at-once": {**WORDS, "cut_after_bytes": 0},
    "eof": {**WORDS, "eof_after_bytes": 3000},
    "eof-at-once": {**WORDS, "eof_after_bytes": 0},
    "stall": {**WORDS, "stall_after_bytes": [3000, 60.0]},
    "malformed": {**WORDS, "malformed": "data: {broken\n\n"},
    "overloaded": {"status": 503},
    "rate-limited": {"status": 429, "headers": {"retry-after": "0"}},
}
APIS = ("openai-completions", "anthropic-messages")
RETRY = {"maxRetries": 2, "baseDelayMs": 20}
BIG = "big " * 5000
HEADROOM = 4096


def configure(ground: Ground, api: str) -> None:
    """Make faults cost no patience."""
    ground.configure(api=api, retry=RETRY, stream={"idleTimeoutS": 1, "firstByteTimeoutS": 5})


async def ended(stream: Subscription, run: str) -> dict[str, Any]:
    """Wait for the end of a run and give it, once it is clear that there is no second one."""
    await stream.wait(type="run.ended", run=run, timeout_s=30)
    (end,) = [event for event in stream.of("run.ended") if event["run"] == run]
    after = stream.events[stream.events.index(end) + 1 :]
    assert [event["type"] for event in after if event.get("run") == run] == []
    return end


@pytest.mark.parametrize(("fault", "api"), paired([*FAULTS], APIS))
async def test_a_broken_stream_is_tried_again_and_told(
    ground: Ground, fault: str, api: str
) -> None:
    configure(ground, api)
    ground.provider.script([FAULTS[fault], {**WORDS}])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        accepted = await client.request("agent/prompt", prompt("talk"))
        end = await ended(stream, accepted["run"])
        retries = stream.of("retry.started")
        print(f"{api} {fault}: {[one['error']['message'] for one in retries]}")
        assert (end["status"], len(retries)) == ("completed", 1)
        assert [one["success"] for one in stream.of("retry.ended")] == [True]
        whole = stream.of("message.ended")[-1]
        assert whole["content"] == [{"type": "text", "text": WORDS["text"]}]
        await client.shutdown()
        assert await client.exit() == 0
    checked_entries(*ground.sessions())


@pytest.mark.parametrize(("fault", "api"), paired(["cut", "eof", "stall", "malformed"], APIS[::-1]))
async def test_a_stream_that_breaks_every_time_fails_the_run_truthfully_and_the_session_goes_on(
    ground: Ground, fault: str, api: str
) -> None:
    configure(ground, api)
    ground.provider.script([{**FAULTS[fault], "repeat": 3}, says("well again")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        accepted = await client.request("agent/prompt", prompt("talk"))
        end = await ended(stream, accepted["run"])
        print(f"{api} {fault}: {end['error']}")
        assert end["status"] == "failed"
        assert len(end["error"]["message"]) > 10
        assert "Traceback" not in end["error"]["message"]
        assert len(stream.of("retry.started")) == RETRY["maxRetries"]
        assert [one["success"] for one in stream.of("retry.ended")] == [False]
        result = await client.request("agent/prompt", prompt("and now?", wait=True))
        assert (result["status"], result["message"]) == ("completed", "well again")
        await client.shutdown()
        assert await client.exit() == 0
    entries = checked_entries(*ground.sessions())
    assert said(entries) == ["talk", "and now?"]
    assert [status for _, status in runs(entries)] == [
        *("started", "failed"),
        *("started", "completed"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk that a test can fill and free; some kilobytes still go onto a full one."""

    fill: Callable[[RawClient, Path], None]
    free: Callable[[RawClient], None]


@pytest.fixture(params=["limit", "tmpfs"])
def disk(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Disk]:
    """Return a disk: a real one that is small, where one may be mounted, and a limit on the size of files."""
    if request.param == "limit":
        if not hasattr(resource, "prlimit"):
            pytest.skip("this system cannot limit the files of a process that runs")
        yield Disk(fill=_limit, free=_unlimit)
        return
    data = ground.dirs.data
    with small_file_system(data, size_bytes=512 << 10):
        filler = data / "filler"
        yield Disk(fill=lambda _, __: _fill(filler), free=lambda _: filler.unlink())


async def test_a_full_disk_is_told_at_once_and_nothing_is_lost_when_there_is_room_again(
    ground: Ground, disk: Disk
) -> None:
    answer = {"text": BIG, "deltas": 10}
    ground.provider.script([says("one"), answer, says("three")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("first", wait=True))
        (path,) = ground.sessions()
        disk.fill(client, path)

        accepted = await client.request("agent/prompt", prompt("second"))
        end = await ended(stream, accepted["run"])
        assert end["status"] == "completed"
        told = stream.of("error")
        assert told[0]["seq"] < end["seq"]
        print(f"told: {told[0]['error']['message']}")
        assert str(path) in told[0]["error"]["message"]
        assert stream.of("message.ended")[-1]["content"] == [{"type": "text", "text": BIG}]
        before = read_entries(path)
        assert said(before[1:]) == ["first", "second"]

        with pytest.raises(ClientError) as refused:
            await client.request("agent/prompt", prompt("lost? " * 2000))
        assert str(path) in refused.value.message
        status = await client.request("agent/status", {})
        assert [one["state"] for one in status["sessions"]] == ["idle"]
        assert read_entries(path) == before

        disk.free(client)
        result = await client.request("agent/prompt", prompt("third", wait=True))
        assert (result["status"], result["message"]) == ("completed", "three")
        await client.shutdown()
        assert await client.exit() == 0
    entries = checked_entries(path)
    assert said(entries) == ["first", "second", "third"]
    assert said(entries, "assistant") == ["one", BIG, "three"]
    told_model = ground.provider.requests[-1]["body"]["messages"]
    assert [one["role"] for one in told_model if one["role"] != "system"] == [
        *("user", "assistant", "user", "assistant", "user")
    ]


async def test_what_waits_for_room_is_written_when_the_session_is_closed(
    ground: Ground, disk: Disk
) -> None:
    ground.provider.script([says("one"), {"text": BIG, "deltas": 10}])
    async with ground.client(PANEL) as client:
        await client.request("agent/prompt", prompt("first", wait=True))
        (path,) = ground.sessions()
        disk.fill(client, path)
        await client.request("agent/prompt", prompt("second", wait=True))
        disk.free(client)
        await client.shutdown()
        assert await client.exit() == 0
    assert said(checked_entries(path), "assistant") == ["one", BIG]


def _limit(client: RawClient, path: Path) -> None:
    _, hard = resource.prlimit(client.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (path.stat().st_size + HEADROOM // 2, hard))


def _unlimit(client: RawClient) -> None:
    _, hard = resource.prlimit(client.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (hard, hard))


def _fill(filler: Path) -> None:
    """Take all room but one page."""
    with filler.open("wb", buffering=0) as file:
        size = 0
        try:
            while written := file.write(bytes(HEADROOM)):
                size += written
        except OSError:
            file.truncate(size - HEADROOM)
