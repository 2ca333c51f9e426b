"""A session sends its runs, model calls, tools and tasks to a collector, with the published names."""

import json
from typing import Any

import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.kernel import JsonObject
from agent_core.kernel.ids import marked_run
from agent_core.tools import ToolContext, ToolResult, text_result
from tests.support.clients.server import calls, says
from tests.support.provider import LoopbackProvider, write_config
from tests.support.provider.collector import Collector, Span, attributes_of
from tests.support.session.folders import Folder, ask
from tests.support.workspace.tools import FunctionTool

pytestmark = [pytest.mark.timeout(60)]

CLIENT = 3
INTERNAL = 1


def configure(folder: Folder, lab: LoopbackProvider, url: str, **telemetry: Any) -> None:
    chosen = {
        "sandbox": "off",
        "permission": {"mode": "yolo"},
        "telemetry": {"enabled": True, "endpoint": url, **telemetry},
    }
    write_config(folder.dirs.config, lab, settings=chosen)


async def run(folder: Folder, **more: Any) -> str:
    request = SessionRequest(workspace=folder.root, env=folder.env, trusted=True, **more)
    async with open_session(request) as session:
        await ask(session)
        return session.id


def inside(child: Span, parent: Span) -> bool:
    return (
        child.trace == parent.trace
        and child.parent == parent.id
        and parent.start_ns <= child.start_ns <= child.end_ns <= parent.end_ns
    )


async def test_a_run_is_a_trace_of_its_model_calls_and_tools(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    (folder.root / "a.txt").write_text("hello\n", "utf-8")
    lab.script([calls(("read", {"path": "a.txt"})), says("It says hello.")])
    session = await run(folder)
    run_span = collector.named("invoke_agent tiller")
    first, second = [one for one in collector.spans if one.name.startswith("chat ")]
    tool = collector.named("execute_tool read")
    assert len(collector.spans) == 4
    assert run_span.parent == ""
    assert all(inside(one, run_span) for one in (first, tool, second))
    assert first.end_ns <= tool.start_ns <= tool.end_ns <= second.start_ns
    assert [one.kind for one in (run_span, first, tool)] == [INTERNAL, CLIENT, INTERNAL]
    of_run = run_span.attributes
    assert of_run["gen_ai.operation.name"] == "invoke_agent"
    assert of_run["gen_ai.conversation.id"] == session
    assert (of_run["tiller.run.status"], of_run["tiller.run.turns"]) == ("completed", 2)
    of_call = first.attributes
    assert of_call["gen_ai.provider.name"] == "lab"
    assert of_call["server.address"] == "127.0.0.1"
    assert str(of_call["server.port"]) in lab.base_url
    assert of_call["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert of_call["gen_ai.response.time_to_first_chunk"] > 0
    assert of_call["gen_ai.usage.input_tokens"] > 0
    assert second.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    total = sum(one.attributes["gen_ai.usage.output_tokens"] for one in (first, second))
    assert of_run["gen_ai.usage.output_tokens"] == total
    assert tool.attributes["gen_ai.tool.name"] == "read"
    assert tool.attributes["tiller.tool.status"] == "ok"
    assert not any(one.is_error for one in collector.spans)
    (resource, *_) = collector.got.resources
    assert resource["service.name"] == "tiller"
    assert json.dumps([one.attributes for one in collector.spans]).count("hello") == 0


async def test_calls_side_by_side_and_a_blocked_call_each_have_a_span(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    (folder.root / "a.txt").write_text("hello\n", "utf-8")
    read = ("read", {"path": "a.txt"})
    script = [calls(read, read), calls(("write", {"path": "b.txt", "content": "x"})), says("done")]
    lab.script(script)
    await run(folder, settings={"request": {"permission": {"mode": "plan"}}})
    top, blocked = collector.named("invoke_agent tiller"), collector.named("execute_tool write")
    reads = [one for one in collector.spans if one.name == "execute_tool read"]
    assert len({one.attributes["gen_ai.tool.call.id"] for one in reads}) == 2
    assert all(inside(one, top) for one in (*reads, blocked))
    assert blocked.end_ns == pytest.approx(blocked.start_ns, abs=1_000_000)
    assert (blocked.is_error, blocked.attributes["error.type"]) == (True, "blocked")
    durations = collector.got.metrics["gen_ai.execute_tool.duration"]
    assert [(attributes_of(one)["gen_ai.tool.name"], one.count) for one in durations] == [
        ("read", 2)
    ]


async def test_a_compaction_is_a_model_call_of_its_own_below_its_caller(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    lab.script([says("A long answer. " * 2_000), says("A summary.")])
    request = SessionRequest(
        workspace=folder.root,
        env=folder.env,
        trusted=True,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        settings={"request": {"compaction": {"keepRecentTokens": 10}}},
    )
    async with open_session(request) as session:
        await ask(session)
        await session.compact(keep_recent_tokens=10)
        await session.wait_idle()
    first, second = [one for one in collector.spans if one.name.startswith("chat ")]
    assert (first.parent, second.parent) == (
        collector.named("invoke_agent tiller").id,
        "00f067aa0ba902b7",
    )
    assert {one.trace for one in collector.spans} == {"4bf92f3577b34da6a3ce929d0e0e4736"}


async def test_a_task_is_a_run_below_the_call_that_gave_it(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    (folder.root / "a.txt").write_text("hello\n", "utf-8")
    given = {"description": "find it", "prompt": "CHILD: look", "preset": "explore"}
    lab.script(
        [
            {**calls(("task", given)), "when": "go"},
            {**calls(("read", {"path": "a.txt"})), "when": "CHILD"},
            {**says("It says hello."), "when": "hello"},
            {**says("All done."), "when": "It says"},
        ]
    )
    session = await run(folder)
    top, task = collector.named("invoke_agent tiller"), collector.named("execute_tool task")
    child, read = collector.named("invoke_agent explore"), collector.named("execute_tool read")
    assert {one.trace for one in collector.spans} == {top.trace}
    assert (task.parent, child.parent, read.parent) == (top.id, task.id, child.id)
    assert child.attributes["gen_ai.conversation.id"] != session
    assert [one.parent for one in collector.spans if one.name.startswith("chat ")].count(
        child.id
    ) == 2


async def test_a_model_call_that_fails_and_its_run_are_failed_spans(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    lab.script([{"status": 401, "body": {"error": {"message": "no such key"}}}])
    request = SessionRequest(workspace=folder.root, env=folder.env, trusted=True)
    async with open_session(request) as session:
        await session.prompt("go")
        result = await session.wait_idle()
    assert result is not None
    assert result.status == "failed"
    (call,) = [one for one in collector.spans if one.name.startswith("chat ")]
    assert (call.is_error, call.attributes["error.type"]) == (True, "401")
    assert "no such key" in call.why
    assert "gen_ai.response.finish_reasons" not in call.attributes
    top = collector.named("invoke_agent tiller")
    assert (top.is_error, top.attributes["error.type"]) == (True, "failed")
    (point,) = collector.got.metrics["gen_ai.client.operation.duration"]
    assert attributes_of(point)["error.type"] == "401"


async def test_a_run_that_is_cancelled_ends_its_spans(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    lab.script([{**says("never"), "stall_forever_after_deltas": 0}])
    request = SessionRequest(workspace=folder.root, env=folder.env, trusted=True)
    asked = len(lab.requests)
    async with open_session(request) as session:
        await session.prompt("go")
        await lab.requests_arrived(asked + 1)
        await session.abort()
    (call,) = [one for one in collector.spans if one.name.startswith("chat ")]
    assert (call.is_error, call.attributes["error.type"]) == (True, "cancelled")
    top = collector.named("invoke_agent tiller")
    assert top.attributes["tiller.run.status"] == "cancelled"
    assert inside(call, top)


async def test_metrics_have_the_buckets_of_the_conventions(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    lab.script([says("It says hello.")])
    await run(folder)
    tokens = collector.got.metrics["gen_ai.client.token.usage"]
    kinds = {attributes_of(point)["gen_ai.token.type"]: point for point in tokens}
    assert {*kinds} == {"input", "output"}
    assert list(kinds["input"].explicit_bounds)[:3] == [1, 4, 16]
    (call,) = [one for one in collector.spans if one.name.startswith("chat ")]
    assert kinds["input"].sum == call.attributes["gen_ai.usage.input_tokens"]
    (duration,) = collector.got.metrics["gen_ai.client.operation.duration"]
    assert duration.sum == pytest.approx((call.end_ns - call.start_ns) / 1e9, abs=1e-6)
    assert collector.got.units["gen_ai.client.token.usage"] == "{token}"
    assert collector.got.units["gen_ai.client.operation.duration"] == "s"
    for points in collector.got.metrics.values():
        assert not any("gen_ai.conversation.id" in attributes_of(point) for point in points)


async def test_the_log_of_a_run_has_its_id_and_its_trace(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    seen: list[object] = []

    async def look(arguments: JsonObject, context: ToolContext) -> ToolResult:
        seen.append(marked_run())
        return text_result("seen")

    configure(folder, lab, collector.url)
    lab.script([calls(("look", {})), says("done")])
    await run(folder, custom_tools=(FunctionTool("look", look),))
    top = collector.named("invoke_agent tiller")
    assert seen == [(top.attributes["tiller.run.id"], top.trace)]
    assert marked_run() is None


async def test_contents_are_sent_when_asked_for_and_hold_no_secret(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    key = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    configure(folder, lab, collector.url, content=True)
    (folder.root / "a.txt").write_text(f"token = {key}\n" + "x" * 9_000, "utf-8")
    lab.script(
        [calls(("bash", {"command": f"cat a.txt # {key}"})), says(f"It says {key}, which I hide.")]
    )
    await run(folder)
    sent = b"".join(collector.got.bodies)
    assert b"which I hide" in sent
    assert key.encode() not in sent
    first, second = [one.attributes for one in collector.spans if one.name.startswith("chat ")]
    assert json.loads(first["gen_ai.input.messages"])[-1] == {
        "role": "user",
        "parts": [{"type": "text", "content": "go"}],
    }
    (answered,) = json.loads(first["gen_ai.output.messages"])
    assert answered["finish_reason"] == "tool_call"
    assert answered["parts"][0]["type"] == "tool_call"
    told = json.loads(second["gen_ai.input.messages"])[-1]
    assert told["role"] == "tool"
    assert len(told["parts"][0]["response"]) == 8_192
    assert json.loads(first["gen_ai.system_instructions"])[0]["type"] == "text"
    assert "bash" in [one["name"] for one in json.loads(first["gen_ai.tool.definitions"])]
    tool = collector.named("execute_tool bash").attributes
    assert "cat a.txt" in tool["gen_ai.tool.call.arguments"]
    assert "token = " in tool["gen_ai.tool.call.result"]


@pytest.mark.parametrize(
    ("value", "is_sent"), [("SPAN_ONLY", True), ("true", True), ("EVENT_ONLY", False)]
)
async def test_the_variable_of_opentelemetry_asks_for_contents(
    folder: Folder, lab: LoopbackProvider, collector: Collector, value: str, is_sent: bool
) -> None:
    configure(folder, lab, collector.url)
    folder.env["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = value
    lab.script([says("Hello there")])
    await run(folder)
    assert (b"Hello there" in b"".join(collector.got.bodies)) is is_sent


async def test_the_variable_of_opentelemetry_switches_all_off(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    configure(folder, lab, collector.url)
    folder.env["OTEL_SDK_DISABLED"] = "true"
    lab.script([says("Hello there")])
    await run(folder)
    assert collector.got.requests == []
