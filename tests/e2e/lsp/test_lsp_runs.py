"""Runs over LSP: acknowledged at once, streamed in order, steered, cancelled, and answered when asked wrongly."""

import time

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import HELIX, MINIMAL, PANEL, VSCODE
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


async def test_the_smallest_client_prompts_and_waits(ground: Ground) -> None:
    ground.provider.script([says("Hello there")])
    async with ground.client(MINIMAL) as client:
        result = await client.request("agent/prompt", prompt("hi", wait=True))
        assert (result["status"], result["message"]) == ("completed", "Hello there")
        assert result["usage"]["context"]["size"] == 32_000
        await client.shutdown()
        assert await client.exit() == 0
    kinds = [entry["type"] for entry in ground.entries()]
    assert kinds[0] == "session"
    assert kinds.count("message") == 2


async def test_the_answer_precedes_the_first_event_and_ranges_have_no_holes(
    ground: Ground,
) -> None:
    ground.provider.script([{"text": "word " * 200, "deltas": 200}])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        accepted = await client.request("agent/prompt", prompt("go", messageId="m1"))
        assert accepted["accepted"] == "started"
        await stream.wait(type="run.ended")
        started = stream.of("run.started")[0]
        assert started["messageId"] == "m1"
        assert started["seq"] > accepted["seq"]
        answer = next(i for i, m in enumerate(client.received) if m.get("result") == accepted)
        frames = [
            i
            for i, m in enumerate(client.received)
            if any(e["type"] == "run.started" for e in _events(m))
        ]
        assert answer < frames[0]
        text = "".join(event["text"] for event in stream.of("message.delta"))
        assert text == "word " * 200
        assert stream.faults == []
        again = await client.request("agent/prompt", prompt("go", messageId="m1"))
        assert (again["accepted"], again["run"]) == ("duplicate", accepted["run"])


async def test_a_snapshot_in_mid_run_shows_what_has_come(ground: Ground) -> None:
    ground.provider.script([{"text": "a b c d ", "deltas": 4, "stall_forever_after_deltas": 3}])
    async with ground.client(PANEL) as client:
        first = client.subscribe()
        await client.request("agent/prompt", prompt("go"))
        await first.wait(type="message.delta")
        await client.request("agent/status", {})
        late = client.subscribe()
        await late.ready()
        assert late.snapshot is not None
        assert late.snapshot["state"] == "running"
        items = late.snapshot["run"]["items"]
        assert [item["role"] for item in items] == ["user", "assistant"]
        await client.request("agent/run/cancel", {})


async def test_cancel_answers_fast_leaves_no_process_and_ends_the_run_once_and_last(
    ground: Ground,
) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 600 & sleep 600"}))])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        accepted = await client.request("agent/prompt", prompt("sleep"))
        await stream.wait(type="tool.running")
        sleepers = processes_with("sleep", "600", below=client.pid, at_least=2)
        begun = time.monotonic()
        result = await client.request("agent/run/cancel", {"run": accepted["run"]})
        took_s = time.monotonic() - begun
        print(f"cancel answered after {took_s * 1000:.0f} ms")
        assert result["status"] == "cancelled"
        assert result["survivors"] == []
        wait_gone(sleepers, timeout_s=2)
        assert took_s < 0.5
        ended = stream.of("run.ended")
        assert [event["status"] for event in ended] == ["cancelled"]
        assert result["seq"] >= ended[0]["seq"]
        late = await client.request("agent/run/cancel", {"run": accepted["run"]})
        assert late["status"] == "alreadyEnded"
        after = [event for event in stream.events if event["seq"] > ended[0]["seq"]]
        assert [event for event in after if event.get("run") == accepted["run"]] == []


@pytest.mark.parametrize(("grace_ms", "said_goodbye"), [(0, False), (3000, True)])
async def test_a_cancel_gives_processes_the_grace_it_names(
    ground: Ground, grace_ms: int, said_goodbye: bool
) -> None:
    command = "trap 'sleep 0.5; echo bye > bye.txt; exit' TERM; sleep 600 & echo ready; wait"
    ground.provider.script([calls(("bash", {"command": command}))])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("sleep"))
        await stream.wait(type="tool.output.delta")
        sleepers = processes_with("sleep", "600", below=client.pid, at_least=1)
        result = await client.request("agent/run/cancel", {"graceMs": grace_ms})
        assert (result["status"], result["survivors"]) == ("cancelled", [])
        wait_gone(sleepers, timeout_s=2)
        assert (ground.root / "bye.txt").exists() == said_goodbye


async def test_a_cancelled_wait_cancels_the_run_and_answers_with_its_result(
    ground: Ground,
) -> None:
    ground.provider.script([{"text": "half", "stall_forever_after_deltas": 3}])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        call = client.call("agent/prompt", prompt("go", wait=True))
        await stream.wait(type="message.delta")
        call.cancel()
        result = await call.result()
        assert result["status"] == "cancelled"


async def test_steering_reaches_the_model_in_the_same_run(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 600"})), says("changed course")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go"))
        await stream.wait(type="tool.running")
        accepted = await client.request(
            "agent/steer", {"content": [{"type": "text", "text": "stop that"}]}
        )
        assert accepted["accepted"] == "steered"
        await stream.wait(type="run.ended")
        assert len(stream.of("run.started")) == 1
        tool = stream.of("tool.ended")[0]
        assert tool["status"] == "cancelled"
        assert "the user sent a new message" in tool["content"][0]["text"]
        said = [m for m in ground.provider.requests[-1]["body"]["messages"] if m["role"] == "user"]
        assert "stop that" in str(said[-1]["content"])


async def test_a_follow_up_waits_for_the_end_of_the_run(ground: Ground) -> None:
    ground.provider.script([{"text": "one", "delay_s": 0.3}, says("two")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("first"))
        queued = await client.request("agent/followUp", {"content": "second"})
        assert queued["accepted"] == "queued"
        await stream.wait(type="run.ended")
        assert [m["content"][0]["text"] for m in stream.of("message.ended")] == [
            "first",
            "one",
            "second",
            "two",
        ]


async def test_a_plain_client_sends_stops_and_sees_progress(ground: Ground) -> None:
    ground.provider.script([{"text": "working", "stall_forever_after_deltas": 1}])
    async with ground.client(HELIX) as client:
        commands = client.result["capabilities"]["executeCommandProvider"]["commands"]
        known = {
            "tiller.send",
            "tiller.stop",
            "tiller.steer",
            "tiller.compact",
            "tiller.restore",
            "tiller.trust",
        }
        assert known <= set(commands)
        sent = await client.request(
            "workspace/executeCommand", {"command": "tiller.send", "arguments": ["do it"]}
        )
        assert sent["accepted"] == "started"
        created = await client.wait_for(
            lambda m: m.get("method") == "window/workDoneProgress/create"
        )
        token = created["params"]["token"]
        await client.wait_for(lambda m: _progress_kind(m, token) == "begin")
        stopped = await client.request(
            "workspace/executeCommand", {"command": "tiller.stop", "arguments": []}
        )
        assert stopped["status"] == "cancelled"
        end = await client.wait_for(lambda m: _progress_kind(m, token) == "end")
        assert "cancelled" in end["params"]["value"]["message"]
        assert client.undeclared == []


async def test_configure_changes_what_is_in_force_and_never_loosens_permission(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "ask"})
    async with ground.client(PANEL) as client:
        set_ = {"set": {"thinking": "high", "steering": "all", "tools": "read"}}
        answer = await client.request("agent/session/configure", set_)
        assert answer["config"]["thinking"] == "high"
        assert answer["config"]["steering"] == "all"
        assert answer["config"]["tools"] == ["read"]
        with pytest.raises(ClientError) as refused:
            await client.request("agent/session/configure", {"set": {"mode": "yolo"}})
        assert refused.value.data["kind"] == "PermissionDenied"
        stricter = await client.request("agent/session/configure", {"set": {"mode": "plan"}})
        assert stricter["config"]["mode"] == "plan"


async def test_a_command_is_refused_with_the_words_how_to_allow_it(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("ok")])
    options = {"agent": {"permission": {"fallback": "rules"}}}
    async with ground.client(PANEL, options=options) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go", wait=True))
        tool = stream.of("tool.ended")[0]
        assert tool["status"] == "blocked"
        stored = (await client.request("agent/session/read", {}))["items"]
        assert [one["status"] for one in stored if one["kind"] == "tool"] == ["blocked"]
        assert '"mode": "yolo"' in tool["content"][0]["text"]
        assert not (ground.root / "x").exists()


@pytest.mark.parametrize(
    ("method", "params", "code", "kind"),
    [
        ("agent/prompt", {"content": 5}, -32602, None),
        ("agent/prompt", {"content": []}, -32602, None),
        ("agent/prompt", {}, -32602, None),
        ("agent/prompt", {"session": "nope", "content": "x"}, -32803, "SessionNotFound"),
        ("agent/prompt", {"content": "x", "expectedRun": "r"}, -32801, "RunMismatch"),
        ("agent/steer", {"content": "x", "ifIdle": "reject"}, -32803, "RunNotActive"),
        ("agent/session/open", {"session": "nope"}, -32803, "SessionNotFound"),
        ("agent/session/open", {"folders": ["file:///does/not/exist"]}, -32803, "RootNotAllowed"),
        ("agent/session/configure", {"set": {"model": "no/such"}}, -32803, "AuthRequired"),
        ("agent/session/configure", {"set": {"tools": "nothing"}}, -32602, None),
        ("agent/unheard", {}, -32601, None),
    ],
)
async def test_bad_input_gets_one_clear_error_and_loses_nothing(
    ground: Ground, method: str, params: dict[str, object], code: int, kind: str | None
) -> None:
    ground.provider.script([says("still here")])
    async with ground.client(PANEL) as client:
        with pytest.raises(ClientError) as refused:
            await client.request(method, params)
        assert refused.value.code == code
        assert len(refused.value.message) > 10
        assert "Traceback" not in refused.value.message
        if kind is not None:
            assert refused.value.data["kind"] == kind
        result = await client.request("agent/prompt", prompt("go on", wait=True))
        assert result["message"] == "still here"


async def test_a_second_prompt_with_delivery_reject_is_busy(ground: Ground) -> None:
    ground.provider.script([{"text": "slow", "stall_forever_after_deltas": 1}])
    async with ground.client(PANEL) as client:
        await client.request("agent/prompt", prompt("one"))
        with pytest.raises(ClientError) as busy:
            await client.request("agent/prompt", prompt("two", delivery="reject"))
        assert busy.value.data["kind"] == "SessionBusy"
        await client.request("agent/run/cancel", {})


async def test_a_model_that_says_no_ends_the_run_as_refused(ground: Ground) -> None:
    ground.provider.script([{"text": "I would", "stop": "content_filter"}, says("gladly")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        result = await client.request("agent/prompt", prompt("hi", wait=True))
        ended = await stream.wait(type="run.ended")
        for told in (result, ended):
            assert told["status"] == "refused"
            assert told["error"]["kind"] == "ModelError"
            assert "refused to answer" in told["error"]["message"]
        again = await client.request("agent/prompt", prompt("and this?", wait=True))
        assert (again["status"], again["message"]) == ("completed", "gladly")


async def test_without_a_key_a_prompt_says_what_to_do(ground: Ground) -> None:
    (ground.dirs.config / "models.json").unlink()
    (ground.dirs.config / "settings.json").unlink()
    async with ground.client(PANEL) as client:
        with pytest.raises(ClientError) as refused:
            await client.request("agent/prompt", prompt("hi"))
        assert refused.value.data["kind"] == "AuthRequired"
        assert "API_KEY" in refused.value.message
    assert ground.sessions() == []


async def test_broken_settings_are_told_with_their_place_and_stop_nothing(
    ground: Ground,
) -> None:
    path = ground.dirs.config / "settings.json"
    path.write_text(path.read_text("utf-8").replace('"yolo"', '"yodo"'), encoding="utf-8")
    ground.provider.script([says("fine")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("hi", wait=True))
        notice = stream.of("notice")[0]["text"]
        assert "settings.json" in notice
        assert "permission.mode" in notice


async def test_compact_is_acknowledged_and_told(ground: Ground) -> None:
    ground.provider.script([says("short")])
    async with ground.client(PANEL) as client:
        await client.request("agent/prompt", prompt("hi", wait=True))
        answer = await client.request("agent/compact", {})
        assert answer["compaction"] is None
        assert "short" in answer["why"]


async def test_a_client_that_leaves_does_not_lose_the_session(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with ground.client(PANEL) as client:
        await client.request("agent/prompt", prompt("first", wait=True))
        client.link.close_input()
        assert await client.exit_code() == 0
    async with ground.client(VSCODE) as client:
        opened = await client.request("agent/session/open", {"session": "latest"})
        await client.request("agent/prompt", prompt("second", wait=True))
        assert ground.entries()[0]["id"] == opened["session"]
    assert len(ground.provider.requests[-1]["body"]["messages"]) >= 4


async def test_status_tells_what_is_open(ground: Ground) -> None:
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {})
        status = await client.request("agent/status", {})
        assert [one["session"] for one in status["sessions"]] == [opened["session"]]


def _events(message: dict[str, object]) -> list[dict[str, object]]:
    params = message.get("params")
    value = params.get("value", {}) if isinstance(params, dict) else {}
    return value.get("events", []) if isinstance(value, dict) else []


def _progress_kind(message: dict[str, object], token: object) -> object:
    params = message.get("params")
    if message.get("method") != "$/progress" or not isinstance(params, dict):
        return None
    return params["value"].get("kind") if params.get("token") == token else None
