"""Messages of a chat, the runs that they start, and their answers."""

import hashlib

import pytest
from msgspec.structs import replace

from agent_core.channels.messaging.port import ChatAttachment, InboundRecall
from agent_core.kernel import SystemClock
from tests.support.channels.bridges import Chat, answered, bridged
from tests.support.channels.memory_platform import CAPABILITIES, MemoryPlatform
from tests.support.clients.server import Ground, calls, says
from tests.support.harness.sizes import at_size
from tests.support.mcp.mcp_servers import PNG

pytestmark = [pytest.mark.timeout(60)]
LONG = "\n".join(f"line {number} of the answer" for number in range(600))
STALLS = {**says("never"), "stall_forever_after_deltas": 0}


def reactions(chat: Chat, key: str) -> list[str]:
    return [*chat.platform.messages[key].reactions]


def asked(ground: Ground) -> list[str]:
    """Return the texts of the last prompts of each request."""
    found: list[str] = []
    for request in ground.provider.requests:
        content = [one for one in request["body"]["messages"] if one["role"] == "user"][-1][
            "content"
        ]
        parts = content if isinstance(content, list) else [{"text": content}]
        found.append("\n".join(str(part.get("text") or part.get("type")) for part in parts))
    return found


async def test_a_message_is_answered_once_and_whole(ground: Ground) -> None:
    ground.provider.script([says("It is done.")])
    async with bridged(ground) as chat:
        message = chat.platform.write("do it")
        chat.platform.push(message)
        await answered(chat, message.key)
        (answer,) = chat.platform.ours()
        assert (answer.text, answer.outcome, answer.kind) == ("It is done.", "completed", "answer")
        assert reactions(chat, message.key) == ["started", "completed"]
        assert asked(ground) == ["do it"]


async def test_a_long_answer_arrives_in_parts_and_in_order(ground: Ground) -> None:
    ground.provider.script([says(LONG)])
    async with bridged(ground) as chat:
        message = chat.platform.write("write much")
        await answered(chat, message.key)
        await chat.until_settled()
        assert "".join(chat.platform.texts()) == LONG
        assert len(chat.platform.texts()) > 3


async def test_messages_of_a_direct_chat_are_one_conversation(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with bridged(ground) as chat:
        for text in ("first", "second"):
            message = chat.platform.write(text)
            await answered(chat, message.key)
        assert len(ground.sessions()) == 1
        assert len(await chat.rows("bindings")) == 1


async def test_a_mention_in_a_group_is_answered_in_a_new_thread_that_is_the_conversation(
    ground: Ground,
) -> None:
    ground.provider.script([says("one"), says("two"), says("three")])
    async with bridged(ground) as chat:
        first = chat.platform.write("look at it", chat="team", mentioned=True)
        await answered(chat, first.key)
        (answer,) = chat.platform.ours()
        thread = f"thread-{first.key}"
        assert (answer.thread, answer.reply_to) == (thread, first.key)
        second = chat.platform.write("and that", chat="team", thread=thread, reply_to=answer.id)
        await answered(chat, second.key)
        other = chat.platform.write("something else", chat="team", mentioned=True)
        await answered(chat, other.key)
        places = [(row["place"], row["root"]) for row in await chat.rows("bindings")]
        assert places == [(thread, first.key), (f"thread-{other.key}", other.key)]
        assert asked(ground) == ["Ann: look at it", "Ann: and that", "Ann: something else"]


@pytest.mark.parametrize(
    "written",
    [
        {"chat": "team"},
        {"chat": "team", "mentioned": True, "is_bot": True},
        {"chat": "dm", "is_bot": True},
    ],
    ids=["not mentioned", "a bot in a group", "a bot"],
)
async def test_a_message_that_is_not_for_the_agent_is_ignored(
    ground: Ground, written: dict
) -> None:
    async with bridged(ground) as chat:
        chat.platform.write("hello", **written)
        await chat.until_settled()
        (row,) = await chat.rows("inbox")
        assert (row["state"], row["body"]) == ("ignored", "")
        assert chat.platform.ours() == []


async def test_a_person_who_may_not_talk_is_informed_and_nothing_runs(ground: Ground) -> None:
    async with bridged(ground, talkers=frozenset({"bob"})) as chat:
        chat.platform.write("do it")
        await chat.until(chat.platform.ours)
        (line,) = chat.platform.texts()
        assert line.startswith("You may not use this bot.")
        assert "ann" in line
        assert ground.provider.requests == []


async def test_messages_of_one_person_in_a_moment_are_one_prompt(ground: Ground) -> None:
    ground.provider.script([says("both")])
    async with bridged(ground, merge_s=0.6) as chat:
        keys = [chat.platform.write(text).key for text in ("do this", "and that")]
        for key in keys:
            await answered(chat, key)
        assert asked(ground) == ["do this\nand that"]
        assert chat.platform.texts() == ["both"]


async def test_messages_of_different_people_are_never_one_prompt(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with bridged(ground, merge_s=0.6) as chat:
        keys = [chat.platform.write("go", sender=name).key for name in ("ann", "bob")]
        for key in keys:
            await answered(chat, key)
        prompts = await chat.rows("inbox")
        assert [row["batch"] for row in prompts] == keys


async def test_a_message_during_a_run_steers_it(ground: Ground) -> None:
    wait = calls(("bash", {"command": "while [ ! -e go ]; do sleep 0.02; done"}))
    ground.provider.script([wait, says("with both")])
    async with bridged(ground) as chat:
        first = chat.platform.write("begin")
        await ground.provider.requests_arrived(1)
        second = chat.platform.write("and this")
        await chat.until(lambda: reactions(chat, second.key) == ["started"])
        ground.file("go", "")
        await answered(chat, first.key)
        await answered(chat, second.key)
        assert chat.platform.texts() == ["with both"]
        assert asked(ground)[-1] == "and this"


async def test_a_run_that_fails_has_one_line_in_our_own_language(ground: Ground) -> None:
    ground.configure(retry={"enabled": False})
    ground.provider.script([{"status": 500, "body": {"error": {"message": "boom at 0x7f"}}}])
    async with bridged(ground) as chat:
        message = chat.platform.write("do it")
        await answered(chat, message.key, "failed")
        (line,) = chat.platform.texts()
        assert line.startswith("The run failed: ")
        assert "0x7f" not in line


async def test_secrets_are_removed_before_anything_is_stored(ground: Ground) -> None:
    secret = "ghp_" + hashlib.sha256(b"x").hexdigest()[:36]
    ground.provider.script([says(f"The token is {secret}.")])
    async with bridged(ground) as chat:
        message = chat.platform.write("what is the token")
        await answered(chat, message.key)
        assert secret not in "".join(chat.platform.texts())
        assert "[redacted:" in chat.platform.texts()[0]
        assert secret.encode() not in chat.path.read_bytes()


async def test_files_of_a_message_are_sent_to_the_model(ground: Ground) -> None:
    ground.show_images()
    ground.provider.script([says("seen")])
    async with bridged(ground) as chat:
        chat.platform.files.update({"p": PNG, "t": b"some notes", "z": b"\x00\x01\x02" * 9})
        files = [
            ChatAttachment(ref="p", name="shot.png"),
            ChatAttachment(ref="t", name="notes.txt"),
            ChatAttachment(ref="z", name="data.bin"),
            ChatAttachment(ref="gone", name="gone.txt"),
        ]
        message = chat.platform.write("look", attachments=files)
        await answered(chat, message.key)
        (prompt,) = asked(ground)
        assert "image_url" in prompt
        assert "some notes" in prompt
        line = next(text for text in chat.platform.texts() if "left out" in text)
        assert "data.bin was left out: The file is no PNG" in line
        assert "gone.txt was left out: it could not be read." in line


async def test_a_recalled_message_that_was_not_started_is_not_answered(ground: Ground) -> None:
    ground.provider.script([says("never")])
    async with bridged(ground, merge_s=0.5) as chat:
        message = chat.platform.write("oops")
        chat.platform.push(
            InboundRecall(key="r1", target=message.target, message=message.key, at_ms=message.at_ms)
        )
        await chat.until_settled()
        assert ground.provider.requests == []
        assert chat.platform.ours() == []


async def test_a_recalled_message_in_the_queue_is_removed(ground: Ground) -> None:
    wait = calls(("bash", {"command": "while [ ! -e go ]; do sleep 0.02; done"}))
    ground.provider.script([wait, says("done")])
    async with bridged(ground) as chat:
        first = chat.platform.write("begin")
        await ground.provider.requests_arrived(1)
        second = chat.platform.write("/queue and this")
        await chat.until(lambda: reactions(chat, second.key) == ["started"])
        recall = InboundRecall(
            key="r1", target=second.target, message=second.key, at_ms=second.at_ms
        )
        chat.platform.push(recall)
        await chat.until_row("inbox", key=second.key, reason="recalled")
        ground.file("go", "")
        await answered(chat, first.key)
        assert all("and this" not in prompt for prompt in asked(ground))


async def test_the_last_messages_of_a_group_are_context_where_it_is_switched_on(
    ground: Ground,
) -> None:
    ground.provider.script([says("I see")])
    async with bridged(ground, context_messages=2) as chat:
        for text in ("zero", "one", "two"):
            chat.platform.write(text, chat="team", sender="bob")
        message = chat.platform.write("sum up", chat="team", mentioned=True)
        await answered(chat, message.key)
        (prompt,) = asked(ground)
        before = "Messages of the chat before, for context:\nBob: one\nBob: two"
        assert prompt == f"{before}\n\nAnn: sum up"


async def test_a_message_that_came_while_nothing_was_connected_is_found_in_the_history(
    ground: Ground,
) -> None:
    ground.provider.script([says("one"), says("two")])
    async with bridged(ground) as chat:
        first = chat.platform.write("first")
        await answered(chat, first.key)
        await chat.kill()
        lost = chat.platform.write("second", is_lost=True)
        chat.start()
        await answered(chat, lost.key)
        assert chat.platform.texts() == ["one", "two"]


async def test_a_daemon_that_is_away_loses_no_message(ground: Ground) -> None:
    ground.provider.script([says("at last")])
    async with bridged(ground) as chat:
        await chat.daemon.stop()
        message = chat.platform.write("do it")
        await chat.until_row("inbox", key=message.key, tries=1)
        await chat.daemon.start()
        await answered(chat, message.key)
        assert chat.platform.texts() == ["at last"]


async def test_a_daemon_that_restarts_during_an_answer_ends_it_with_a_line(ground: Ground) -> None:
    ground.provider.script([STALLS, says("again")])
    async with bridged(ground) as chat:
        message = chat.platform.write("do it")
        await ground.provider.requests_arrived(1)
        await chat.until(lambda: reactions(chat, message.key) == ["started"])
        await chat.daemon.stop()
        await chat.daemon.start()
        await chat.until(lambda: len(reactions(chat, message.key)) == 2)
        await chat.until_settled()
        (answer,) = chat.platform.ours()
        assert answer.outcome in {"failed", "aborted"}
        assert answer.text in {
            "Stopped.",
            "The agent was restarted during this answer. Send a message to go on.",
        }
        second = chat.platform.write("go on")
        await answered(chat, second.key)
        assert len(ground.sessions()) == 1


@pytest.mark.parametrize("seed", range(at_size(ci=2, campaign=20)))
async def test_an_answer_arrives_unchanged_however_it_is_streamed(
    ground: Ground, seed: int
) -> None:
    """Tests whole texts of a model in deltas; `test_text_parts` has any text at all."""
    text = "".join(
        f"{number} `code` *x* ab\n" * (number % 3 + 1) + "```py\nfoo()()\n```\n"
        for number in range(5 + seed)
    )
    ground.provider.script([{**says(text), "deltas": 3 + 40 * seed}])
    async with bridged(ground) as chat:
        message = chat.platform.write("write")
        await answered(chat, message.key)
        assert chat.platform.texts() == [text]


async def test_the_status_has_the_connection_the_counts_and_the_health(ground: Ground) -> None:
    ground.provider.script([says("done")])
    async with bridged(ground) as chat:
        message = chat.platform.write("do it")
        await answered(chat, message.key)
        await chat.until_settled()
        assert chat.bridge is not None
        status = await chat.bridge.status()
        assert (status.connection, status.bindings, status.dead) == ("connected", 1, ())
        assert (status.inbox, status.outbox) == ({"done": 1}, {"sent": 4})
        assert status.is_healthy
        chat.bridge.connection_changed("degraded", "the platform refuses connections")
        degraded = await chat.bridge.status()
        assert (degraded.reason, degraded.is_healthy) == ("the platform refuses connections", False)


async def test_a_hundred_messages_in_a_moment_are_answered_in_their_order(ground: Ground) -> None:
    limits = replace(CAPABILITIES, chat_rate=100, app_rate=1000)
    platform = MemoryPlatform(SystemClock(), limits)
    async with bridged(ground, platform=platform) as chat:
        keys = [
            platform.write(
                "/diff", chat="team", thread="t", mentioned=True, sender=f"p{number}"
            ).key
            for number in range(100)
        ]
        await chat.until(lambda: len(platform.ours()) == 100, within_s=40)
        assert [shown.reply_to for shown in platform.ours()] == keys
        times = [call.at_s for call in platform.calls if call.method == "post"]
        assert max(sum(start <= at < start + 0.5 for at in times) for start in times) <= 51
