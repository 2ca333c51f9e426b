"""Replay: whoever drops and comes back has what an undisturbed observer has, also over a restart."""

import json
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from agent_core.events import DocumentChange, EditApplied, RunStarted, ToolInputDelta, ToolRunning
from agent_core.kernel import ItemId, JsonObject, RunId, ToolCallId
from agent_core.kernel.redaction.redactor import Redactor
from tests.support.harness.sizes import at_size
from tests.support.session.told import SESSION, Client, chance_of, course, keeping, told
from tiller_server.lsp.events.cache_file import find
from tiller_server.lsp.events.cache_writer import RESERVED

SEEDS = at_size(ci=6, campaign=120)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_client_that_drops_at_random_points_ends_where_an_observer_is(
    tmp_path: Path, seed: int
) -> None:
    chance = chance_of(seed)
    source = told(tmp_path / "s.events.jsonl")
    observer, dropper = Client(), Client()
    drops = 0
    async with keeping(source), observer.following(source) as seen:
        told_all = list(course(chance, runs=4))
        while told_all:
            async with dropper.following(source) as sink:
                for _ in range(chance.randint(0, 12)):
                    if told_all:
                        source.tell(told_all.pop(0))
                    if chance.random() < 0.3:
                        await anyio.lowlevel.checkpoint()
                if chance.random() < 0.7:
                    await dropper.reach(sink, chance.randint(0, source.events.newest))
            drops += 1
            if chance.random() < 0.5:
                for _ in range(chance.randint(0, 20)):
                    if told_all:
                        source.tell(told_all.pop(0))
            async with dropper.following(source) as sink:
                await dropper.reach(sink, source.events.newest)
                await observer.reach(seen, source.events.newest)
                assert dropper.reduced.now() == observer.reduced.now()
    assert dropper.replays > 0
    assert dropper.reduced.snapshots == 1
    both = observer.reduced.durable.keys() & dropper.reduced.durable.keys()
    assert {n: observer.reduced.durable[n] for n in both} == {
        n: dropper.reduced.durable[n] for n in both
    }
    assert observer.reduced.durable == dropper.reduced.durable
    assert observer.reduced.items.keys() == dropper.reduced.items.keys()
    assert {k: v for k, v in observer.reduced.items.items() if v.get("ended")} == {
        k: v for k, v in dropper.reduced.items.items() if v.get("ended")
    }
    print(f"{drops} drops, {dropper.replays} replays")


async def test_a_client_that_comes_back_within_a_call_gets_its_arguments_so_far() -> None:
    def delta(text: str, partial: JsonObject | None) -> ToolInputDelta:
        return ToolInputDelta(
            run=RunId("r"), turn=None, item=ItemId("i"), text=text, partial=partial
        )

    source, client = told(None), Client()
    async with client.following(source) as sink:
        source.tell(RunStarted(run=RunId("r"), message_id=None, model="p/m"))
        source.tell(delta('{"a', None), delta('": "b', {"a": "b"}))
        await client.reach(sink, 3)
    source.tell(delta("c", {"a": "bc"}), delta('d"', None))
    async with client.following(source) as sink:
        with anyio.fail_after(10):
            while not sink.values:
                await sink.came.wait()
        ((event,),) = [value["events"] for value in sink.values]
    assert (event["from"], event["seq"]) == (4, 5)
    assert (event["text"], event["partial"]) == ('cd"', {"a": "bc"})


@pytest.mark.parametrize("ends", ["well", "killed"])
async def test_the_epoch_goes_on_when_the_session_is_opened_again(
    tmp_path: Path, ends: str
) -> None:
    path = tmp_path / "s.events.jsonl"
    first = told(path)
    client = Client()
    events = list(course(chance_of(1), runs=2))
    async with keeping(first) as group, client.following(first) as sink:
        await client.reach(sink, 0)
        first.tell(*events[:-3])
        await client.reach(sink, first.events.newest)
        if ends == "killed":
            group.cancel_scope.cancel()
    at = client.reduced.last
    assert at is not None
    second = told(path, before=first)
    assert second.events.epoch == first.events.epoch
    assert second.events.newest == (at if ends == "well" else at + RESERVED)
    async with keeping(second), client.following(second) as sink:
        second.tell(*events[-3:])
        await client.reach(sink, second.events.newest)
    assert client.reduced.snapshots == 1
    assert client.reduced.now()["state"] == "idle"


async def test_a_file_that_went_on_without_its_cache_begins_a_new_epoch(tmp_path: Path) -> None:
    path = tmp_path / "s.events.jsonl"
    first = told(path)
    async with keeping(first):
        first.tell(*course(chance_of(2), runs=1))
    first.entry[0] = "e999"
    second = told(path, before=first)
    assert second.events.epoch != first.events.epoch


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_cache_that_was_cut_anywhere_is_continued_whole_or_begun_anew(
    tmp_path: Path, seed: int
) -> None:
    chance = chance_of(seed)
    path = tmp_path / "s.events.jsonl"
    first = told(path)
    observer = Client()
    async with keeping(first), observer.following(first) as sink:
        first.tell(*course(chance, runs=2))
        await observer.reach(sink, first.events.newest)
    content = path.read_bytes()
    cut = chance.randint(0, len(content))
    damaged = bytearray(content[:cut])
    if chance.random() < 0.5 and damaged:
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    path.write_bytes(bytes(damaged))
    second = told(path, before=first)
    client = Client()
    client.reduced.epoch, client.reduced.last = first.events.epoch, observer.reduced.last
    client.reduced.session, client.reduced.run = {"state": "idle", "queue": []}, None
    async with keeping(second), client.following(second) as sink:
        second.tell(*course(chance, runs=1))
        await client.reach(sink, second.events.newest)
    assert client.reduced.now()["state"] == "idle"
    found = find(path, SESSION)
    assert found is not None
    assert found.epoch == second.events.epoch


async def test_nothing_is_sent_before_it_is_in_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "s.events.jsonl"
    source = told(path)
    client = Client()
    async with client.following(source) as sink:
        await client.reach(sink, 0)
        source.tell(*course(chance_of(3), runs=1))
        with anyio.move_on_after(0.1):
            await client.reach(sink, source.events.newest)
        assert client.reduced.durable == {}
        async with keeping(source):
            await client.reach(sink, source.events.newest)
            assert client.reduced.durable != {}


async def test_a_disk_that_fails_costs_those_who_listen_nothing(tmp_path: Path) -> None:
    source = told(tmp_path / "gone" / "s.events.jsonl")
    client = Client()
    async with keeping(source), client.following(source) as sink:
        await client.reach(sink, 0)
        before = source.events.epoch
        source.tell(*course(chance_of(4), runs=2))
        await client.reach(sink, source.events.newest)
        assert (source.events.epoch, client.reduced.snapshots) == (before, 1)
        assert client.reduced.durable != {}
    assert client.reduced.now()["state"] == "idle"


async def test_a_disk_that_fails_and_keeps_what_it_has_costs_an_epoch_and_no_event(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.events.jsonl"
    (path / "taken").mkdir(parents=True)
    source = told(path)
    client = Client()
    async with keeping(source), client.following(source) as sink:
        await client.reach(sink, 0)
        before = source.events.epoch
        source.tell(*course(chance_of(4), runs=2))
        with anyio.fail_after(5):
            while source.events.epoch == before:
                await anyio.lowlevel.checkpoint()
        source.tell(*course(chance_of(6), runs=1))
        await client.reach(sink, source.events.newest)
        assert client.reduced.epoch == source.events.epoch
        assert client.reduced.snapshots == 2
        source.tell(*course(chance_of(5), runs=1))
        await client.reach(sink, source.events.newest)
    assert client.reduced.now()["state"] == "idle"


async def test_the_cache_is_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.events.jsonl"
    source = told(path)
    async with keeping(source):
        source.tell(*course(chance_of(6), runs=1))
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_cache_that_is_full_loses_its_older_half_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiller_server.lsp.events.cache_file.KEPT_EVENTS", 40)
    monkeypatch.setattr("tiller_server.lsp.events.replay_log.RECENT_BYTES", 500)
    path = tmp_path / "s.events.jsonl"
    source = told(path)
    early, late = Client(), Client()
    async with keeping(source):
        async with early.following(source) as sink:
            await early.reach(sink, 0)
        for number in range(12):
            source.tell(*course(chance_of(number), runs=1))
            await source.events.wait_persisted(source.events.newest)
            if number == 10:
                async with late.following(source) as sink:
                    await late.reach(sink, source.events.newest)
        found = find(path, SESSION)
        assert found is not None
        assert found.after > 0
        assert found.events <= 40
        for client, snapshots in ((early, 2), (late, 1)):
            async with client.following(source) as sink:
                await client.reach(sink, source.events.newest)
            assert client.reduced.snapshots == snapshots
        assert early.reduced.now() == late.reduced.now()


HELD = "held-Value/4f9d 1c7a2b"


async def test_the_file_of_events_holds_no_held_key_wherever_it_stands(tmp_path: Path) -> None:
    """Also where it is the name of a file, which is told as the address of a document."""
    path = tmp_path / "s.events.jsonl"
    redactor = Redactor([HELD])
    source = told(path, redactor=redactor)
    run, change = RunId("r1"), DocumentChange(path=Path(f"/w/{HELD}/a.txt"), status="applied")
    events = (
        RunStarted(run=run, message_id=None, model=HELD),
        EditApplied(run=run, edit="e", call=ToolCallId("c"), documents=(change,)),
        ToolRunning(
            run=run,
            turn=None,
            item=ItemId("i"),
            title=HELD,
            input={HELD: [{"x": {"y": f"a {HELD} b"}}]},
        ),
    )
    async with keeping(source):
        source.tell(*events)
        await source.events.wait_persisted(source.events.newest)
    kept = path.read_text("utf-8")
    for form in (HELD, quote(HELD), quote(HELD, safe=""), json.dumps(HELD)[1:-1]):
        assert form not in kept
    assert kept.count("[redacted:secret]") == 5
    assert [json.loads(line).get("type") for line in kept.splitlines()][1:4] == [
        "run.started", "edit.applied", "tool.running",
    ]  # fmt: skip
    found = find(path, SESSION)
    assert found is not None
    assert found.newest == 3
