"""Messages are sent once, where they belong, and each refusal is the error that its code asks for."""

import json
from typing import Any

import anyio
import pytest

from agent_core.channels.messaging.port import (
    ChatAttachment,
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    DeliveryUncertain,
    SentMessage,
    Target,
)
from tests.support.lark.faults import CallFault
from tests.support.lark.stage import GROUP, Stage, open_stage, until
from tests.support.lark.world import Sent
from tiller_server.channels.lark.cards.marks import mark

MESSAGES = "/open-apis/im/v1/messages"
CARDS = "/open-apis/cardkit/v1/cards"
TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"


def shown(message: Sent, key: str = "k1") -> str:
    """Return the Markdown of a rich text or the text of a plain one, without the mark of its key."""
    content = json.loads(message.content)
    text = content["text"] if message.kind == "text" else content["zh_cn"]["content"][0][0]["text"]
    assert text.endswith(mark(key))
    return text.removesuffix(mark(key))


async def test_a_text_is_a_rich_text_and_repeating_it_is_no_second_message() -> None:
    async with open_stage() as stage:
        first = await stage.channel.post(GROUP, "**done**", key="k1")
        again = await stage.channel.post(GROUP, "**done**", key="k1")
        assert first == again == SentMessage(message=stage.last().id)
        assert (stage.last().kind, shown(stage.last())) == ("post", "**done**")
        assert len(stage.platform.world.messages) == 1


async def test_a_text_that_is_too_long_for_a_rich_text_is_plain_and_a_longer_one_is_refused() -> (
    None
):
    async with open_stage() as stage:
        text = 'say "no"\n' * 6_000
        await stage.channel.post(GROUP, text, key="k1")
        assert (stage.last().kind, shown(stage.last())) == ("text", text)
        with pytest.raises(DeliveryImpossible, match="send it as a file"):
            await stage.channel.post(GROUP, "x" * 160_000, key="k2")


async def test_mentions_and_pictures_of_a_model_are_without_effect() -> None:
    async with open_stage() as stage:
        await stage.channel.post(GROUP, "<at id=all></at> ![a](http://x) <b>", key="k1")
        assert shown(stage.last()) == "<\u200bat id=all><\u200b/at> !\u200b[a](http://x) <b>"


async def test_a_reply_opens_a_thread_and_the_thread_has_later_messages() -> None:
    async with open_stage() as stage:
        question = stage.platform.world.say("oc_group", "hi")
        first = await stage.channel.post(GROUP, "a", key="k1", reply_to=question.id, in_thread=True)
        assert first.thread is not None
        thread = Target(chat="oc_group", thread=first.thread)
        second = await stage.channel.post(thread, "b", key="k2")
        assert (second.thread, stage.last().parent) == (first.thread, first.message)


async def test_a_thread_of_an_earlier_process_is_reached_through_its_history() -> None:
    async with open_stage() as stage:
        root = stage.platform.world.say("oc_group", "hi", thread="omt_7")
        sent = await stage.channel.post(Target(chat="oc_group", thread="omt_7"), "b", key="k1")
        assert (sent.thread, stage.last().parent) == ("omt_7", root.id)
        with pytest.raises(DeliveryImpossible, match="omt_8 has no message"):
            await stage.channel.post(Target(chat="oc_group", thread="omt_8"), "b", key="k2")


async def test_a_reply_to_a_recalled_message_stands_in_the_chat_or_its_thread() -> None:
    async with open_stage() as stage:
        gone = stage.platform.world.say("oc_group", "hi", deleted=True)
        await stage.channel.post(GROUP, "a", key="k1", reply_to=gone.id)
        assert (stage.last().parent, stage.last().chat) == (None, "oc_group")
        root = stage.platform.world.say("oc_group", "root", thread="omt_1")
        late = stage.platform.world.say("oc_group", "late", thread="omt_1", deleted=True)
        thread = Target(chat="oc_group", thread="omt_1")
        await stage.channel.post(thread, "b", key="k2", reply_to=late.id)
        assert stage.last().parent == root.id


@pytest.mark.parametrize(
    ("fault", "error", "retry_after_s"),
    [
        pytest.param({"code": 99991400, "status": 400, "headers": {"X-Ogw-Ratelimit-Reset": "7"}}, DeliveryDelayed, 7.0, id="frequency"),
        pytest.param({"code": 230020, "status": 400}, DeliveryDelayed, None, id="chat-frequency"),
        pytest.param({"code": 11232, "status": 400}, DeliveryDelayed, None, id="bot-frequency"),
        pytest.param({"code": 0, "status": 429}, DeliveryDelayed, None, id="429"),
        pytest.param({"kind": "apply_and_fail"}, DeliveryUncertain, None, id="502-after-applying"),
        pytest.param({"kind": "garbage"}, DeliveryUncertain, None, id="page-of-a-proxy"),
        pytest.param({"code": 300120, "status": 400}, DeliveryUncertain, None, id="300120"),
        pytest.param({"code": 230002, "status": 400}, DeliveryImpossible, None, id="not-in-chat"),
        pytest.param({"code": 230022, "status": 400}, DeliveryImpossible, None, id="sensitive"),
        pytest.param({"code": 230025, "status": 400}, DeliveryImpossible, None, id="too-long"),
        pytest.param({"code": 99991672, "status": 400}, DeliveryImpossible, None, id="scope"),
        pytest.param({"code": 7, "status": 400}, DeliveryImpossible, None, id="unknown"),
    ],
)  # fmt: skip
async def test_a_refusal_is_the_error_of_its_code_and_nothing_is_sent_twice(
    fault: dict[str, Any], error: type[DeliveryError], retry_after_s: float | None
) -> None:
    async with open_stage() as stage:
        question = stage.platform.world.say("oc_group", "hi")
        stage.platform.faults.append(CallFault(path=MESSAGES, method="POST", **fault))
        with pytest.raises(error) as raised:
            await stage.channel.post(GROUP, "a", key="k1", reply_to=question.id)
        assert type(raised.value).__mro__[:2].count(error) == 1
        if isinstance(raised.value, DeliveryDelayed):
            assert raised.value.retry_after_s == retry_after_s
        sent = await stage.channel.post(GROUP, "a", key="k1", reply_to=question.id)
        assert len(stage.platform.world.messages) == 2
        assert stage.platform.world.messages[sent.message].parent == question.id


async def test_a_call_that_hangs_is_uncertain_after_twenty_seconds() -> None:
    async with open_stage() as stage:
        await stage.channel.post(GROUP, "token", key="k0")
        stage.platform.faults.append(CallFault(path=MESSAGES, kind="apply_and_hang"))
        await times_out(stage)
        sent = await stage.channel.post(GROUP, "a", key="k1")
        assert (len(stage.platform.world.messages), sent.message) == (2, stage.last().id)


async def times_out(stage: Stage) -> None:
    async def post() -> None:
        with pytest.raises(DeliveryUncertain, match="no answer within 20 s"):
            await stage.channel.post(GROUP, "a", key="k1")

    async with anyio.create_task_group() as group:
        group.start_soon(post)
        await until(lambda: len(stage.platform.world.messages) == 2)
        stage.clock.advance(20)


async def test_a_platform_that_is_not_there_is_a_delay() -> None:
    async with open_stage() as stage:
        await stage.platform.stop()
        with pytest.raises(DeliveryDelayed, match="cannot be reached"):
            await stage.channel.post(GROUP, "a", key="k1")


async def test_a_token_is_renewed_before_its_end_and_once_after_a_refusal() -> None:
    async with open_stage() as stage:
        await stage.channel.post(GROUP, "a", key="k1")
        stage.clock.advance(6_599)
        await stage.channel.post(GROUP, "b", key="k2")
        assert stage.platform.calls.count(("POST", TOKEN)) == 1
        stage.clock.advance(2)
        await stage.channel.post(GROUP, "c", key="k3")
        assert stage.platform.calls.count(("POST", TOKEN)) == 2
        stage.platform.routes.expire_tokens()
        await stage.channel.post(GROUP, "d", key="k4")
        assert stage.platform.calls.count(("POST", TOKEN)) == 3
        stage.platform.faults.append(CallFault(path=MESSAGES, code=99991663, status=400, times=2))
        with pytest.raises(DeliveryDelayed, match="check the app id and secret"):
            await stage.channel.post(GROUP, "e", key="k5")


async def test_a_wrong_secret_is_named_and_no_message_is_lost_for_it() -> None:
    async with open_stage() as stage:
        stage.platform.faults.append(CallFault(path=TOKEN, code=10014, status=200))
        with pytest.raises(DeliveryDelayed, match=r"code 10014.*check the app id, the app secret"):
            await stage.channel.post(GROUP, "a", key="k1")


async def test_rates_of_the_platform_are_delays() -> None:
    async with open_stage() as stage:
        stage.platform.world.enforces_rates = True
        for number in range(5):
            await stage.channel.post(GROUP, "a", key=f"k{number}")
        with pytest.raises(DeliveryDelayed) as raised:
            await stage.channel.post(GROUP, "a", key="k6")
        assert raised.value.retry_after_s == 1.0
        stage.clock.advance(1)
        await stage.channel.post(GROUP, "a", key="k6")


async def test_a_picture_is_sent_as_one_and_other_files_as_files() -> None:
    async with open_stage() as stage:
        await stage.channel.post_file(GROUP, "chart.PNG", b"\x89PNG", key="k1")
        assert stage.last().kind == "image"
        await stage.channel.post_file(GROUP, "ändern.diff", b"+1\r\n\r\n--x--", key="k2")
        assert stage.last().kind == "file"
        key = json.loads(stage.last().content)["file_key"]
        assert stage.platform.world.resources[key] == b"+1\r\n\r\n--x--"
        with pytest.raises(DeliveryImpossible, match=r"31,457,281 bytes.*accepts 1 to 31,457,280"):
            await stage.channel.post_file(GROUP, "a", bytes(30 * 1024 * 1024 + 1), key="k3")


async def test_a_file_is_read_in_chunks_and_refused_beyond_the_limit() -> None:
    async with open_stage() as stage:
        world = stage.platform.world
        world.resources.update({"img_1": b"\1" * 200_000, "img_2": 100 * 1024 * 1024 + 1})

        async def read(key: str, limit: int) -> int:
            attachment = ChatAttachment(ref=f"om_1/image/{key}", name="a.png")
            return sum([len(c) async for c in stage.channel.fetch(attachment, limit_bytes=limit)])

        assert await read("img_1", 200_000) == 200_000
        for key, limit in (("img_1", 199_999), ("img_2", 1_000_000)):
            with pytest.raises(DeliveryImpossible, match=f"more than {limit} bytes"):
                await read(key, limit)
        with pytest.raises(DeliveryImpossible, match="234003"):
            await read("img_3", 10)
        with pytest.raises(DeliveryImpossible, match="none of Lark"):
            await read("../x", 10)


async def test_one_reaction_of_the_bot_stays_and_those_of_others_too() -> None:
    async with open_stage() as stage:
        message = stage.platform.world.say("oc_group", "hi")
        message.reactions["r0"] = ("ou_bob", "OnIt")
        for reaction in ("started", "started", "completed"):
            await stage.channel.react(message.id, reaction)
        assert sorted(message.reactions.values()) == [("cli_app", "DONE"), ("ou_bob", "OnIt")]
