"""The fake platform runs as a program, for demonstrations, and the adapter works with it on the clock of the machine."""

import subprocess
import sys

import anyio

from agent_core.kernel import SystemClock
from tests.support.harness.shared import ROOT
from tests.support.lark.stage import RecordingSink, until
from tiller_server.channels.lark.api.account import LarkAccount
from tiller_server.channels.lark.channel import open_lark


async def test_a_line_of_its_input_is_a_message_that_can_be_answered(
    child_env: dict[str, str],
) -> None:
    process = await anyio.open_process(
        [sys.executable, "-m", "tests.support.lark.platform"],
        cwd=ROOT,
        env={**child_env, "PYTHONPATH": f"{ROOT}:{ROOT / 'server'}"},
        stderr=subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        assert process.stdin is not None
        printed = b""
        while printed.count(b"\n") < 3:
            printed += await process.stdout.receive()
        fields = dict(line.split() for line in printed.decode().splitlines())
        account = LarkAccount(
            app_id=fields["app"], app_secret=fields["secret"], domain=fields["url"]
        )
        sink = RecordingSink()
        async with open_lark(account, SystemClock()) as channel, anyio.create_task_group() as group:
            group.start_soon(channel.run, sink)
            await until(sink.is_connected)
            await process.stdin.send(b"hello there\n")
            await until(lambda: sink.texts == ["hello there"])
            message = sink.events[0]
            answer = await channel.open_answer(message.target, key="k1", reply_to=message.key)
            await answer.finish("hello", "completed")
            assert await channel.find_sent(message.target, key="k1", since_ms=0) is not None
            group.cancel_scope.cancel()
    finally:
        process.kill()
        await process.wait()
        await process.aclose()
