"""An approval is a card; a click is answered within three seconds, with the redrawn card."""

import json

import anyio
import pytest

from agent_core.channels.messaging.port import (
    ClickReply,
    DeliveryDelayed,
    DeliveryImpossible,
    InboundClick,
    Sender,
    Settlement,
    Target,
)
from tests.support.lark import happenings
from tests.support.lark.card_schema import buttons, check_card, shown_text
from tests.support.lark.faults import CallFault
from tests.support.lark.samples import AT_MS, prompt
from tests.support.lark.sockets import Ack
from tests.support.lark.stage import GROUP, connected_stage, open_stage, until

ALLOWED = Settlement(label="Allowed once", by="Ada", at_ms=AT_MS, allowed=True)


async def test_a_click_arrives_with_its_button_and_is_answered_with_toast_and_card() -> None:
    async with connected_stage() as stage:
        stage.sink.reply = ClickReply(
            text="Allowed once", kind="success", prompt=prompt(), settlement=ALLOWED
        )
        sent = await stage.channel.ask(GROUP, prompt(), key="k1")
        message = stage.platform.world.messages[sent.message]
        value = buttons(json.loads(message.content))[0]
        ack = await stage.platform.sockets.deliver(
            happenings.click(message, value), message_id="f1"
        )
        assert stage.sink.clicks == [
            InboundClick(
                key="ev-click:q1",
                target=Target(chat="oc_group"),
                message=sent.message,
                sender=Sender(id="ou_ada", name="Ada"),
                request="q1",
                option="once",
                digest="9f86d081884c7d65",
                at_ms=message.at_ms,
            )
        ]
        assert ack.data["toast"] == {"type": "success", "content": "Allowed once"}
        assert ack.data["card"]["type"] == "raw"
        card = check_card(json.dumps(ack.data["card"]["data"]))
        assert (buttons(card), "Allowed once" in shown_text(card)) == ([], True)


async def test_a_choice_from_a_list_and_values_of_a_form_are_passed_on() -> None:
    async with connected_stage() as stage:
        message = stage.platform.world.say("oc_group", "")
        event = happenings.click(
            message,
            {"r": "q1", "h": "d"},
            option="o12",
            form_value={"note": "later", "days": ["mo", "tu"], "empty": None},
        )
        await stage.platform.sockets.deliver(event, message_id="f1")
        (click,) = stage.sink.clicks
        assert (click.option, click.form) == (
            "o12", {"note": "later", "days": "mo, tu", "empty": ""},
        )  # fmt: skip


@pytest.mark.parametrize("value", [None, {}, "text", {"r": "q1", "o": 3, "h": "d"}, {"o": "once"}])
async def test_a_button_that_is_none_of_ours_is_answered_and_changes_nothing(value: object) -> None:
    async with connected_stage() as stage:
        message = stage.platform.world.say("oc_group", "")
        ack = await stage.platform.sockets.deliver(
            happenings.click(message, value), message_id="f1"
        )
        assert ack.data == {
            "toast": {"type": "warning", "content": "This button is not in use any more."}
        }
        assert stage.sink.clicks == []


async def test_a_click_that_nobody_decides_is_answered_in_time_and_events_go_on() -> None:
    async with connected_stage() as stage:
        sockets = stage.platform.sockets
        stage.sink.hangs = True
        message = stage.platform.world.say("oc_group", "")
        acks: list[Ack] = []

        async def click() -> None:
            event = happenings.click(message, {"r": "q1", "o": "once", "h": "d"})
            acks.append(await sockets.deliver(event, message_id="click"))

        async with anyio.create_task_group() as group:
            group.start_soon(click)
            await until(lambda: stage.sink.clicks)
            stage.sink.hangs = False
            event = happenings.message(stage.platform.world.say("oc_group", "meanwhile"))
            await sockets.deliver(event, message_id="f1")
            assert (stage.sink.texts, acks) == (["meanwhile"], [])
            stage.clock.advance(2.6)
        assert acks[0].data == {
            "toast": {
                "type": "error",
                "content": "Not recorded. Try again, or answer by text.",
            }
        }


async def test_an_approval_is_redrawn_by_its_message_too() -> None:
    async with open_stage() as stage:
        sent = await stage.channel.ask(GROUP, prompt(), key="k1")
        await stage.channel.settle(GROUP, sent.message, prompt(), ALLOWED)
        card = check_card(stage.platform.world.messages[sent.message].content)
        assert "**Allowed once** by Ada" in shown_text(card)
        stage.clock.advance(15 * 24 * 3600)
        with pytest.raises(DeliveryImpossible, match="older than 14 days"):
            await stage.channel.settle(GROUP, sent.message, prompt(), ALLOWED)


async def test_an_approval_is_asked_once_and_a_card_that_is_refused_is_an_error() -> None:
    async with open_stage() as stage:
        stage.platform.faults.append(
            CallFault(path="/open-apis/im/v1/messages", code=230020, status=400)
        )
        with pytest.raises(DeliveryDelayed):
            await stage.channel.ask(GROUP, prompt(), key="k1")
        for _ in range(2):
            await stage.channel.ask(GROUP, prompt(), key="k1")
        assert len(stage.platform.world.messages) == 1
        stage.platform.world.accepts_cards = False
        with pytest.raises(DeliveryImpossible, match="230099"):
            await stage.channel.ask(GROUP, prompt(), key="k2")
