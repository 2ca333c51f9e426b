"""A subscription under pressure: what a slow client loses is told, what matters arrives, and nobody waits."""

import anyio
import pytest

from agent_core.events import (
    Event,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    Notice,
    RunEnded,
    RunStarted,
    ToolInputDelta,
    ToolOutputDelta,
)
from agent_core.events.feed import HEAD_CHARS, READER_BYTES, TAIL_CHARS
from agent_core.events.values import ChangeCounts
from agent_core.kernel import ItemId, RunId, TurnId
from agent_core.messages import Text
from tests.support.lsp.reducer import Json
from tests.support.session.told import USAGE, Client, Sink, Told, told
from tiller_server.lsp.events.flow_control import UNACKNOWLEDGED_BYTES, SendWindow

RUN, TURN, ITEM = RunId("r"), TurnId("t"), ItemId("m")
OF: Json = {"run": RUN, "turn": TURN, "item": ITEM}
BEGIN: tuple[Event, ...] = (
    RunStarted(run=RUN, message_id=None, model="p/m"),
    MessageStarted(**OF, role="assistant"),
)
KIB = 1024


def delta(text: str) -> MessageDelta:
    return MessageDelta(**OF, text=text)


def output(text: str) -> ToolOutputDelta:
    return ToolOutputDelta(run=RUN, turn=TURN, item=ItemId("c"), text=text)


def ended(text: str) -> MessageEnded:
    return MessageEnded(**OF, role="assistant", content=(Text(text=text),))


NEXT_RUN = (
    RunEnded(run=RUN, status="completed", usage=USAGE, changes=ChangeCounts()),
    RunStarted(run=RunId("r2"), message_id=None, model="p/m"),
)


async def seen(client: Client, sink: Sink, source: Told) -> list[Json]:
    """Give every value that has come when all that was told has."""
    values: list[Json] = []
    with anyio.fail_after(10):
        while (client.reduced.last or 0) < source.events.newest:
            came = sink.came
            values += sink.values
            client.take(sink)
            if (client.reduced.last or 0) < source.events.newest:
                await came.wait()
    return values


@pytest.mark.parametrize(
    ("detail", "types"),
    [
        ("full", ["message.started", "message.delta", "tool.input.delta", "message.ended"]),
        ("normal", ["message.started", "message.delta", "message.ended"]),
        ("status", ["message.started", "message.ended"]),
    ],
)
async def test_a_client_sees_what_it_asked_for_in_ranges_without_a_hole(
    detail: str, types: list[str]
) -> None:
    source, client = told(None), Client(detail=detail)
    async with client.following(source) as sink:
        await client.reach(sink, 0)
        source.tell(BEGIN[1], delta("a"), delta("b"))
        source.tell(ToolInputDelta(**OF, text="{"), ended("ab"))
        values = await seen(client, sink, source)
        assert source.session.feed.wants_partials is (detail == "full")
    assert [event["type"] for value in values for event in value["events"]] == types


async def test_the_first_delta_goes_out_at_once_and_the_rest_gather() -> None:
    source, client = told(None), Client()
    async with client.following(source) as sink:
        await client.reach(sink, 0)
        source.tell(*BEGIN)
        await client.reach(sink, 2)
        source.tell(delta("first"))
        await client.reach(sink, 3)
        for word in ("one ", "two ", "three"):
            source.tell(delta(word))
            await anyio.lowlevel.checkpoint()
        values = await seen(client, sink, source)
    ((merged,),) = [value["events"] for value in values]
    assert (merged["from"], merged["seq"], merged["text"]) == (4, 6, "one two three")


async def test_a_client_that_reads_nothing_gets_a_gap_the_whole_and_deltas_again_later() -> None:
    source, client = told(None), Client()
    async with client.following(source) as sink:
        await client.reach(sink, 0)
        source.tell(*BEGIN)
        await client.reach(sink, 2)
        sink.reads = anyio.Event()
        text = "x" * (100 * KIB)
        for _ in range(40):
            source.tell(delta(text))
            await anyio.wait_all_tasks_blocked()
        source.tell(ended(text * 40))
        sink.reads.set()
        values = await seen(client, sink, source)
        kinds = [value["kind"] for value in values]
        # Deltas are left out a megabyte at a time; what is left out before the next frame shares one gap.
        assert 1 <= kinds.count("agent/gap") <= len(text) * 40 // READER_BYTES + 1
        assert client.reduced.items["m"]["content"] == [{"type": "text", "text": text * 40}]
        source.tell(MessageStarted(**OF, role="assistant"), delta("unseen"))
        source.tell(*NEXT_RUN, delta("seen"))
        await client.reach(sink, source.events.newest)
    assert client.reduced.items["m"]["text"] == "seen"


async def test_a_flood_of_output_loses_its_middle_and_says_how_much() -> None:
    source, client = told(None), Client()
    async with client.following(source) as sink:
        await client.reach(sink, 0)
        source.tell(*BEGIN)
        await client.reach(sink, 2)
        sink.reads = anyio.Event()
        source.tell(Notice(level="info", text="n" * KIB * KIB))
        await anyio.wait_all_tasks_blocked()
        source.tell(Notice(level="info", text="n" * KIB * KIB))
        await anyio.wait_all_tasks_blocked()
        lines = [f"{number:07d}\n" * 128 for number in range(2_000)]
        for line in lines:
            source.tell(output(line))
        source.tell(ended("done"))
        sink.reads.set()
        values = await seen(client, sink, source)
    outputs = [
        event
        for value in values
        for event in value.get("events", [])
        if event["type"] == "tool.output.delta"
    ]
    whole = "".join(lines)
    assert outputs[0]["text"][:HEAD_CHARS] == whole[:HEAD_CHARS]
    assert outputs[-1]["text"][-TAIL_CHARS:] == whole[-TAIL_CHARS:]
    told_chars = sum(len(one["text"]) + one.get("elided", 0) for one in outputs)
    assert told_chars == len(whole)
    assert client.reduced.gaps == 0


async def test_a_client_that_acknowledges_is_sent_no_more_than_it_has_credit_for() -> None:
    source, client, credit = told(None), Client(), SendWindow()
    async with client.following(source, credit=credit) as sink:
        await client.reach(sink, 0)
        source.tell(*BEGIN)
        for _ in range(40):
            source.tell(delta("x" * 32 * KIB))
            with anyio.move_on_after(0.02):
                await client.reach(sink, source.events.newest)
        held = sum(len(item.get("text", "")) for item in client.reduced.items.values())
        assert UNACKNOWLEDGED_BYTES <= held <= UNACKNOWLEDGED_BYTES + 160 * KIB
        assert client.reduced.last is not None
        while client.reduced.last < source.events.newest:
            credit.acknowledge(client.reduced.last)
            await client.reach(sink, client.reduced.last + 1)
    assert client.reduced.gaps == 0
    assert len(client.reduced.items["m"]["text"]) == 40 * 32 * KIB


async def test_what_matters_does_not_wait_long_for_an_acknowledgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tiller_server.lsp.events.subscription.CREDIT_S", 0.05)
    monkeypatch.setattr("tiller_server.lsp.events.subscription.LOOK_S", 0.05)
    source, client = told(None), Client()
    async with client.following(source, credit=SendWindow()) as sink:
        await client.reach(sink, 0)
        source.tell(*BEGIN, delta("x" * 300 * KIB))
        await client.reach(sink, 3)
        source.tell(delta("more"), Notice(level="info", text="look"))
        await client.reach(sink, 5)
    assert client.reduced.gaps == 1


async def test_a_client_that_takes_nothing_for_too_long_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tiller_server.lsp.events.subscription.LAGGING_S", 0.1)
    monkeypatch.setattr("tiller_server.lsp.events.subscription.LOOK_S", 0.05)
    source, client = told(None), Client()
    async with client.following(source) as sink:
        await client.reach(sink, 0)
        sink.reads = anyio.Event()
        for _ in range(3):
            source.tell(Notice(level="info", text="n" * KIB * KIB))
            await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            await client.left.wait()
    assert client.reasons == ["lagging"]


async def test_a_quiet_session_gives_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiller_server.lsp.events.subscription.HEARTBEAT_S", 0.05)
    source, client = told(None), Client()
    async with client.following(source) as sink:
        with anyio.fail_after(5):
            while [value["kind"] for value in sink.values][-2:] != ["agent/heartbeat"] * 2:
                await sink.came.wait()


async def test_an_item_goes_on_where_the_snapshot_left_it() -> None:
    source, late = told(None), Client()
    source.tell(*BEGIN, delta("said "), delta("so far "))
    async with late.following(source) as sink:
        await late.reach(sink, 0)
        source.tell(delta("and on"))
        await late.reach(sink, source.events.newest)
        assert late.reduced.now()["items"]["m"]["words"] == "said so far and on"


async def test_one_who_missed_nothing_hears_so_at_once() -> None:
    source, client = told(None), Client()
    async with client.following(source) as sink:
        source.tell(*BEGIN)
        await client.reach(sink, 2)
    async with client.following(source) as sink:
        with anyio.fail_after(5):
            await sink.came.wait()
        assert [(value["kind"], value["seq"]) for value in sink.values] == [("agent/heartbeat", 2)]
