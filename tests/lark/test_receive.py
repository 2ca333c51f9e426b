"""Events come in once they are stored, and nothing that the platform sends ends the connection."""

import json

from agent_core.channels.messaging.port import (
    ChatAttachment,
    InboundMessage,
    InboundRecall,
    Sender,
    Target,
)
from tests.support.lark import happenings
from tests.support.lark.faults import CallFault
from tests.support.lark.stage import connected_stage, until
from tests.support.lark.world import BOT


async def test_a_text_arrives_with_names_and_without_the_mention_of_the_bot() -> None:
    async with connected_stage() as stage:
        sent = stage.platform.world.say("oc_group", "@_user_1 ask @_user_2 and @_all")
        other = {"key": "@_user_2", "id": {"open_id": "ou_bob"}, "name": "Bob"}
        event = happenings.message(sent, mentions=[happenings.MENTION, other])
        ack = await stage.platform.sockets.deliver(event, message_id="f1")
        assert (ack.code, ack.data, ack.headers["biz_rt"].isdigit()) == (200, None, True)
        assert stage.sink.events == [
            InboundMessage(
                key=sent.id,
                target=Target(chat="oc_group"),
                chat_kind="group",
                sender=Sender(id="ou_ada", name="Ada"),
                text="ask @Bob and @all",
                mentioned=True,
                at_ms=sent.at_ms,
            )
        ]


async def test_a_direct_message_in_a_thread_names_both() -> None:
    async with connected_stage() as stage:
        sent = stage.platform.world.say("oc_direct", "hi", parent="om_0", thread="omt_0")
        await stage.platform.sockets.deliver(
            happenings.message(sent, chat_type="p2p"), message_id="f1"
        )
        (message,) = stage.sink.events
        assert isinstance(message, InboundMessage)
        assert (message.chat_kind, message.reply_to, message.target.thread, message.mentioned) == (
            "direct", "om_0", "omt_0", False,
        )  # fmt: skip


async def test_a_rich_text_is_markdown_with_its_pictures() -> None:
    rows = [
        [{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": " see "}],
        [
            {"tag": "a", "text": "log", "href": "https://x.test"},
            {"tag": "img", "image_key": "img_1"},
        ],
        [{"tag": "code_block", "language": "PYTHON", "text": "x = 1\n"}],
    ]
    async with connected_stage() as stage:
        content = happenings.post(*rows, title="Bug")
        sent = stage.platform.world.say("oc_group", "", kind="post", content=content)
        await stage.platform.sockets.deliver(
            happenings.message(sent, mentions=[happenings.MENTION]), message_id="f1"
        )
        (message,) = stage.sink.events
        assert isinstance(message, InboundMessage)
        assert message.mentioned
        assert message.text == ("**Bug**\n see \n[log](https://x.test)\n\n```python\nx = 1\n```")
        assert message.attachments == (
            ChatAttachment(ref=f"{sent.id}/image/img_1", name="img_1.png"),
        )


async def test_files_are_attachments_and_their_names_are_no_paths() -> None:
    async with connected_stage() as stage:
        contents = {
            "image": {"image_key": "img_9"},
            "file": {"file_key": "file_9", "file_name": "../../etc/passwd"},
            "sticker": {"file_key": "s"},
        }
        for kind, content in contents.items():
            sent = stage.platform.world.say("oc_group", "", kind=kind, content=json.dumps(content))
            await stage.platform.sockets.deliver(happenings.message(sent), message_id=kind)
        messages = [event for event in stage.sink.events if isinstance(event, InboundMessage)]
        assert [[file.name for file in message.attachments] for message in messages] == [
            ["img_9.png"], ["passwd"], [],
        ]  # fmt: skip
        assert stage.sink.texts == ["", "", "[sticker]"]


async def test_a_recall_names_its_message() -> None:
    async with connected_stage() as stage:
        sent = stage.platform.world.say("oc_group", "no")
        await stage.platform.sockets.deliver(happenings.recall(sent), message_id="f1")
        assert stage.sink.events == [
            InboundRecall(
                key=f"recall:{sent.id}",
                target=Target(chat="oc_group"),
                message=sent.id,
                at_ms=sent.at_ms + 5,
            )
        ]


async def test_an_event_that_was_not_stored_comes_again_until_it_is() -> None:
    async with connected_stage() as stage:
        stage.sink.failures = 2
        sent = stage.platform.world.say("oc_group", "keep me")
        await stage.platform.sockets.deliver(happenings.message(sent), message_id="f1")
        assert [ack.code for ack in stage.platform.sockets.acks] == [500, 500, 200]
        assert stage.sink.texts == ["keep me"]


async def test_a_repeated_event_is_passed_on_and_acknowledged_again() -> None:
    async with connected_stage() as stage:
        event = happenings.message(stage.platform.world.say("oc_group", "once"))
        for _ in range(2):
            await stage.platform.sockets.deliver(event, message_id="f1")
        assert [event.key for event in stage.sink.events] == [
            event["event"]["message"]["message_id"]
        ] * 2


async def test_unknown_and_damaged_events_are_acknowledged_and_counted() -> None:
    async with connected_stage() as stage:
        sockets, counts = stage.platform.sockets, stage.channel.connection.counts
        read = happenings.event("im.message.message_read_v1", {}, event_id="e", at="0")
        assert (await sockets.deliver(read, message_id="f1")).code == 200
        broken = happenings.event("im.message.receive_v1", {"message": 3}, event_id="e", at="0")
        assert (await sockets.deliver(broken, message_id="f2")).code == 200
        await sockets.push(read, message_id="f3", kind="card")
        await until(lambda: len(sockets.acks) == 3)
        assert sockets.acks[2].code == 200
        assert (counts, stage.sink.events) == ({"pong": 1, "unknown": 2, "damaged": 1}, [])


async def test_bytes_that_are_no_frame_do_not_end_the_connection() -> None:
    async with connected_stage() as stage:
        (connection,) = stage.platform.sockets.connections
        for raw in (b"\xff" * 11, b"", "text", b"\x08"):
            await connection.send(raw)
        event = happenings.message(stage.platform.world.say("oc_group", "after"))
        await stage.platform.sockets.deliver(event, message_id="f1")
        assert (stage.sink.texts, stage.platform.sockets.opened) == (["after"], 1)
        assert stage.channel.connection.counts["invalid"] == 4


async def test_parts_are_joined_in_any_order_and_answered_once() -> None:
    async with connected_stage() as stage:
        event = happenings.message(stage.platform.world.say("oc_group", "long " * 50))
        await stage.platform.sockets.push(event, message_id="f1", parts=4, order=[3, 0, 0, 2, 1])
        await until(lambda: stage.platform.sockets.acks)
        assert stage.sink.texts == [("long " * 50).strip()]
        assert len(stage.platform.sockets.acks) == 1


async def test_a_late_part_waits_for_a_minute_and_no_longer() -> None:
    async with connected_stage() as stage:
        sockets = stage.platform.sockets
        event = happenings.message(stage.platform.world.say("oc_group", "late"))
        fresh = happenings.message(stage.platform.world.say("oc_group", "in time"))
        await sockets.push(event, message_id="f1", parts=2, order=[0])
        await sockets.push(fresh, message_id="f2", parts=2, order=[0])
        await sockets.deliver(
            happenings.recall(stage.platform.world.say("oc_group", "x")), message_id="f3"
        )
        stage.clock.advance(59)
        await sockets.push(fresh, message_id="f2", parts=2, order=[1])
        await until(lambda: stage.sink.texts == ["in time"])
        stage.clock.advance(2)
        await sockets.push(event, message_id="f1", parts=2, order=[1])
        await sockets.deliver(event, message_id="f4")
        assert stage.sink.texts == ["in time", "late"]


async def test_a_name_that_does_not_come_is_left_out_after_a_second() -> None:
    path = "/open-apis/contact/v3/users/ou_ada"
    async with connected_stage() as stage:
        stage.platform.faults.append(CallFault(path=path, kind="hang"))
        sent = stage.platform.world.say("oc_group", "hi")
        await stage.platform.sockets.push(happenings.message(sent), message_id="f1")
        await until(lambda: ("GET", path) in stage.platform.calls)
        stage.clock.advance(1)
        await until(lambda: stage.sink.texts == ["hi"])


async def test_the_id_of_the_bot_is_read_before_the_first_event() -> None:
    async with connected_stage() as stage:
        paths = [path for _, path in stage.platform.calls]
        assert paths.index("/open-apis/bot/v3/info") < paths.index("/callback/ws/endpoint")
        assert BOT


async def test_the_text_of_a_forwarded_card_is_read_in_either_format() -> None:
    old = {"title": "Alert", "elements": [[{"tag": "text", "text": "disk full"}, {"tag": "hr"}]]}
    new = {
        "header": {"title": {"tag": "plain_text", "content": "Build"}},
        "body": {"elements": [{"tag": "markdown", "content": "**red**"}]},
    }
    async with connected_stage() as stage:
        for number, card in enumerate((old, new)):
            sent = stage.platform.world.say(
                "oc_group", "", kind="interactive", content=json.dumps(card)
            )
            await stage.platform.sockets.deliver(happenings.message(sent), message_id=f"f{number}")
        assert stage.sink.texts == ["Alert\ndisk full", "Build\n**red**"]


async def test_the_channel_names_its_platform_app_and_limits() -> None:
    async with connected_stage() as stage:
        channel = stage.channel
        assert (channel.name, channel.account) == ("lark", "cli_app")
        limits = channel.capabilities
        assert (limits.text_bytes, limits.upload_bytes, limits.key_window_s) == (
            24 * 1024, 30 * 1024 * 1024, 3600,
        )  # fmt: skip
