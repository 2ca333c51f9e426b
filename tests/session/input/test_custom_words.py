"""The words of programs: when they enter the conversation, and that none are lost."""

from collections.abc import Sequence

import pytest

from agent_core.events import MessageEnded, MessageStarted, QueueChanged
from agent_core.hooks import (
    GoOn,
    Hook,
    HookTable,
    InputHandled,
    InputOutcome,
    InputTyped,
    RunOutcome,
    RunPrepared,
    RunPreparing,
)
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ModelUnknown, SessionClosed, StorageUnavailable, UsageError
from agent_core.messages import CustomMessage, Message, Text, ToolResultMessage
from agent_core.session.input.submission import AddDelivery
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript.entries import AnyEntry, CustomMessageEntry, Header
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench, unmarked, words
from tests.support.workspace.tools import Hold, echo


def shown(b: Bench) -> list[str]:
    """Give the conversation: a program's words in angle brackets."""
    return [_shown(one) for one in b.messages]


def _shown(message: Message) -> str:
    if isinstance(message, CustomMessage):
        return f"<{message.custom_type}: {words(message)}>"
    return words(message)


def customs(b: Bench) -> list[MessageEnded]:
    """Give what was told of programs' words."""
    return [one for one in b.seen() if isinstance(one, MessageEnded) and one.role == "custom"]


async def as_it_is(store: MemoryStore, other: MemoryStore) -> None:
    """Keep the session in another store as a process would find it that is started now."""
    stored = await store.read(SessionId("s-1"))
    log = await other.create(stored.header)
    await log.append(stored.entries)
    await log.close()


# Without a turn.


async def test_they_are_appended_at_once_when_nothing_goes_on() -> None:
    async with bench(ScriptedModel([say("ok")])) as b:
        receipt = await b.session.add("note", custom_type="todo", details={"n": 1})
        assert (receipt.accepted, receipt.run) == ("added", None)
        (entry,) = b.session.info.entries
        assert isinstance(entry, CustomMessageEntry)
        assert (entry.custom_type, entry.display, entry.details) == ("todo", True, {"n": 1})
        assert b.names() == ["message.started", "message.ended"]
        started, ended = b.seen()
        assert isinstance(started, MessageStarted)
        assert isinstance(ended, MessageEnded)
        assert (started.run, started.role) == (None, "custom")
        assert (ended.run, ended.custom_type, ended.entry) == (None, "todo", entry.id)
        assert b.model.requests == []
        await b.session.prompt("go")
        await b.idle()
        assert shown(b) == ["<todo: note>", "go", "ok"]


async def test_in_a_run_they_wait_for_the_turns_end_and_never_split_a_call_from_its_result() -> (
    None
):
    hold = Hold()
    async with bench(ScriptedModel([call("hold"), say("done")]), tools=[hold.tool]) as b:
        receipt = await b.session.prompt("go")
        await hold.entered.wait()
        added = await b.session.add("note", custom_type="todo")
        assert (added.accepted, added.run) == ("held", receipt.run)
        assert not any(isinstance(one, CustomMessage) for one in b.messages)
        hold.release.set()
        await b.idle()
        assert shown(b) == ["go", "", "held", "<todo: note>", "done"]
        assert [one.run for one in customs(b)] == [receipt.run]
        # They began no turn: there was one because of the call.
        assert len(b.model.requests) == 2


async def test_in_the_last_turn_they_come_at_the_runs_end_and_begin_nothing() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("done"))])) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.add("note", custom_type="todo")
        gate.release()
        await b.idle()
        assert shown(b) == ["go", "done", "<todo: note>"]
        assert b.names()[-2:] == ["run.ended", "session.state"]
        assert len(b.model.requests) == 1


async def test_after_a_cancelled_run_they_come_behind_its_results() -> None:
    hold = Hold()
    async with bench(ScriptedModel([call("hold")]), tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        await b.session.add("note", custom_type="todo")
        await b.session.abort()
        assert isinstance(unmarked(b.messages)[-2], ToolResultMessage)
        assert shown(b)[-2] == "<todo: note>"


# With a turn.


@pytest.mark.parametrize("delivery", ["steer", "followUp"])
async def test_they_begin_a_run_when_nothing_goes_on(delivery: AddDelivery) -> None:
    async with bench(ScriptedModel([say("ok")])) as b:
        receipt = await b.session.add("do it", custom_type="cron", delivery=delivery)
        assert receipt.accepted == "started"
        await b.idle()
        assert shown(b) == ["<cron: do it>", "ok"]
        assert [(one.custom_type, one.delivery) for one in customs(b)] == [("cron", "prompt")]


async def test_steering_words_are_said_inside_the_run() -> None:
    hold = Hold(kind="read")
    model = ScriptedModel([call("hold"), say("done")])
    async with bench(model, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        receipt = await b.session.add("look here", custom_type="watch", delivery="steer")
        assert receipt.accepted == "steered"
        hold.release.set()
        await b.idle()
        assert shown(b) == ["go", "", "held", "<watch: look here>", "done"]


async def test_follow_ups_are_said_when_the_run_has_nothing_left_to_do() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("first")), say("second")])) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        receipt = await b.session.add("more", custom_type="cron", delivery="followUp")
        assert receipt.accepted == "queued"
        gate.release()
        await b.idle()
        assert shown(b) == ["go", "first", "<cron: more>", "second"]


async def test_they_are_no_part_of_the_users_queue() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("x"))])) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.add("more", custom_type="cron", delivery="followUp")
        await b.session.follow_up("mine")
        assert [words_of(item.content) for item in b.session.info.snapshot().queue] == ["mine"]
        result = await b.session.abort(queue="return")
        assert [words_of(item.content) for item in result.returned] == ["mine"]
        changes = [one for one in b.seen() if isinstance(one, QueueChanged)]
        assert (changes[-1].queue, changes[-1].paused) == ((), True)
        # The program's words stay until the user speaks again.
        b.model.add(say("a"), say("b"))
        await b.session.prompt("again")
        await b.idle()
        assert shown(b)[-4:] == ["again", "a", "<cron: more>", "b"]


def words_of(content: tuple[object, ...]) -> str:
    return "".join(getattr(part, "text", "") for part in content)


async def test_the_input_hooks_are_asked_about_the_users_words_alone() -> None:
    typed: list[InputTyped] = []
    table = HookTable()

    async def look(point: InputTyped, _: object) -> InputOutcome:
        typed.append(point)
        return GoOn()

    table.add(Hook("look", look), at=InputTyped)
    async with bench(ScriptedModel([say("ok")]), hooks=table) as b:
        await b.session.add("do it", custom_type="cron", delivery="steer")
        await b.idle()
        assert typed == []


# Beside the user's next prompt.


async def test_they_are_said_beside_the_users_next_prompt_and_once() -> None:
    async with bench(ScriptedModel([say("a"), say("b")])) as b:
        receipt = await b.session.add("ctx", custom_type="ide", delivery="nextTurn")
        assert (receipt.accepted, b.messages, b.seen()) == ("held", (), [])
        first = await b.session.prompt("one")
        await b.idle()
        await b.session.prompt("two")
        await b.idle()
        assert shown(b) == ["one", "<ide: ctx>", "a", "two", "b"]
        assert [(one.run, one.delivery) for one in customs(b)] == [(first.run, "nextTurn")]
        assert b.names().index("run.started") < b.names().index("message.started")


async def test_a_run_begins_with_the_users_words_then_these_then_those_of_hooks() -> None:
    async def prepare(_: object, __: object) -> RunOutcome:
        text = (Text(text="hooked"),)
        return RunPrepared(messages=(CustomMessage(custom_type="h", content=text, at_ms=1),))

    table = HookTable()
    table.add(Hook("prepare", prepare), at=RunPreparing)
    async with bench(ScriptedModel([say("ok")]), hooks=table) as b:
        await b.session.add("one", custom_type="p", delivery="nextTurn")
        await b.session.add("two", custom_type="p", delivery="nextTurn")
        await b.session.prompt("go")
        await b.idle()
        assert shown(b) == ["go", "<p: one>", "<p: two>", "<h: hooked>", "ok"]


async def test_added_in_a_run_they_wait_for_the_prompt_after_it() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b"), say("c")])) as b:
        await b.session.prompt("one")
        await gate.reached.wait()
        await b.session.add("ctx", custom_type="ide", delivery="nextTurn")
        await b.session.steer("inside")
        gate.release()
        await b.idle()
        assert shown(b) == ["one", "a", "inside", "b"]
        await b.session.prompt("two")
        await b.idle()
        assert shown(b)[-3:] == ["two", "<ide: ctx>", "c"]


async def test_a_prompt_that_a_hook_deals_with_leaves_them_waiting() -> None:
    async def deal(point: InputTyped, _: object) -> InputOutcome:
        return InputHandled() if words_of(point.content) == "/help" else GoOn()

    table = HookTable()
    table.add(Hook("deal", deal), at=InputTyped)
    async with bench(ScriptedModel([say("ok")]), hooks=table) as b:
        await b.session.add("ctx", custom_type="ide", delivery="nextTurn")
        await b.session.prompt("/help")
        await b.idle()
        assert shown(b) == []
        await b.session.prompt("go")
        await b.idle()
        assert shown(b) == ["go", "<ide: ctx>", "ok"]


async def test_words_of_a_program_do_not_take_them_along() -> None:
    async with bench(ScriptedModel([say("ok")])) as b:
        await b.session.add("ctx", custom_type="ide", delivery="nextTurn")
        await b.session.add("do it", custom_type="cron", delivery="steer")
        await b.idle()
        assert shown(b) == ["<cron: do it>", "ok"]


# What is hidden, wrong, or survives.


@pytest.mark.parametrize("delivery", ["append", "steer", "nextTurn"])
async def test_hidden_words_reach_the_model_and_are_not_told(delivery: AddDelivery) -> None:
    async with bench(ScriptedModel([say("a"), say("b")])) as b:
        await b.session.add("psst", custom_type="ide", delivery=delivery, display=False)
        await b.idle()
        await b.session.prompt("go")
        await b.idle()
        assert customs(b) == []
        assert "psst" in repr(b.model.requests[-1].messages)


@pytest.mark.parametrize(
    ("content", "custom_type", "match"),
    [("x", " ", "custom_type is ' '"), (" ", "todo", "the prompt is empty")],
    ids=["no type", "no words"],
)
async def test_words_that_say_nothing_of_themselves_are_refused(
    content: str, custom_type: str, match: str
) -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(UsageError, match=match):
            await b.session.add(content, custom_type=custom_type)
        assert b.session.info.entries == ()


async def test_without_a_model_they_can_be_added_but_start_nothing() -> None:
    async with bench(ScriptedModel(), usable=False) as b:
        with pytest.raises(ModelUnknown):
            await b.session.add("x", custom_type="todo", delivery="steer")
        assert (await b.session.add("x", custom_type="todo")).accepted == "added"
    with pytest.raises(SessionClosed):
        await b.session.add("x", custom_type="todo")


DELIVERIES: dict[AddDelivery, list[str]] = {
    "append": ["go", "", "Interrupted", "<p: w>"],
    "steer": ["go", "", "Interrupted"],
    "followUp": ["go", "", "Interrupted"],
    "nextTurn": ["go", "", "Interrupted"],
}


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_once_acknowledged_they_survive_the_process(delivery: AddDelivery) -> None:
    store, again, hold = MemoryStore(), MemoryStore(), Hold()
    async with bench(ScriptedModel([call("hold")]), store=store, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        await b.session.add("w", custom_type="p", delivery=delivery, details=[1])
        await as_it_is(store, again)
        await b.session.abort()
    model = ScriptedModel([say("a"), say("b")])
    later = MemoryStore()
    opened = await again.open(SessionId("s-1"))
    async with bench(model, opened=opened, tools=[echo("hold")]) as b:
        assert [one.split(":")[0] if one.startswith("I") else one for one in shown(b)] == (
            DELIVERIES[delivery]
        )
        await b.session.prompt("on")
        await b.idle()
        assert shown(b).count("<p: w>") == 1
        (said,) = [one for one in b.messages if isinstance(one, CustomMessage)]
        assert (said.display, said.details) == (True, [1])
        await as_it_is(again, later)
    async with bench(ScriptedModel([say("c")]), opened=await later.open(SessionId("s-1"))) as b:
        await b.session.prompt("later")
        await b.idle()
        assert shown(b).count("<p: w>") == 1


class FullDisk:
    """A log whose disk is full."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.location = None
        self.attachments = None

    async def append(self, entries: object) -> None:
        raise StorageUnavailable("the disk is full")

    async def load(self, entries: object) -> tuple[()]:
        return ()

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        return tuple(entries)

    async def sync(self) -> None:
        return

    async def close(self) -> None:
        return


@pytest.mark.parametrize("delivery", ["append", "nextTurn", "steer"])
async def test_what_the_disk_does_not_take_is_refused_and_not_kept(delivery: AddDelivery) -> None:
    log = FullDisk(Header(id=SessionId("s-1"), at_ms=0, cwd="/project"))
    opened = OpenedSession(log=log, entries=(), recovery=Recovery())
    async with bench(ScriptedModel(), opened=opened) as b:
        with pytest.raises(StorageUnavailable):
            await b.session.add("w", custom_type="p", delivery=delivery)
        assert b.session.info.entries == ()
        assert b.session.info.snapshot().state == "idle"
