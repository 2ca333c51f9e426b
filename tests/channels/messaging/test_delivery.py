"""The outbox on a platform with faults: each message once, in order, within the rates, or visibly dead."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from agent_core.channels.messaging.port import (
    ApprovalOption,
    ApprovalPrompt,
    Outcome,
    Settlement,
    Target,
)
from agent_core.channels.messaging.store import approvals, bindings, inbox, outbox
from agent_core.channels.messaging.store.database import Transaction
from agent_core.channels.messaging.store.outbox import (
    AskApproval,
    FinishAnswer,
    OpenAnswer,
    OutboxBody,
    PostText,
    SetReaction,
    SettleApproval,
)
from tests.support.channels.memory_platform import CAPABILITIES, Fault, FaultKind, MemoryPlatform
from tests.support.channels.timeline import Timeline, timeline

HOUR_S = 3600.0
PROMPT = ApprovalPrompt(
    request="p-1",
    title="Run npm install",
    body="npm install",
    options=(ApprovalOption(id="once", label="Allow once"),),
    digest="0" * 16,
    code="7f3a",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.sqlite3"


async def put(line: Timeline, body: OutboxBody, key: str, *, chat: str = "dm") -> None:
    now_ms = line.clock.now_ms()
    await line.write(lambda tx: outbox.add(tx, body, key=key, chat=chat, now_ms=now_ms))


async def post(line: Timeline, text: str, *, chat: str = "dm") -> None:
    await put(line, PostText(text=text), f"key {text}", chat=chat)


async def states(line: Timeline) -> list[str]:
    def read(tx: Transaction) -> list[str]:
        return [row[0] for row in tx.execute("SELECT state FROM outbox ORDER BY id").fetchall()]

    return await line.database.run(read)


async def test_a_hundred_messages_keep_their_order_and_the_rate_of_the_chat(path: Path) -> None:
    async with timeline(path) as line:
        for number in range(100):
            await post(line, str(number), chat="team")
        await line.run_for(60)
        assert line.platform.texts("team") == [str(number) for number in range(100)]
        times = [call.at_s for call in line.platform.calls]
        assert rate_of(times) <= CAPABILITIES.chat_rate
        assert times[-1] - times[0] < 100 / CAPABILITIES.chat_rate + 1


async def test_the_rate_of_the_app_holds_over_all_chats(path: Path) -> None:
    async with timeline(path, capabilities=replace(CAPABILITIES, app_rate=10)) as line:
        for number in range(60):
            await post(line, str(number), chat=f"dm-{number}")
        await line.run_for(30)
        assert await states(line) == ["sent"] * 60
        assert rate_of([call.at_s for call in line.platform.calls]) <= 10


def rate_of(times: list[float]) -> int:
    """Return the most calls in any second."""
    return max(sum(start <= at < start + 0.999 for at in times) for start in times)


@pytest.mark.parametrize("kind", ["delayed", "uncertain", "applied"])
async def test_a_fault_that_passes_is_repeated_with_the_same_key_until_it_is_sent_once(
    path: Path, kind: FaultKind
) -> None:
    async with timeline(path) as line:
        line.platform.faults.append(Fault(method="post", kind=kind, times=5))
        await post(line, "first")
        await post(line, "second")
        await line.run_for(600)
        assert line.platform.texts() == ["first", "second"]
        assert await states(line) == ["sent", "sent"]
        assert {call.method for call in line.platform.calls} == {"post"}
        assert len(line.platform.calls) == 7


async def test_a_platform_that_states_a_time_is_left_alone_until_then(path: Path) -> None:
    async with timeline(path) as line:
        line.platform.faults.append(Fault(method="post", kind="delayed", retry_after_s=90))
        await post(line, "first")
        await line.run_for(89)
        assert len(line.platform.calls) == 1
        await line.run_for(5)
        assert line.platform.texts() == ["first"]


@pytest.mark.parametrize("kind", ["uncertain", "applied"])
async def test_past_the_key_window_a_message_is_looked_for_before_it_is_sent_again(
    path: Path, kind: FaultKind
) -> None:
    async with timeline(path, capabilities=replace(CAPABILITIES, key_window_s=0.1)) as line:
        line.platform.faults.append(Fault(method="post", kind=kind))
        await post(line, "first")
        await line.run_for(60)
        assert line.platform.texts() == ["first"]
        methods = [call.method for call in line.platform.calls]
        assert methods == ["post", "find_sent"] + (["post"] if kind == "uncertain" else [])


async def test_a_message_that_cannot_be_looked_for_is_dead_rather_than_sent_twice(
    path: Path,
) -> None:
    limits = replace(CAPABILITIES, key_window_s=0, history=False)
    async with timeline(path, capabilities=limits) as line:
        line.platform.faults.append(Fault(method="post", kind="applied"))
        await post(line, "first")
        await line.run_for(60)
        assert line.platform.texts() == ["first"]
        (dead,) = await line.database.run(lambda tx: outbox.dead(tx, limit=9))
        assert dead.reason == "it may have been sent, and the platform cannot be asked"


async def test_a_refusal_for_good_is_dead_and_holds_up_nothing(path: Path) -> None:
    async with timeline(path) as line:
        line.platform.faults.append(Fault(method="post", kind="impossible"))
        await post(line, "first")
        await post(line, "second")
        await line.run_for(5)
        assert line.platform.texts() == ["second"]
        assert await states(line) == ["dead", "sent"]


async def test_a_platform_that_is_away_for_more_than_a_day_has_dead_messages(path: Path) -> None:
    async with timeline(path) as line:
        line.platform.faults.append(Fault(method="*", kind="delayed", times=10_000))
        await post(line, "first")
        await line.run_for(23 * HOUR_S)
        assert await states(line) == ["pending"]
        await line.run_for(2 * HOUR_S)
        assert await states(line) == ["dead"]
        (dead,) = await line.database.run(lambda tx: outbox.dead(tx, limit=9))
        assert "the platform is busy" in dead.reason
        assert len(line.platform.calls) < 25 * 3600 / 30


@pytest.mark.parametrize("was_applied", [False, True])
async def test_a_process_that_ended_while_it_sent_sends_once(
    path: Path, *, was_applied: bool
) -> None:
    async with timeline(path) as line:
        line.platform.faults.append(Fault(method="post", kind="impossible", times=1000))
        await post(line, "first")
        await line.run_for(1)

        def interrupt(tx: Transaction) -> None:
            tx.execute("UPDATE outbox SET state = 'sending', tried_ms = ?", (line.clock.now_ms(),))

        await line.database.run(interrupt)
        line.platform.faults.clear()
        platform = line.platform
    if was_applied:
        apply_first(platform)
    async with timeline(path, platform=platform) as line:
        await line.run_for(5)
        assert line.platform.texts() == ["first"]
        assert await states(line) == ["sent"]


def apply_first(platform: MemoryPlatform) -> None:
    """Apply the message of the former process."""
    platform.add(Target(chat="dm"), "key first", in_thread=False, reply_to=None, text="first")


async def test_a_reaction_that_fails_is_dropped_and_holds_up_nothing(path: Path) -> None:
    async with timeline(path) as line:
        message = line.platform.write("hello")
        line.platform.faults.append(Fault(method="react", kind="uncertain", times=10_000))
        await put(line, SetReaction(message=message.key, reaction="started"), "r")
        await post(line, "answer")
        await line.run_for(200)
        assert line.platform.texts() == ["answer"]
        assert await states(line) == ["sent", "sent"]


async def stream(line: Timeline, texts: list[str], *, every_s: float, outcome: Outcome) -> None:
    """Show a run whose text grows, and finish it."""
    await put(line, OpenAnswer(run="r-1"), "open")
    for text in texts:
        line.sender.live.show("r-1", text)
        await line.run_for(every_s)
    await put(line, FinishAnswer(run="r-1", text=texts[-1], outcome=outcome), "finish")
    await line.run_for(5)


async def test_a_run_of_twelve_minutes_is_shown_whole_and_at_intervals(path: Path) -> None:
    texts = ["word " * number for number in range(1, 721)]
    async with timeline(path) as line:
        await stream(line, texts, every_s=1, outcome="completed")
        (answer,) = line.platform.ours()
        assert (answer.text, answer.outcome) == (texts[-1], "completed")
        assert len(answer.texts) > 600
        times = [call.at_s for call in line.platform.calls if call.method == "set_text"]
        spaces = [later - at for at, later in pairwise(times)]
        assert min(spaces) >= CAPABILITIES.stream_interval_s


async def test_texts_come_faster_than_the_interval_and_only_the_newest_are_shown(
    path: Path,
) -> None:
    texts = ["x" * number for number in range(1, 1001)]
    async with timeline(path) as line:
        await stream(line, texts, every_s=0.01, outcome="completed")
        (answer,) = line.platform.ours()
        assert answer.text == texts[-1]
        assert len(answer.texts) <= 10 / CAPABILITIES.stream_interval_s + 3
        assert answer.texts == sorted(answer.texts, key=len)


async def test_a_platform_that_shows_no_text_does_not_lose_the_final_one(path: Path) -> None:
    async with timeline(path) as line:
        for kind in ("uncertain", "delayed"):
            line.platform.faults.append(Fault(method="set_text", kind=kind, times=50))
        line.platform.faults.append(Fault(method="finish", kind="applied", times=2))
        await stream(line, ["a", "ab", "abc"], every_s=5, outcome="aborted")
        await line.run_for(60)
        (answer,) = line.platform.ours()
        assert (answer.text, answer.outcome) == ("abc", "aborted")


@pytest.mark.parametrize("method", ["open_answer", "finish"])
async def test_an_answer_that_cannot_be_shown_while_it_grows_is_sent_as_text(
    path: Path, method: str
) -> None:
    async with timeline(path) as line:
        line.platform.faults.append(Fault(method=method, kind="impossible"))
        await stream(line, ["a", "ab"], every_s=1, outcome="completed")
        await line.run_for(5)
        assert line.platform.texts()[-1] == "ab"
        assert await states(line) == ["sent", "sent"]


async def test_the_final_text_follows_a_text_that_is_under_way(path: Path) -> None:
    async with timeline(path) as line:
        line.platform.is_open = anyio.Event()
        await put(line, OpenAnswer(run="r-1"), "open")
        line.sender.live.show("r-1", "half")
        await line.run_for(1)
        finish = FinishAnswer(run="r-1", text="whole", outcome="completed")
        await put(line, finish, "finish")
        await line.run_for(1)
        (answer,) = line.platform.ours()
        assert answer.outcome is None
        line.platform.is_open.set()
        await line.run_for(1)
        assert answer.texts == ["half", "whole"]


async def test_an_answer_is_finished_by_the_next_process(path: Path) -> None:
    async with timeline(path) as line:
        await put(line, OpenAnswer(run="r-1"), "open")
        line.sender.live.show("r-1", "half")
        await line.run_for(2)
        platform = line.platform
    async with timeline(path, platform=platform) as line:
        finish = FinishAnswer(run="r-1", text="half and whole", outcome="completed")
        await put(line, finish, "finish")
        await line.run_for(5)
        (answer,) = line.platform.ours()
        assert (answer.text, answer.outcome) == ("half and whole", "completed")
        assert await line.database.run(lambda tx: outbox.answer_of(tx, "r-1")) is None


async def test_an_approval_is_redrawn_where_it_was_sent(path: Path) -> None:
    async with timeline(path) as line:
        now_ms = line.clock.now_ms()

        def ask(tx: Transaction) -> None:
            approvals.add(
                tx, PROMPT, kind="permission", session="s", run="r", binding=1, chat="dm",
                answers={"once": "allowOnce"}, now_ms=now_ms,
            )  # fmt: skip
            outbox.add(tx, AskApproval(prompt=PROMPT), key="ask", chat="dm", now_ms=now_ms)

        await line.write(ask)
        await line.run_for(1)
        settlement = Settlement(label="Allowed once", by="Ann", at_ms=now_ms, allowed=True)
        await put(line, SettleApproval(prompt=PROMPT, settlement=settlement), "settle")
        await line.run_for(5)
        (shown,) = line.platform.approvals()
        assert shown.settlement == settlement
        stored = await line.database.run(lambda tx: approvals.approval(tx, "p-1"))
        assert stored is not None
        assert stored.message == shown.id


async def test_days_leave_nothing_behind(path: Path) -> None:
    async with timeline(path) as line:
        sizes: list[Counter[str]] = []
        for day in range(4):
            for number in range(24):
                key = f"{day}-{number}"
                await post(line, key, chat=f"dm-{number % 3}")
                message = line.platform.write("hello", chat=f"dm-{number % 3}")
                now_ms = line.clock.now_ms()

                def receive(tx: Transaction, message=message, now_ms=now_ms) -> None:
                    inbox.insert(tx, message, channel="memory", account="app", now_ms=now_ms)
                    row = inbox.by_key(tx, message.key)
                    assert row is not None
                    inbox.finish(tx, row, "done")
                    inbox.prune(tx, now_ms=now_ms)
                    outbox.prune(tx, now_ms=now_ms)

                await line.write(receive)
                await line.run_for(HOUR_S)
            sizes.append(await line.database.run(rows_by_table))
        assert sizes[3] == sizes[2], "rows that are over are kept for two days"
        assert line.sender.is_idle


def rows_by_table(tx: Transaction) -> Counter[str]:
    tables = ("inbox", "outbox", "answers", "approvals", "cursors")
    return Counter(
        {table: tx.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608 - a constant
    )


async def test_the_thread_that_an_answer_opens_is_that_of_its_conversation(path: Path) -> None:
    async with timeline(path) as line:
        root = line.platform.write("look", chat="team", mentioned=True)

        def bind(tx: Transaction) -> int:
            bound = bindings.bind(
                tx, chat="team", place=f"root:{root.key}", kind="group", root=root.key, session="s",
                workspace="shop", created_by="ann", now_ms=0,
            )  # fmt: skip
            for number in range(2):
                body = PostText(text=str(number))
                outbox.add(tx, body, key=f"k{number}", chat="team", binding=bound.id, now_ms=0)
            return bound.id

        id_ = await line.write(bind)
        await line.run_for(3)
        bound = await line.database.run(lambda tx: bindings.binding(tx, id_))
        assert bound is not None
        assert bound.thread == f"thread-{root.key}"
        assert [shown.thread for shown in line.platform.ours()] == [bound.thread] * 2
