"""kill -9 of `tiller lark` at any moment: each message has one answer, one session and one prompt, and nothing waits at the end."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest

from agent_core.kernel import SystemClock
from tests.support.channels.processes import chat_process
from tests.support.clients.daemons import daemon_process
from tests.support.clients.server import Ground, says
from tests.support.harness.sizes import at_size
from tests.support.lark import happenings
from tests.support.lark.card_schema import shown_text
from tests.support.lark.platform import LarkPlatform, open_platform
from tests.support.lark.routes import SECRET
from tests.support.lark.stage import until
from tests.support.lark.world import APP, BOT, Sent

SEEDS = at_size(ci=2, campaign=100)
MESSAGES = 3
MOST_KILLS = 3
WITHIN_S = 60
IN_HISTORY = [{"key": "@_user_1", "id": BOT, "id_type": "open_id", "name": "Tiller"}]
ANSWER = "All of it is mended. " * 12
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture
async def platform() -> AsyncGenerator[LarkPlatform]:
    async with open_platform(SystemClock()) as served:
        yield served


def answers(platform: LarkPlatform, said: Sent) -> list[str]:
    """Return the texts of the bot in the topic of a message."""
    world = platform.world
    own = [one for one in world.messages.values() if one.sender == APP and not one.deleted]
    return [
        (shown_text(world.cards[one.card].data) if one.card else one.content).strip()
        for one in own
        if said.thread and one.thread == said.thread
    ]


def waiting(file: Path) -> Sequence[tuple[str, str]]:
    """Return the rows of inbox and outbox that are not over."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
        return database.execute(
            "SELECT 'inbox', state FROM inbox WHERE state NOT IN ('done', 'ignored')"
            " UNION ALL SELECT 'outbox', state FROM outbox WHERE state != 'sent'"
        ).fetchall()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_process_that_is_killed_answers_each_message_once(
    ground: Ground, platform: LarkPlatform, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    ground.provider.script([{**says(ANSWER), "deltas": 12, "delta_delay_s": 0.03, "repeat": -1}])
    app = {
        "appId": APP,
        "domain": platform.url,
        "people": ["*"],  # of one person, messages of one moment are one prompt
        "workspaces": {"shop": {"folder": str(ground.root)}},
    }
    ground.configure(channels={"lark": app}, titles="off")
    env = {**ground.env, "LARK_APP_SECRET": SECRET}
    file = ground.dirs.data / "channels" / f"lark-{APP}.sqlite3"
    said = [
        platform.world.say(
            "oc_group", f"@_user_1 word{number}", sender=f"ou_{number}", mentions=IN_HISTORY
        )
        for number in range(MESSAGES)
    ]

    platform.world.people |= {one.sender: one.sender for one in said}

    acknowledged: list[Sent] = []

    async def deliver(message: Sent, after_s: float) -> None:
        await anyio.sleep(after_s)
        event = happenings.message(message, mentions=[happenings.MENTION])
        await platform.sockets.deliver(event, message_id=f"frame-{message.id}", tries=20)
        acknowledged.append(message)

    async with daemon_process(env), anyio.create_task_group() as group:
        for message in said:
            group.start_soon(deliver, message, random.random() * 2)
        for _ in range(random.randint(1, MOST_KILLS)):
            opened = platform.sockets.opened
            async with chat_process("lark", env):
                await until(lambda n=opened: platform.sockets.opened > n, within_s=WITHIN_S)
                await anyio.sleep(random.random() * 1.5)
        async with chat_process("lark", env):
            await until(lambda: all(answers(platform, one) for one in said), within_s=WITHIN_S)
            # An event that was stored by a process that was killed before its acknowledgement comes again.
            await until(lambda: len(acknowledged) == MESSAGES, within_s=WITHIN_S)
            with anyio.fail_after(WITHIN_S):
                while await anyio.to_thread.run_sync(waiting, file):  # noqa: ASYNC110 - another process changes it
                    await anyio.sleep(0.05)
    assert [answers(platform, one) for one in said] == [[ANSWER.strip()]] * MESSAGES
    assert len({one.thread for one in said}) == MESSAGES
    texts = [path.read_text("utf-8") for path in ground.sessions()]
    assert len(texts) == MESSAGES
    for number in range(MESSAGES):
        (text,) = [one for one in texts if f"word{number}" in one]
        entries = [json.loads(line) for line in text.splitlines()]
        users = [one for one in entries if one.get("message", {}).get("role") == "user"]
        assert len(users) == 1
