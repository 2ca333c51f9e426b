"""The process of a bridge is killed at any of its writes: each message has one answer, in one session."""

import random
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from agent_core.kernel import SystemClock
from tests.support.channels.bridges import Chat, Killed, bridged
from tests.support.channels.memory_platform import CAPABILITIES, Fault, MemoryPlatform, Shown
from tests.support.clients.server import Ground, calls, says
from tests.support.harness.sizes import at_size

FAST = replace(CAPABILITIES, chat_rate=500, app_rate=1000, stream_interval_s=0.02)
SEEDS = at_size(ci=5, campaign=100)
STEP = at_size(ci=5, campaign=1)
"""Distance of the writes at which a process is killed."""
pytestmark = [pytest.mark.timeout(at_size(ci=120, campaign=1200))]


def is_over(chat: Chat, *messages: str) -> bool:
    """Check whether messages have their last reaction."""
    return all(chat.platform.messages[key].reactions[-1:] == ["completed"] for key in messages)


def answers(chat: Chat) -> list[Shown]:
    return [shown for shown in chat.platform.ours() if shown.kind in {"answer", "text"}]


async def run_with_cut(ground: Ground, cut: int | None, *, is_written: bool, chat: Chat) -> int:
    """Send a message to a process that is killed at a write, go on with another one; return the writes of the first."""
    ground.provider.script([says("It is done.")])
    chat.start(cut=cut, is_written=is_written)
    assert chat.task is not None
    assert chat.database is not None
    message = chat.platform.write("do it", chat=f"dm-{cut}-{is_written}")
    first = chat.database
    await chat.until_over_or_killed(lambda: is_over(chat, message.key))
    if not first.is_dead:
        await chat.until_settled()
        count = first.count
        await chat.kill()
        return count
    await chat.kill()
    chat.start()
    await chat.until(lambda: is_over(chat, message.key))
    await chat.until_settled()
    await chat.kill()
    place = message.target.chat
    (answer,) = chat.platform.ours(chat=place)
    assert (answer.text, answer.outcome) == ("It is done.", "completed"), (cut, is_written)
    assert chat.platform.messages[message.key].reactions.count("completed") >= 1
    sessions = [row["session"] for row in await chat.stored("bindings") if row["chat"] == place]
    assert len(sessions) == 1
    return first.count


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
async def test_a_kill_at_any_write_loses_and_doubles_nothing(
    ground: Ground, *, is_written: bool
) -> None:
    async with bridged(
        ground, platform=MemoryPlatform(SystemClock(), FAST), is_started=False
    ) as chat:
        count = await run_with_cut(ground, None, is_written=is_written, chat=chat)
        asked = len(ground.provider.requests)
        for cut in range(1 + is_written, count + 1, STEP):
            _ = await run_with_cut(ground, cut, is_written=is_written, chat=chat)
            requests = len(ground.provider.requests)
            assert requests == asked + 1, f"the model was asked {requests - asked} times at {cut}"
            asked = requests


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_random_kills_and_faults_of_the_platform_lose_and_double_nothing(
    ground: Ground, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a reproducible test
    names = [f"text {number} of {seed}" for number in range(4)]
    ground.provider.script([says(name) for name in names])
    async with bridged(
        ground, platform=MemoryPlatform(SystemClock(), FAST), is_started=False
    ) as chat:
        keys: list[str] = []
        for _ in names:
            chat.start(cut=chance.randint(1, 30), is_written=chance.random() < 0.5)
            chat.platform.faults[:] = [random_fault(chance) for _ in range(chance.randint(0, 3))]
            keys.append(chat.platform.write("go on", chat=chance.choice(["dm-a", "dm-b"])).key)
            if chance.random() < 0.3:
                chat.platform.push(chat.platform.inbound[keys[-1]])
            await chat.until_over_or_killed(lambda: is_over(chat, *keys))
            await chat.kill()
        chat.platform.faults.clear()
        chat.start()
        await chat.until(lambda: is_over(chat, *keys))
        await chat.until_settled()
        text = "\n".join(answer.text for answer in answers(chat))
        counts = [text.count(name) for name in names]
        assert max(counts) == 1, "an answer was shown twice"
        assert len(ground.provider.requests) == sum(counts)
        chats = {chat.platform.inbound[key].target.chat for key in keys}
        assert len(await chat.rows("bindings")) == len(chats)
        assert len(chat.ground.sessions()) == len(chats)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_kills_during_an_approval_leave_one_answer_and_one_call(
    ground: Ground, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a reproducible test
    ground.configure(permission={"mode": "ask", "timeoutS": 60}, sandbox="off")
    once = calls(("bash", {"command": "echo x >> ran"}))
    ground.provider.script([once, says("It ran.")])
    async with bridged(
        ground, platform=MemoryPlatform(SystemClock(), FAST), is_started=False
    ) as chat:
        message = chat.platform.write("go", chat="team", mentioned=True)
        for _ in range(4):
            chat.start(cut=chance.randint(1, 25), is_written=chance.random() < 0.5)
            await chat.until_over_or_killed(lambda: is_over(chat, message.key), decide)
            await chat.kill()
        chat.start()
        await chat.until_over_or_killed(lambda: is_over(chat, message.key), decide)
        await chat.until_settled()
        (approval,) = chat.platform.approvals()
        (answer,) = answers(chat)
        assert (answer.text, answer.thread) == ("It ran.", f"thread-{message.key}")
        assert approval.settlement is not None
        assert approval.settlement.label == "Allowed once"
        assert len(ground.sessions()) == 1
    assert (ground.root / "ran").read_text("utf-8") == "x\n"


async def decide(chat: Chat) -> None:
    """Click on what is asked, as a person does until it has an answer."""
    for shown in chat.platform.approvals():
        if shown.settlement is None and chat.platform.is_connected:
            with suppress(Killed):
                await chat.platform.click(shown, "once")


def random_fault(chance: random.Random) -> Fault:
    method = chance.choice(["post", "open_answer", "finish", "react", "set_text", "*"])
    kind: Any = chance.choice(["delayed", "uncertain", "applied"])
    return Fault(method=method, kind=kind, retry_after_s=0.01 if kind == "delayed" else None)
