"""`tiller lark` as its own process, beside a daemon of its own, a platform on loopback and a scripted provider."""

import json
import signal
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from agent_core.kernel import SystemClock
from tests.support.channels.processes import chat_process, healthy_status, output
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.lark import happenings
from tests.support.lark.card_schema import buttons, shown_text
from tests.support.lark.platform import LarkPlatform, open_platform
from tests.support.lark.routes import SECRET
from tests.support.lark.stage import until
from tests.support.lark.world import APP, BOT, Sent

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture
async def platform() -> AsyncGenerator[LarkPlatform]:
    async with open_platform(SystemClock()) as served:
        served.world.enforces_rates = True
        yield served


def configure(ground: Ground, platform: LarkPlatform, **more: Any) -> None:
    app = {
        "appId": APP,
        "domain": platform.url,
        "people": ["ou_ada"],
        "approvers": ["ou_ada"],
        "workspaces": {"shop": {"folder": str(ground.root)}},
        **more,
    }
    ground.configure(channels={"lark": app}, permission={"mode": "ask"}, sandbox="off")


def environment(ground: Ground) -> Mapping[str, str]:
    return {**ground.env, "LARK_APP_SECRET": SECRET}


def shown(platform: LarkPlatform, message: Sent) -> str:
    if message.card is None:
        return (
            shown_text(json.loads(message.content))
            if message.kind == "interactive"
            else message.content
        )
    return shown_text(platform.world.cards[message.card].data)


def sent(platform: LarkPlatform, text: str) -> list[Sent]:
    own = [one for one in platform.world.messages.values() if one.sender != "ou_ada"]
    return [one for one in own if text in shown(platform, one)]


async def test_a_mention_is_answered_in_a_card_of_its_topic_after_an_approval(
    ground: Ground, platform: LarkPlatform
) -> None:
    ground.provider.script(
        [
            calls(("bash", {"command": "echo $LARK_APP_SECRET > secret.txt"}), text="I look."),
            says("All is mended."),
        ]
    )
    configure(ground, platform)
    env = environment(ground)
    try:
        async with chat_process("lark", env) as process:
            await until(lambda: platform.sockets.connections, within_s=30)
            said = platform.world.say("oc_group", "@_user_1 mend it")
            event = happenings.message(said, mentions=[happenings.MENTION])
            await platform.sockets.deliver(event, message_id="f1")
            await until(lambda: sent(platform, "echo $LARK_APP_SECRET"), within_s=30)
            (approval,) = sent(platform, "echo $LARK_APP_SECRET")
            value = buttons(json.loads(approval.content))[0]
            ack = await platform.sockets.deliver(happenings.click(approval, value), message_id="f2")
            assert ack.data["toast"]["type"] == "success"
            await until(lambda: sent(platform, "All is mended."), within_s=30)
            (answer,) = sent(platform, "All is mended.")
            assert answer.thread == said.thread == f"omt_{said.id}"
            await until(lambda: buttons(json.loads(approval.content)) == [])
            status = await healthy_status("lark", env)
            assert "connection  connected\n" in status
            assert SECRET not in status
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
        assert not (ground.root / "secret.txt").read_text("utf-8").strip()
    finally:
        end_daemon(ground.env)


async def test_doctor_names_what_is_missing(ground: Ground, platform: LarkPlatform) -> None:
    env = environment(ground)
    configure(ground, platform, appId=None)
    code, text = await output("lark", env, "doctor")
    assert code == 1
    assert "channels.lark.appId is not set" in text
    configure(ground, platform)
    code, text = await output("lark", env, "doctor")
    assert (code, text.splitlines()[-1]) == (0, "0 of 4 do not work, 0 should be known")
    platform.socket_faults.endpoint_code = 1000040350
    code, text = await output("lark", env, "doctor")
    assert code == 1
    assert "1000040350" in text
    assert BOT not in text
