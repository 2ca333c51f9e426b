"""Real servers of the library, over stdio and HTTP: found, approved, called, told of progress, stopped, killed."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.events import ToolRunning
from agent_core.kernel.json import as_object
from tests.support.mcp.mcp_office import (
    McpOffice,
    call,
    free_port,
    good,
    http_server,
    text_of_file,
)

pytestmark = [pytest.mark.timeout(60)]


async def test_a_tool_is_approved_once_and_asked_about_each_time(office: McpOffice) -> None:
    office.servers(shop=good())
    async with office.session() as session:
        counted = call("mcp__shop__count", to=2)
        (first,) = await office.run(session, counted, servers="allowProject", calls="allowOnce")
        assert first == "counted to 2"
        (second,) = await office.run(session, counted, calls="rejectOnce")
        assert "the user refused this" in second
    async with office.session() as session:
        await office.run(session, call("mcp__shop__look", word="hi"))
    (asked,) = office.asked()
    assert asked.server == "shop"
    assert set(asked.added) > {"count", "look", "die"}
    assert asked.unasked == ("look",)
    assert "Count, and tell how far it is." in asked.difference
    assert [one.type for one in office.asked_calls()] == ["mcp", "mcp"]
    assert office.asked_calls()[0].input == {"to": 2}


async def test_what_is_marked_as_reading_runs_unasked_and_also_in_plan_mode(
    office: McpOffice,
) -> None:
    office.servers(shop=good())
    office.configure(permission={"mode": "plan"})
    async with office.session() as session:
        looked, failed = await office.run(
            session,
            call("mcp__shop__look", word="hi"),
            call("mcp__shop__fail", why="no"),
            servers="allowSession",
            calls="allowOnce",
        )
    assert looked == "you said hi"
    assert "refused in plan mode" in failed


async def test_schemas_go_to_the_model_as_they_came(office: McpOffice) -> None:
    office.servers(shop=good())
    async with office.session() as session:
        await office.run(session, servers="allowProject")
    count = office.declared(-1)["mcp__shop__count"]
    assert count["description"] == "Count, and tell how far it is."
    assert count["parameters"] == {
        "properties": {"to": {"title": "To", "type": "integer"}},
        "required": ["to"],
        "title": "countArguments",
        "type": "object",
    }


async def test_progress_is_shown_and_pictures_and_failures_reach_the_model(
    office: McpOffice,
) -> None:
    office.servers(shop=good())
    async with office.session() as session:
        results = await office.run(
            session,
            call("mcp__shop__count", to=5),
            call("mcp__shop__picture"),
            call("mcp__shop__fail", why="no paper"),
            call("mcp__shop__much", size=200_000),
            servers="allowSession",
            calls="allowOnce",
        )
    assert "0/5 at 0" in office.output()
    assert results[0] == "counted to 5"
    assert "[image/png]" in results[1]
    assert "fail" in results[2]
    assert "Output cut" in results[3]
    assert len(results[3]) < 60_000


async def test_a_server_killed_in_the_middle_of_a_call_is_told_and_started_again(
    office: McpOffice,
) -> None:
    office.servers(shop=good())
    marker = office.folder.root / "marker"
    async with office.session() as session, anyio.create_task_group() as group:

        async def kill() -> None:
            os.kill(int(await text_of_file(marker)), signal.SIGKILL)

        def during(event: Any) -> None:
            if isinstance(event, ToolRunning) and "marker" in as_object(event.input):
                group.start_soon(kill)

        results = await office.run(
            session,
            call("mcp__shop__wait", marker=str(marker)),
            call("mcp__shop__die"),
            call("mcp__shop__look", word="again"),
            servers="allowSession",
            calls="allowOnce",
            during=during,
        )
        assert "ended while it did this" in results[0]
        assert "look at what is there before you repeat it" in results[0]
        assert "ended while it did this" in results[1]
        assert results[2] == "you said again"
    assert len(office.asked()) == 1
    assert "I am gone" in office.notices()


async def test_a_call_that_takes_too_long_is_stopped_and_the_server_told(
    office: McpOffice,
) -> None:
    office.servers(shop=good(timeoutS=1))
    marker = office.folder.root / "marker"
    async with office.session() as session:
        slow, after = await office.run(
            session,
            call("mcp__shop__wait", marker=str(marker)),
            call("mcp__shop__look", word="on"),
            servers="allowSession",
            calls="allowOnce",
        )
        assert "did not finish within 1 s" in slow
        assert '"timeoutS" in mcp.json' in slow
        assert after == "you said on"
        await text_of_file(Path(f"{marker}.cancelled"))


async def test_a_run_that_is_cancelled_cancels_the_call(office: McpOffice) -> None:
    office.servers(shop=good())
    marker = office.folder.root / "marker"
    async with office.session() as session, anyio.create_task_group() as group:

        async def cancel() -> None:
            await text_of_file(marker)
            await session.abort()

        def during(event: Any) -> None:
            if isinstance(event, ToolRunning):
                group.start_soon(cancel)

        await office.run(
            session,
            call("mcp__shop__wait", marker=str(marker)),
            servers="allowSession",
            calls="allowOnce",
            during=during,
        )
        await text_of_file(Path(f"{marker}.cancelled"))


async def test_nothing_of_a_server_is_left_when_its_session_closes(office: McpOffice) -> None:
    office.servers(shop=good())
    marker = office.folder.root / "marker"
    async with office.session() as session:
        async with anyio.create_task_group() as group:

            def during(event: Any) -> None:
                if isinstance(event, ToolRunning):
                    group.start_soon(stop)

            async def stop() -> None:
                await text_of_file(marker)
                await session.abort()

            waiting = call("mcp__shop__wait", marker=str(marker))
            await office.run(
                session, waiting, servers="allowSession", calls="allowOnce", during=during
            )
        pid = int(await text_of_file(marker))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_server_over_http_is_used_killed_and_found_again(office: McpOffice) -> None:
    port = free_port()
    office.servers(far={"type": "http", "url": f"http://127.0.0.1:{port}/mcp"})
    marker = office.folder.root / "marker"
    async with office.session() as session:
        with http_server(port) as process:

            def during(event: Any) -> None:
                if isinstance(event, ToolRunning) and "marker" in as_object(event.input):
                    group.start_soon(kill)

            async def kill() -> None:
                await text_of_file(marker)
                process.kill()

            async with anyio.create_task_group() as group:
                counted, gone = await office.run(
                    session,
                    call("mcp__far__count", to=2),
                    call("mcp__far__wait", marker=str(marker)),
                    servers="allowSession",
                    calls="allowOnce",
                    during=during,
                )
                assert counted == "counted to 2"
                assert "ended while it did this" in gone
        (missing,) = await office.run(session, call("mcp__far__look", word="on"))
        assert "is not there" in missing
        with http_server(port):
            (found,) = await office.run(session, call("mcp__far__look", word="on"))
        assert found == "you said on"
    assert len(office.asked()) == 1
