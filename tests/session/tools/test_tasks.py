"""Tasks: they work in sessions of their own, within the rights of the one that gave them, and report once."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from agent_core.events import (
    Budgets,
    PermissionRequested,
    RunEnded,
    RunParent,
    RunStarted,
    TaskCreated,
    TaskEnded,
    TaskInfo,
)
from agent_core.hooks import GoOn, Hook, HookTable, ToolBegun
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ToolError
from agent_core.messages import CustomMessage, ToolResultMessage, Usage, text_of
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.tools.task_port import TaskOpening
from agent_core.storage import SessionStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools.builtin import builtin_tools
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say
from tests.support.session.sessions import Bench, bench, words
from tests.support.session.task_sessions import JournalStore, ScriptedTasks

Answer = Callable[[TaskOpening], ScriptedModel]
USED = Usage(input=100, output=10)


def give(prompt: str, *, id: str = "c1", **more: Any) -> Any:  # noqa: A002 - reads as the wire does
    arguments = {"description": f"do {prompt}", "prompt": prompt, **more}
    return call("task", arguments, id=id, usage=USED)


def answers(*texts: str) -> Answer:
    """Make a model that answers each task with the next text."""
    left = list(texts)
    return lambda _: ScriptedModel([say(left.pop(0), usage=USED)])


@asynccontextmanager
async def ground(
    *turns: Any, tasks: Answer, store: SessionStore | None = None, **more: Any
) -> AsyncGenerator[tuple[Bench, ScriptedTasks]]:
    """Open a session that can give tasks."""
    store = store or MemoryStore()
    sessions = ScriptedTasks(store, tasks)
    tools = builtin_tools(
        task_presets=lambda: [*_presets(sessions)], had_tasks=lambda: sessions.had_background
    )
    async with bench(ScriptedModel(turns), tools=tools, store=store, tasks=sessions, **more) as it:
        sessions.deps = it.deps
        yield it, sessions


def _presets(sessions: ScriptedTasks) -> Sequence[Any]:
    return sessions.agents()


async def ask(it: Bench, text: str = "go") -> list[str]:
    await it.session.prompt(text)
    _ = await it.idle()
    return it.results()


def reports(it: Bench) -> list[str]:
    """Return the texts with which the model was told of ends of tasks."""
    told = [one for one in it.messages if isinstance(one, CustomMessage | ToolResultMessage)]
    return [text_of(one.content) for one in told if "Task t" in text_of(one.content)]


def ended(it: Bench) -> list[TaskInfo]:
    return [event.task for event in it.seen() if isinstance(event, TaskEnded)]


async def test_a_call_returns_the_report_of_its_task() -> None:
    turns = (give("look", preset="explore"), say("Thanks.", usage=USED))
    async with ground(*turns, tasks=answers("It is in a.py:3.")) as (it, sessions):
        assert await ask(it) == ["Task t1 (do look) completed.\nIts report:\nIt is in a.py:3."]
        (task,) = ended(it)
        assert (task.id, task.state, task.preset, task.turns) == ("t1", "completed", "explore", 1)
        assert task.tokens == USED.total
        assert sessions.open_sessions == 0
        # Everything that it used belongs to the session that gave it.
        assert it.session.info.snapshot().usage.tokens.total == 3 * USED.total
        stored = await sessions.read(task.session)
        assert stored.header.id == task.session


async def test_the_events_of_a_task_name_the_session_that_gave_it() -> None:
    async with ground(give("look"), say("Done."), tasks=answers("All is well.")) as (it, tasks):
        tasks.readers = []
        _ = await ask(it)
        (created,) = [event.task for event in it.seen() if isinstance(event, TaskCreated)]
        assert created.item is not None
        (reader,) = tasks.readers
        runs = [
            one.event for one in reader.take_now() if isinstance(one.event, RunStarted | RunEnded)
        ]
        assert [type(one) for one in runs] == [RunStarted, RunEnded]
        assert [one.parent for one in runs] == [
            RunParent(session=it.session.id, item=created.item)
        ] * 2
        own = [one for one in it.seen() if isinstance(one, RunStarted | RunEnded)]
        assert [one.parent for one in own] == [None, None]


async def test_tasks_of_one_answer_run_side_by_side() -> None:
    gates = [Gate(), Gate(), Gate()]
    texts = iter(zip(gates, ("one", "two", "three"), strict=True))

    def model(_: TaskOpening) -> ScriptedModel:
        gate, text = next(texts)
        return ScriptedModel([(gate, *say(text))])

    turn = both(give("a"), give("b", id="c2"), give("c", id="c3"))
    async with ground(turn, say("Done."), tasks=model) as (it, _):
        await it.session.prompt("go")
        for gate in gates:
            with anyio.fail_after(5):
                await gate.reached.wait()
        for gate in reversed(gates):
            gate.release()
        _ = await it.idle()
        assert [text.rpartition("\n")[2] for text in it.results()] == ["one", "two", "three"]


async def test_tasks_of_one_answer_are_numbered_in_its_order() -> None:
    second, table = anyio.Event(), HookTable()

    async def hold(begun: ToolBegun, _: object) -> GoOn:
        if begun.arguments["description"] == "do a":
            await second.wait()
        else:
            second.set()
        return GoOn()

    table.add(Hook("hold", hold), at=ToolBegun)
    turn = both(give("a"), give("b", id="c2"))
    async with ground(turn, say("Done."), tasks=answers("one", "two"), hooks=table) as (it, _):
        assert [text.partition(" c")[0] for text in await ask(it)] == [
            "Task t1 (do a)",
            "Task t2 (do b)",
        ]
        assert [(one.id, one.description) for one in it.session.tasks.list()] == [
            ("t1", "do a"),
            ("t2", "do b"),
        ]


async def test_a_background_task_wakes_an_idle_session_and_reports_once() -> None:
    gate = Gate()
    turns = (give("look", background=True), say("Started."), say("I heard."))
    model = ScriptedModel([(gate, *say("Found it."))])
    async with ground(*turns, tasks=lambda _: model) as (it, _):
        (started,) = await ask(it)
        assert started.startswith("Task t1 (do look) is ")
        gate.release()
        _ = await it.until(RunEnded, 2)
        assert it.model.turns_left == 0
        (_, report) = reports(it)
        assert report == (
            "[Report of Tiller, not of the user] Task t1 (do look) completed.\n"
            "Its report:\nFound it."
        )
        assert words(it.messages[-1]) == "I heard."


async def test_a_task_that_is_waited_for_can_be_moved_to_the_background() -> None:
    gate = Gate()
    model = ScriptedModel([(gate, *say("Found it."))])
    turns = (give("look"), say("I go on."), say("I heard."))
    async with ground(*turns, tasks=lambda _: model) as (it, _):
        await it.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        assert it.session.move_to_background()
        _ = await it.idle()
        assert it.results()[0].startswith("The user moved task t1 (do look) to the background.")
        gate.release()
        _ = await it.until(RunEnded, 2)
        assert [one for one in reports(it) if "Found it." in one]
        assert it.model.turns_left == 0


async def test_the_minutes_of_a_run_do_not_end_a_task_that_outlives_it() -> None:
    gate = Gate()
    model = ScriptedModel([(gate, *call("ls")), say("Found it.")])
    turns = (give("look", background=True), say("Started."), say("I heard."))
    budgets = Budgets(minutes=0.5)
    async with ground(*turns, tasks=lambda _: model, budgets=budgets) as (it, _):
        _ = await ask(it)
        assert isinstance(it.clock, FakeClock)
        it.clock.advance(3600)
        gate.release()
        _ = await it.until(TaskEnded)
        assert [one.state for one in ended(it)] == ["completed"]


async def test_a_report_arrives_at_the_next_turn_of_a_run() -> None:
    over = Gate()
    turns = (
        give("look", background=True),
        both((over,), call("task_list", id="c2")),
        say("I know."),
    )
    async with ground(*turns, tasks=answers("Found it.")) as (it, _):
        await it.session.prompt("go")
        _ = await it.until(TaskEnded)
        over.release()
        _ = await it.idle()
        assert it.model.turns_left == 0
        assert len([one for one in reports(it) if "Found it." in one]) == 1
        assert "Found it." in str(it.model.requests[-1].messages)


async def test_a_cancelled_run_stops_the_tasks_that_it_waits_for_and_no_others() -> None:
    gates = {"kept": Gate(), "stopped": Gate()}

    def model(opening: TaskOpening) -> ScriptedModel:
        gate = gates["kept" if opening.id == "t1" else "stopped"]
        return ScriptedModel([(gate, *say("Over."))])

    turn = both(give("kept", background=True), give("stopped", id="c2"))
    async with ground(turn, say("So."), tasks=model) as (it, _):
        await it.session.prompt("go")
        with anyio.fail_after(5):
            await gates["stopped"].reached.wait()
        _ = await it.session.abort()
        assert [(one.id, one.state) for one in ended(it)] == [("t2", "cancelled")]
        gates["kept"].release()
        _ = await it.until(TaskEnded, 2)
        _ = await it.idle()
        # The user stopped the run: it does not go on by itself.
        assert it.model.turns_left == 1
        assert [(one.id, one.state) for one in ended(it)][1:] == [("t1", "completed")]


async def test_rights_of_a_task_are_those_of_its_giver_at_each_moment() -> None:
    gate = Gate()
    standing = PermissionState(mode="yolo")
    model = ScriptedModel(
        [(gate, *call("write", {"path": "a.txt", "content": "x"})), say("I could not.")]
    )
    turns = (give("write"), say("So."))
    async with ground(*turns, tasks=lambda _: model, standing=standing) as (it, _):
        await it.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        standing.mode = "plan"
        gate.release()
        _ = await it.idle()
        assert "plan" in str(model.requests[-1].messages[-1])
        assert not it.session.info.snapshot().changes.files


async def test_permission_is_asked_in_the_session_that_gave_the_task() -> None:
    model = ScriptedModel(
        [call("write", {"path": ".vscode/tasks.json", "content": "x"}), say("Wrote it.")]
    )
    turns = (give("write"), say("So."))
    async with ground(*turns, tasks=lambda _: model, mode="ask") as (it, _):
        await it.session.prompt("go")
        asked = await it.until(PermissionRequested)
        assert isinstance(asked, PermissionRequested)
        assert asked.request.title.startswith("Task t1 (do write): ")
        assert asked.request.session == it.session.id
        _ = it.session.permissions.answer(
            asked.request.request, asked.request.options[0].id, by="test"
        )
        _ = await it.idle()
        assert it.session.info.snapshot().changes.files == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"preset": "nobody"}, "There is no agent 'nobody'; there are: general, explore, review."),
        ({"prompt": "  "}, "The prompt of the task is empty: write what is to be done."),
    ],
)
async def test_a_task_that_cannot_be_is_refused_in_one_sentence(
    more: dict[str, Any], says: str
) -> None:
    asked = {"description": "x", "prompt": "y", **more}
    async with ground(call("task", asked), say("So."), tasks=answers()) as (it, sessions):
        assert await ask(it) == [says]
        assert sessions.open_sessions == 0


async def test_a_task_gives_no_tasks() -> None:
    model = ScriptedModel([give("deeper", id="c9"), say("Alone.")])
    async with ground(give("go down"), say("So."), tasks=lambda _: model) as (it, _):
        _ = await ask(it)
        assert "Tool task not found" in str(model.requests[-1].messages[-1])


async def test_the_budget_is_one_for_the_run_and_its_tasks() -> None:
    def model(_: TaskOpening) -> ScriptedModel:
        return ScriptedModel([call("ls", usage=USED), call("ls", usage=USED), say("No.")])

    budgets = Budgets(tokens=3 * USED.total)
    async with ground(give("a"), say("So."), tasks=model, budgets=budgets) as (it, _):
        _ = await ask(it)
        (task,) = ended(it)
        assert (task.state, task.turns) == ("budget", 2)
        assert "stopped at its budget" in it.results()[0]
        assert it.session.info.snapshot().usage.tokens.total == 3 * USED.total


@pytest.mark.parametrize("calls_paid", [2, 3, 4])
async def test_tasks_side_by_side_exceed_a_budget_by_one_call_at_most(calls_paid: int) -> None:
    models: list[ScriptedModel] = []

    def model(_: TaskOpening) -> ScriptedModel:
        models.append(ScriptedModel([say("done", usage=USED)]))
        return models[-1]

    given = both(give("a", id="c1"), give("b", id="c2"))
    budgets = Budgets(tokens=calls_paid * USED.total + 1)
    async with ground(given, say("So.", usage=USED), tasks=model, budgets=budgets) as (it, _):
        results = await ask(it)
        asked = len(it.model.requests) + sum(len(one.requests) for one in models)
        # The answer with the two tasks is worth two calls.
        assert asked == calls_paid
        assert it.session.info.snapshot().usage.tokens.total == (calls_paid + 1) * USED.total
        stopped = [one for one in results if "stopped at its budget" in one]
        assert len(stopped) == (1 if calls_paid == 2 else 0)


async def test_a_lost_task_is_reported_when_the_session_is_opened_again_and_can_be_continued() -> (
    None
):
    store, gate = MemoryStore(), Gate()
    stuck = ScriptedModel([(gate, *say("never"))])
    turns = (give("look", background=True), say("Started."))
    async with ground(*turns, tasks=lambda _: stuck, store=store) as (it, _):
        _ = await ask(it)
        with anyio.fail_after(5):
            await gate.reached.wait()
    model = ScriptedModel([say("Found after all.")])
    opened = await store.open(SessionId("s-1"))
    async with ground(say("Good."), tasks=lambda _: model, store=store, opened=opened) as (it, _):
        (_, lost) = reports(it)
        assert "was interrupted when Tiller was closed" in lost
        (task,) = it.session.tasks.list()
        assert (task.id, task.state) == ("t1", "lost")
        _ = await it.session.tasks.resume("t1")
        _ = await it.until(RunEnded)
        assert "Found after all." in reports(it)[-1]
        with pytest.raises(ToolError, match="only a task that was lost"):
            _ = await it.session.tasks.resume("t1")


async def test_whatever_moment_the_process_dies_each_report_is_delivered_once() -> None:
    """Three tasks, two of them waited for; the process is killed after every single write."""
    store = JournalStore()

    def model(opening: TaskOpening) -> ScriptedModel:
        looks = [call("ls", {"limit": n + 1}, usage=USED) for n in range(16)]
        return ScriptedModel([*looks, say(f"R{opening.id}", usage=USED)])

    turns = (
        both(give("a", background=True), give("b", id="c2"), give("c", id="c3")),
        say("So.", usage=USED),
        *[say("Heard.", usage=USED)] * 2,
    )
    async with ground(*turns, tasks=model, store=store) as (it, _):
        _ = await ask(it)
        _ = await it.until(TaskEnded, 3)
        _ = await it.idle()
    points = [at for at in range(1, len(store.journal) + 1) if not _is_empty(store, at)]
    assert len(points) > 100
    for at in points:
        await _check_killed(await store.cut(at), at)


def _is_empty(store: JournalStore, at: int) -> bool:
    return all(is_task for _, is_task, _ in store.journal[:at])


async def _check_killed(store: JournalStore, at: int) -> None:
    """Open what a kill left twice: the second time finds nothing more to report."""
    usages: list[int] = []
    for _ in range(2):
        opened = await store.open(SessionId("s-1"))
        spare = [say("Heard.")] * 3
        async with ground(*spare, tasks=answers(), store=store, opened=opened) as (it, _):
            tasks = it.session.tasks.list()
            counts = {one.id: 0 for one in tasks}
            for text in reports(it):
                for id_ in counts:
                    states = ("completed", "was interrupted")
                    counts[id_] += any(
                        f"Task {id_} (do {n}) {s}" in text for n in "abc" for s in states
                    )
            assert counts == dict.fromkeys(counts, 1), (at, reports(it))
            usages.append(it.session.info.snapshot().usage.tokens.total)
    assert usages[0] == usages[1], at
