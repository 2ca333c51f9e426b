"""A session sends its runs, model calls, tools and tasks to a collector, with the published names."""

import json
from typing import Any

import pytest

from agent_core.assembly import SessionRequest, open_session
from tests.support.clients.server import calls, says
from tests.support.provider import LoopbackProvider, write_config
from tests.support.provider.collector import Collector, Span
from tests.support.session.folders import Folder, ask

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


@pytest.mark.timeout(60)
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
