"""The adapter of Slack against a platform on loopback: real HTTP, a real WebSocket, and the SDK between them."""

import re
from collections.abc import Callable

import anyio
import pytest
from hypothesis import given, strategies as st

from agent_core.channels.messaging.port import (
    ApprovalOption,
    ApprovalPrompt,
    ChatAttachment,
    ClickReply,
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    DeliveryUncertain,
    InboundRecall,
    Settlement,
    Target,
)
from agent_core.kernel import SystemClock
from tests.slack.conftest import RecordingSink, account
from tests.support.slack.platform import BOT, SlackPlatform
from tiller_server.channels.slack.channel import SlackChannel
from tiller_server.channels.slack.messages import plain_text

GROUP = Target(chat="C1")
PROMPT = ApprovalPrompt(
    request="r1",
    title="Allow bash?",
    risk="high",
    body="```\nrm -rf build <&> @channel\n```",
    detail="shop · bash",
    options=(
        ApprovalOption(id="once", label="Allow once", style="primary"),
        ApprovalOption(id="session", label="Allow for this session"),
        ApprovalOption(id="deny", label="Deny", style="danger"),
    ),
    digest="0123456789abcdef",
    code="7f3a",
)
ANSWERED = Settlement(label="Allowed once", by="Ann & Bob", at_ms=1_790_000_000_000, allowed=True)


async def wait_for(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110 - what is looked at has no event of its own
            await anyio.sleep(0.005)


# ---------------------------------------------------------------------- receiving


async def test_a_mention_is_stored_before_it_is_acknowledged(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    sink.fails = 1
    said = await platform.say("C1", f"<@{BOT}> mend the <https://x.y/z|basket> &amp; &amp;lt; go")
    await platform.deliver(platform.event("C1", said))
    await platform.until(lambda: len(platform.acks) == 1)
    (message,) = sink.messages
    assert platform.acks == ["envelope-2"]
    assert message.text == "mend the [basket](https://x.y/z) & &lt; go"
    assert (message.mentioned, message.chat_kind, message.target) == (True, "group", GROUP)
    assert message.key == f"C1:{said['ts']}"
    assert channel.account == f"T1.{BOT}"


async def test_kinds_of_messages_are_told_apart(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    root = await platform.say("D1", "!stop")
    await platform.say("D1", "in the thread", thread_ts=root["ts"])
    await platform.say("C1", "beep", user="", bot_id="B7", subtype="bot_message")
    await platform.deliver({"type": "message", "channel": "C1", "user": BOT, "ts": "1.1"})
    await platform.deliver(
        {"type": "message", "channel": "C1", "subtype": "channel_join", "ts": "1.2"}
    )
    deleted = {
        "type": "message",
        "subtype": "message_deleted",
        "deleted_ts": root["ts"],
        "ts": "1.3",
    }
    await platform.deliver({**deleted, "channel": "D1"})
    await platform.deliver({"type": "reaction_added"})
    body = {
        "channel_id": "C1",
        "user_id": "U1",
        "user_name": "ann",
        "text": "status",
        "trigger_id": "1.2.3",
    }
    await platform.send("slash_commands", body)
    await platform.send("something_new", {})
    await platform.until(lambda: len(platform.acks) == 9)
    direct, reply, bot, command = sink.messages
    assert (direct.text, direct.chat_kind, direct.reply_to) == ("/stop", "direct", None)
    assert (reply.target.thread, reply.reply_to) == (root["ts"], f"D1:{root['ts']}")
    assert bot.sender.is_bot
    assert (command.text, command.mentioned) == ("/status", True)
    (recall,) = [one for one in sink.events if isinstance(one, InboundRecall)]
    assert recall.message == f"D1:{root['ts']}"


async def test_files_of_a_message_are_read_with_the_token_up_to_a_limit(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    await platform.say("D1", "look", files=[platform.workspace.add_file("a.txt", b"x" * 200_000)])
    await platform.until(lambda: len(platform.acks) == 1)
    (file,) = sink.messages[0].attachments
    assert (file.name, file.mime, file.size_bytes) == ("a.txt", "text/plain", 200_000)
    parts = [part async for part in channel.fetch(file, limit_bytes=200_000)]
    assert sum(map(len, parts)) == 200_000
    with pytest.raises(DeliveryImpossible, match="more than 1,000 bytes"):
        _ = [part async for part in channel.fetch(file, limit_bytes=1_000)]
    facts, content = platform.workspace.files[file.ref]
    platform.workspace.files["F9"] = (
        {**facts, "url_private_download": "http://localhost:1/a"},
        content,
    )
    with pytest.raises(DeliveryImpossible, match="not Slack"):
        _ = [p async for p in channel.fetch(ChatAttachment(ref="F9", name="a"), limit_bytes=9)]


# ---------------------------------------------------------------------- the connection


async def test_a_connection_that_slack_ends_or_that_is_silent_is_opened_anew(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    await platform.disconnect()
    await platform.until(lambda: platform.connections == 2)
    await platform.cut()
    await platform.until(lambda: platform.connections == 3)
    platform.is_silent = True
    await platform.until(lambda: platform.connections >= 4)
    platform.is_silent = False
    await platform.say("D1", "still here")
    await wait_for(lambda: bool(sink.messages))
    assert [state for state, _ in sink.states if state == "connected"]


async def test_a_refused_app_is_degraded_with_the_reason(
    platform: SlackPlatform, sink: RecordingSink
) -> None:
    wrong = SlackChannel(account(platform, app_token="xapp-wrong"), clock=SystemClock())
    async with anyio.create_task_group() as group:
        group.start_soon(wrong.run, sink)
        refused = ("degraded", "Slack refused the connection: invalid_auth")
        await wait_for(lambda: refused in sink.states)
        group.cancel_scope.cancel()
    assert sink.states[-1][0] == "stopped"


async def test_an_app_connects_when_slack_can_be_used_again(
    platform: SlackPlatform, sink: RecordingSink
) -> None:
    platform.faults["auth.test"].append("unavailable")
    platform.faults["apps.connections.open"].extend(["internal_error", "cut"])
    made = SlackChannel(account(platform), clock=SystemClock(), ping_s=0.05)
    async with anyio.create_task_group() as group:
        group.start_soon(made.run, sink)
        await wait_for(lambda: ("connected", "") in sink.states)
        group.cancel_scope.cancel()
    reasons = [reason for state, reason in sink.states if state == "degraded"]
    assert reasons[:2] == [
        "Slack refused auth.test: unavailable",
        "Slack refused the connection: internal_error",
    ]
    assert reasons[2].startswith("Slack cannot be used: ")


# ---------------------------------------------------------------------- sending


async def test_an_answer_grows_in_its_thread_and_ends_in_full(
    channel: SlackChannel, platform: SlackPlatform
) -> None:
    said = await platform.say("C1", f"<@{BOT}> go")
    answer = await channel.open_answer(GROUP, key="k1", reply_to=f"C1:{said['ts']}", in_thread=True)
    assert answer.sent.thread == said["ts"]
    await answer.set_text("Half")
    await answer.set_text("Half")
    await answer.finish("Half and whole.", "completed")
    assert platform.workspace.texts("C1") == ["Half and whole."]
    assert [name for name, _ in platform.calls].count("chat.update") == 2


async def test_an_answer_is_finished_by_another_process_after_a_refusal(
    channel: SlackChannel, platform: SlackPlatform
) -> None:
    said = await platform.say("C1", "go")
    answer = await channel.open_answer(GROUP, key="k1", reply_to=f"C1:{said['ts']}", in_thread=True)
    platform.faults["chat.update"].append("ratelimited")
    with pytest.raises(DeliveryDelayed) as delayed:
        await answer.finish("All.", "completed")
    assert delayed.value.retry_after_s == 1
    again = await channel.open_answer(GROUP, key="k1", resume_token=answer.resume_token)
    assert again.sent == answer.sent
    await again.finish("All.", "completed")
    assert platform.workspace.texts("C1") == ["All."]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("ratelimited", DeliveryDelayed),
        ("lost", DeliveryUncertain),
        ("cut", DeliveryUncertain),
        ("unavailable", DeliveryUncertain),
        ("channel_not_found", DeliveryImpossible),
        ("not_in_channel", DeliveryImpossible),
    ],
)
async def test_refusals_say_whether_a_message_may_have_been_sent(
    channel: SlackChannel, platform: SlackPlatform, fault: str, error: type[DeliveryError]
) -> None:
    platform.faults["chat.postMessage"].append(fault)
    with pytest.raises(error, match=r"chat\.postMessage"):
        await channel.post(GROUP, "Hello.", key="k1")
    was_sent = fault in {"lost", "cut"}
    found = await channel.find_sent(GROUP, key="k1", since_ms=0)
    assert found is not None if was_sent else found is None
    assert len(platform.workspace.texts("C1")) == was_sent, (
        "the SDK must not repeat a call by itself"
    )


async def test_the_history_has_messages_of_people_oldest_first_over_all_pages(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    platform.workspace.page = 3
    said = [await platform.say("C1", f"number {number}") for number in range(8)]
    _ = await channel.post(GROUP, "mine", key="k")
    await platform.say("C1", "reply", thread_ts=said[2]["ts"])
    await platform.until(lambda: len(platform.acks) == 9)
    since = sink.messages[2].at_ms
    listed = await channel.history(GROUP, since_ms=since)
    assert listed == sink.messages[2:8]
    thread = await channel.history(Target(chat="C1", thread=said[2]["ts"]), since_ms=since + 1)
    assert thread == sink.messages[8:]


async def test_an_approval_is_answered_by_a_click_and_redrawn(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    sent = await channel.ask(GROUP, PROMPT, key="k1")
    (message,) = platform.workspace.channels["C1"]
    assert [one["type"] for one in message["blocks"]] == [
        "header",
        "markdown",
        "context",
        "actions",
        "context",
    ]
    assert "!approve 7f3a" in message["blocks"][-1]["elements"][0]["text"]
    sink.reply = ClickReply(text="Allowed.", kind="success", prompt=PROMPT, settlement=ANSWERED)
    await platform.click(message, "C1", button=1)
    await wait_for(lambda: "Allowed once" in str(message["blocks"]))
    (click,) = sink.clicks
    assert (click.request, click.option, click.digest) == ("r1", "session", PROMPT.digest)
    assert (click.message, click.sender.id) == (sent.message, "U1")
    assert not [one for one in message["blocks"] if one["type"] == "actions"]
    assert "Ann &amp; Bob" in str(message["blocks"][-1])
    assert not platform.workspace.ephemeral


async def test_a_click_that_is_not_recorded_is_answered_to_the_person_alone(
    channel: SlackChannel, platform: SlackPlatform, sink: RecordingSink
) -> None:
    _ = await channel.ask(GROUP, PROMPT, key="k1")
    sink.reply = ClickReply(text="Not recorded.", kind="error")
    (message,) = platform.workspace.channels["C1"]
    before = str(message["blocks"])
    await platform.click(message, "C1", user="U9")
    await wait_for(lambda: bool(platform.workspace.ephemeral))
    assert (platform.workspace.ephemeral[0]["user"], platform.workspace.ephemeral[0]["text"]) == (
        "U9",
        "Not recorded.",
    )
    assert str(message["blocks"]) == before
    await platform.send("interactive", {"type": "block_actions", "actions": [{"value": "{}"}]})
    await platform.until(lambda: len(platform.acks) == 2)
    assert len(sink.clicks) == 1


async def test_reactions_replace_one_another(
    channel: SlackChannel, platform: SlackPlatform
) -> None:
    said = await platform.say("C1", "go")
    message = f"C1:{said['ts']}"
    await channel.react(message, "started")
    await channel.react(message, "started")
    assert platform.workspace.reactions["C1", said["ts"]] == ["eyes"]
    await channel.react(message, "completed")
    await channel.react(message, "completed")
    assert platform.workspace.reactions["C1", said["ts"]] == ["white_check_mark"]


async def test_a_file_is_sent_into_the_thread(
    channel: SlackChannel, platform: SlackPlatform
) -> None:
    said = await platform.say("C1", "go")
    target = Target(chat="C1", thread=said["ts"])
    _ = await channel.post_file(target, "change.diff", b"--- a\n+++ b\n", key="k1")
    assert [content for _, content in platform.workspace.files.values()] == [b"--- a\n+++ b\n"]
    assert await channel.find_sent(target, key="k1", since_ms=0)


@given(st.text())
def test_any_text_becomes_markdown_without_an_error(text: str) -> None:
    plain = plain_text(text, bot=BOT)
    assert plain == plain.strip()
    assert f"<@{BOT}>" not in plain or not re.search(f"<@{BOT}>", text)
