"""A request to an MCP server has a span, whose context the server gets."""

import json

import pytest

from tests.support.mcp.mcp_office import McpOffice, call, good
from tests.support.provider import LoopbackProvider
from tests.support.provider.collector import Collector
from tests.support.session.folders import Folder

pytestmark = [pytest.mark.timeout(60)]


async def test_a_server_gets_the_context_of_its_span(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    office = McpOffice(folder, lab)
    office.configure(telemetry={"enabled": True, "endpoint": collector.url})
    office.servers(shop=good())
    async with office.session() as session:
        (meta,) = await office.run(
            session, call("mcp__shop__meta"), servers="allowSession", calls="allowOnce"
        )
    span, tool = collector.named("tools/call meta"), collector.named("execute_tool mcp__shop__meta")
    assert json.loads(meta)["traceparent"] == f"00-{span.trace}-{span.id}-01"
    assert (span.parent, span.trace) == (tool.id, tool.trace)
    assert tool.start_ns <= span.start_ns <= span.end_ns
    assert span.attributes["mcp.method.name"] == "tools/call"
    assert span.attributes["mcp.protocol.version"] >= "2025"
    assert span.attributes["tiller.mcp.server"] == "shop"
    assert not span.is_error
    assert "mcp.client.operation.duration" in collector.got.metrics


async def test_a_request_of_a_task_is_below_the_call_of_the_task(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    office = McpOffice(folder, lab)
    office.configure(
        telemetry={"enabled": True, "endpoint": collector.url}, permission={"mode": "yolo"}
    )
    office.servers(shop=good())
    given = {"description": "ask it", "prompt": "CHILD: ask", "preset": "general"}
    async with office.session() as session:
        _ = await office.run(
            session,
            {**call("task", **given), "when": "go"},
            {**call("mcp__shop__count", to=1), "when": "CHILD"},
            {"text": "It counted.", "when": "counted to 1"},
            servers="allowSession",
            calls="allowOnce",
        )
    span, tool = (
        collector.named("tools/call count"),
        collector.named("execute_tool mcp__shop__count"),
    )
    assert span.parent == tool.id
    assert tool.parent == collector.named("invoke_agent general").id


async def test_a_server_that_fails_makes_a_failed_span(
    folder: Folder, lab: LoopbackProvider, collector: Collector
) -> None:
    office = McpOffice(folder, lab)
    office.configure(telemetry={"enabled": True, "endpoint": collector.url})
    office.servers(shop=good())
    async with office.session() as session:
        _ = await office.run(
            session, call("mcp__shop__die"), servers="allowSession", calls="allowOnce"
        )
    span, tool = collector.named("tools/call die"), collector.named("execute_tool mcp__shop__die")
    assert (span.is_error, span.attributes["error.type"]) == (True, "ServerGone")
    assert (tool.is_error, tool.attributes["error.type"]) == (True, "error")


async def test_without_telemetry_a_server_gets_no_context(
    folder: Folder, lab: LoopbackProvider
) -> None:
    office = McpOffice(folder, lab)
    office.servers(shop=good())
    async with office.session() as session:
        (meta,) = await office.run(
            session, call("mcp__shop__meta"), servers="allowSession", calls="allowOnce"
        )
    assert "traceparent" not in json.loads(meta)
