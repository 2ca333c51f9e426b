"""The fake platform is not our own imagination: the official SDK works with it as it is."""

import json
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from tests.support.harness.clock import HeldClock
from tests.support.harness.shared import ROOT
from tests.support.lark import happenings
from tests.support.lark.card_schema import shown_text
from tests.support.lark.platform import open_platform
from tests.support.lark.routes import SECRET
from tests.support.lark.world import APP

CLIENT = ROOT / "tests" / "support" / "lark" / "sdk_client.py"


@pytest.mark.skipif(find_spec("lark_oapi") is None, reason="lark-oapi is not installed")
@pytest.mark.timeout(90)
async def test_a_bot_of_the_official_sdk_works_with_the_fake(
    child_env: dict[str, str], tmp_path: Path
) -> None:
    async with open_platform(HeldClock()) as platform:
        # -P: a module of the folder of the program is called `platform`, as one of Python is.
        command = [sys.executable, "-P", str(CLIENT), platform.url, APP, SECRET]
        log = tmp_path / "log"
        with log.open("wb") as output:
            process = await anyio.open_process(
                command, env=child_env, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            with anyio.fail_after(40):
                sockets, world = platform.sockets, platform.world
                await sockets.until(lambda: sockets.pings)
                (card,) = world.cards.values()
                assert (shown_text(card.data), card.is_streaming) == ("from the SDK", False)
                sent = world.say("oc_group", "hello")
                ack = await sockets.deliver(happenings.message(sent), message_id="f1")
                assert (ack.code, "biz_rt" in ack.headers) == (200, True)
                echo = list(world.messages.values())[-1]
                assert (echo.content, echo.parent) == (json.dumps({"text": "echo hello"}), sent.id)
                value = {"r": "q1", "o": "once", "h": "d"}
                await sockets.push(
                    happenings.click(sent, value), message_id="f2", parts=3, order=[2, 0, 1]
                )
                await sockets.until(lambda: len(sockets.acks) == 2)
                assert sockets.acks[1].data == {"toast": {"type": "info", "content": "once"}}
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            printed = log.read_text("utf-8")
            print(printed)
        assert "listed 1" in printed
