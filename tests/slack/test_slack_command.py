"""`tiller slack` as its own process, beside a daemon of its own, Slack on loopback and a scripted provider."""

import asyncio
import json
import signal
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.channels.processes import chat_process, healthy_status, output
from tests.support.clients.server import TILLER, Ground, calls, says
from tests.support.clients.shims import end_daemon
from tests.support.slack.platform import APP_TOKEN, BOT, BOT_TOKEN, SlackPlatform

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
PEOPLE = {"people": ["U1", "U2"], "approvers": ["U2"]}


def configure(ground: Ground, **more: Any) -> None:
    app = {**PEOPLE, "workspaces": {"shop": {"folder": str(ground.root)}}, **more}
    ground.configure(channels={"slack": app}, permission={"mode": "ask"}, sandbox="off")


def environment(ground: Ground, platform: SlackPlatform) -> Mapping[str, str]:
    return {
        **ground.env,
        "SLACK_APP_TOKEN": APP_TOKEN,
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_API_URL": platform.workspace.base_url,
    }


async def test_a_message_is_answered_after_an_approval_in_slack_also_by_a_process_that_is_killed(
    ground: Ground, platform: SlackPlatform
) -> None:
    ground.provider.script(
        [
            calls(("bash", {"command": "echo $SLACK_BOT_TOKEN > token.txt"}), text="I look."),
            {**says("All is mended."), "repeat": -1},
        ]
    )
    configure(ground)
    env = environment(ground, platform)
    workspace = platform.workspace

    def asked() -> list[dict[str, Any]]:
        return [one for one in workspace.channels["C1"] if "actions" in str(one.get("blocks"))]

    try:
        async with chat_process("slack", env):
            await platform.until(lambda: platform.connections == 1, within_s=30)
            said = await platform.say("C1", f"<@{BOT}> mend it")
            await platform.until(lambda: bool(asked()), within_s=30)
            (approval,) = asked()
            assert approval["thread_ts"] == said["ts"]
            await platform.click(approval, "C1", user="U1")
            await platform.until(lambda: bool(workspace.ephemeral))
            assert "U1" not in workspace.ephemeral[0]["text"]
            await platform.click(approval, "C1", user="U2")
            await platform.until(
                lambda: "All is mended." in str(workspace.texts("C1")), within_s=30
            )
            await platform.until(lambda: "actions" not in str(approval["blocks"]))
            await platform.say("D1", "!help", user="U1")
            await platform.until(lambda: "!stop: stop the run" in str(workspace.texts("D1")))
            status = await healthy_status("slack", env, "--json")
            assert json.loads(status)["status"]["connection"] == "connected"
            assert (await output("slack", env))[0] == 2, (
                "a second process would take the events of the first"
            )
        assert not (ground.root / "token.txt").read_text("utf-8").strip()
        assert (await output("slack", env, "status"))[1] == "tiller slack does not run\n"
        # What is said while no process runs is read from the history.
        channel = workspace.channels["C1"]
        channel.append(
            {
                "type": "message",
                "user": "U1",
                "text": f"<@{BOT}> and again",
                "ts": workspace.stamp(),
                "thread_ts": said["ts"],
            }
        )
        async with chat_process("slack", env) as process:
            await platform.until(
                lambda: str(workspace.texts("C1")).count("All is mended.") == 2, within_s=30
            )
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
    finally:
        end_daemon(ground.env)


async def test_doctor_names_what_is_missing(ground: Ground, platform: SlackPlatform) -> None:
    env = environment(ground, platform)
    ground.configure()
    code, text = await output("slack", env, "doctor")
    assert code == 1
    assert "channels.slack.workspaces is empty" in text
    configure(ground)
    code, text = await output("slack", env, "doctor")
    assert (code, text.splitlines()[-1]) == (0, "0 of 4 do not work, 0 should be known")
    assert f"Slack accepts the app T1.{BOT}" in text
    platform.faults["apps.connections.open"].append("invalid_auth")
    code, text = await output("slack", env, "doctor", "--json")
    assert code == 1
    (app,) = [one for one in json.loads(text)["checks"] if one["name"] == "app"]
    assert app["found"] == "Slack refused apps.connections.open: invalid_auth"
    code, text = await output("slack", {**env, "SLACK_BOT_TOKEN": ""}, "doctor")
    assert "set SLACK_BOT_TOKEN, or run tiller slack login" in text


async def test_a_damaged_file_of_messages_is_one_sentence(
    ground: Ground, platform: SlackPlatform
) -> None:
    configure(ground)
    file = ground.dirs.data / "channels" / f"slack-T1.{BOT}.sqlite3"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database" * 1000)
    process = await asyncio.create_subprocess_exec(
        *TILLER, "slack", env=dict(environment(ground, platform)), stderr=asyncio.subprocess.PIPE
    )
    _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode().startswith("tiller slack: The file of chat messages ")
    assert len(err.decode().splitlines()) == 1
