"""What the server says first: its requests, notifications and progress, and their order."""

import asyncio
from typing import Any

import pytest
from lsprotocol import types

from tests.support.lsp.echo_server import make_connection
from tests.support.lsp.wire_peer import serving
from tiller_server.lsp.jsonrpc.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, ResultThen, RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.outbox import Lane
from tiller_server.lsp.transport.progress import WorkDone


async def test_a_request_of_ours_gets_the_clients_result_as_plain_json() -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize()
        asked = tasks.create_task(connection.request("agent/ask", {"q": 1}, timeout_s=5))
        question = await served.peer.read()
        assert question == {
            "jsonrpc": "2.0",
            "id": "tiller-1",
            "method": "agent/ask",
            "params": {"q": 1},
        }
        served.peer.send(id="tiller-1", result={"type_name": "kept", "": [1]})
        assert await asked == {"type_name": "kept", "": [1]}
        served.peer.send(id="tiller-1", result="twice")
        assert (await served.peer.ask(1, "agent/echo"))["result"] == {}


async def test_a_client_may_use_our_ids_for_its_own_requests() -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize()
        asked = tasks.create_task(connection.request("agent/ask", timeout_s=5))
        await served.peer.read()
        assert (await served.peer.ask("tiller-1", "agent/echo"))["result"] == {}
        assert not asked.done()
        served.peer.send(id="tiller-1", result=None)
        assert await asked is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": METHOD_NOT_FOUND, "message": "no"}, (METHOD_NOT_FOUND, "no", None)),
        ({"code": 1, "message": "m", "data": {"k": 1}}, (1, "m", {"k": 1})),
        ({}, (INTERNAL_ERROR, "The client failed without saying why.", None)),
        ("odd", (INTERNAL_ERROR, "The client failed without saying why.", None)),
    ],
)
async def test_an_error_answer_is_raised(error: object, expected: tuple[object, ...]) -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize()
        asked = tasks.create_task(_outcome(connection.request("agent/ask", timeout_s=5)))
        await served.peer.read()
        served.peer.send(id="tiller-1", error=error)
        failure = await asked
        assert isinstance(failure, RpcError)
        assert (failure.code, failure.message, failure.data) == expected


async def _outcome(work: Any) -> object:
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the outcome is what is looked at
        return error


async def test_a_question_without_an_answer_is_withdrawn_in_time() -> None:
    connection = make_connection()
    async with serving(connection) as served:
        await served.peer.initialize()
        with pytest.raises(TimeoutError, match="agent/ask"):
            await connection.request("agent/ask", timeout_s=0.01)
        assert (await served.peer.read())["id"] == "tiller-1"
        assert await served.peer.read() == {
            "jsonrpc": "2.0",
            "method": "$/cancelRequest",
            "params": {"id": "tiller-1"},
        }
        served.peer.send(id="tiller-1", result="late")
        assert (await served.peer.ask(1, "agent/echo"))["result"] == {}


async def test_a_question_that_nobody_waits_for_any_more_is_withdrawn() -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize()
        asked = tasks.create_task(connection.request("agent/ask", timeout_s=None))
        await served.peer.read()
        asked.cancel()
        assert (await served.peer.read())["method"] == "$/cancelRequest"


async def test_questions_fail_when_the_connection_closes_and_after() -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize()
        asked = tasks.create_task(_outcome(connection.request("agent/ask", timeout_s=None)))
        await served.peer.read()
        served.peer.writer.write_eof()
        assert isinstance(await asked, ConnectionError)
        with pytest.raises(ConnectionError):
            await connection.request("agent/ask", timeout_s=1)
        await served.exit_code()
        assert not connection.notify("agent/late", {})


async def test_typed_requests_of_the_library_work_and_get_types() -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize()
        edit = types.ApplyWorkspaceEditParams(edit=types.WorkspaceEdit(changes={}))
        asked = tasks.create_task(connection.workspace_apply_edit_async(edit))
        question = await served.peer.read()
        assert question["params"] == {"edit": {"changes": {}}}
        served.peer.send(id=question["id"], result={"applied": True})
        assert await asked == types.ApplyWorkspaceEditResult(applied=True)
        refused = tasks.create_task(_outcome(connection.workspace_apply_edit_async(edit)))
        question = await served.peer.read()
        served.peer.send(id=question["id"], error={"code": 1, "message": "no"})
        assert str(await refused) == "no"


async def test_notifications_of_known_methods_take_dicts_and_types() -> None:
    connection = make_connection()
    value = {"kind": "agent/events", "events": [{"seq": 1, "type_name": None}]}
    async with serving(connection) as served:
        await served.peer.initialize()
        assert connection.notify("$/progress", {"token": "t", "value": value}, lane=Lane.DELTA)
        assert (await served.peer.read())["params"] == {"token": "t", "value": value}
        connection.window_log_message(types.LogMessageParams(types.MessageType.Info, "hello"))
        assert (await served.peer.read())["params"] == {"type": 3, "message": "hello"}
        assert connection.send_encoded(b'{"jsonrpc":"2.0","method":"x"}', Lane.STATE)
        assert await served.peer.read() == {"jsonrpc": "2.0", "method": "x"}


async def test_not_a_number_is_refused_on_the_way_out() -> None:
    connection = make_connection()
    async with serving(connection) as served:
        await served.peer.initialize()
        with pytest.raises(ValueError, match="JSON"):
            connection.notify("agent/x", {"n": float("nan")})
        assert (await served.peer.ask(1, "agent/echo"))["result"] == {}


async def test_what_follows_a_reply_never_comes_before_it() -> None:
    connection = LspConnection("t", "1")

    async def start(_: dict[str, Any]) -> object:
        return ResultThen({"accepted": "started"}, then=lambda: tell("run.started"))

    def tell(event: str) -> None:
        connection.notify("agent/event", {"type": event}, lane=Lane.STATE)

    connection.add_agent_method("agent/prompt", start)
    async with serving(connection) as served:
        await served.peer.initialize()
        for number in range(20):
            served.peer.send(id=number, method="agent/prompt")
        seen = [await served.peer.read() for _ in range(40)]
    assert [message.get("method", "answer") for message in seen] == ["answer", "agent/event"] * 20


async def test_an_answer_follows_the_events_that_its_handler_waited_for() -> None:
    connection = LspConnection("t", "1")

    async def cancel(_: dict[str, Any]) -> object:
        connection.notify("agent/event", {"type": "run.ended"}, lane=Lane.STATE)
        return {"status": "cancelled"}

    connection.add_agent_method("agent/run/cancel", cancel)
    async with serving(connection) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/run/cancel")
        assert (await served.peer.read())["params"] == {"type": "run.ended"}
        assert (await served.peer.read())["result"] == {"status": "cancelled"}


def nothing() -> None:
    return None


PROGRESS = {"workDoneProgress": True}


async def _created(connection: LspConnection, peer: Any, cancelled: list[str]) -> WorkDone:
    async with asyncio.TaskGroup() as tasks:
        created = tasks.create_task(
            connection.create_progress("run-1", on_cancel=lambda: cancelled.append("run-1"))
        )
        question = await peer.read()
        assert question["method"] == "window/workDoneProgress/create"
        assert question["params"] == {"token": "run-1"}
        peer.send(id=question["id"], result=None)
    progress = created.result()
    assert progress is not None
    return progress


async def test_progress_begins_reports_and_ends_and_its_token_is_forgotten() -> None:
    connection = make_connection()
    cancelled: list[str] = []
    async with serving(connection) as served:
        await served.peer.initialize(window=PROGRESS)
        for _ in range(2):  # the token can be used again
            progress = await _created(connection, served.peer, cancelled)
            progress.begin("Tiller", message="reading", cancellable=True)
            progress.report("writing")
            progress.end("done")
            progress.report("after the end")
            progress.end()
            values = [(await served.peer.read())["params"] for _ in range(3)]
            assert values == [
                {"token": "run-1", "value": value}
                for value in (
                    {"kind": "begin", "title": "Tiller", "cancellable": True, "message": "reading"},
                    {"kind": "report", "message": "writing"},
                    {"kind": "end", "message": "done"},
                )
            ]
            assert "run-1" not in connection.protocol.work_done
        served.peer.send(method="window/workDoneProgress/cancel", params={"token": "run-1"})
        await served.peer.ask(1, "agent/echo")
        assert cancelled == []


async def test_the_user_can_cancel_progress() -> None:
    connection = make_connection()
    cancelled: list[str] = []
    async with serving(connection) as served:
        await served.peer.initialize(window=PROGRESS)
        await _created(connection, served.peer, cancelled)
        served.peer.send(method="window/workDoneProgress/cancel", params={"token": "run-1"})
        await served.peer.ask(1, "agent/echo")
        assert cancelled == ["run-1"]


@pytest.mark.parametrize("window", [{}, {"workDoneProgress": False}, {"workDoneProgress": None}])
async def test_progress_is_not_opened_with_a_client_that_shows_none(window: dict[str, Any]) -> None:
    connection = make_connection()
    async with serving(connection) as served:
        await served.peer.initialize(window=window)
        assert await connection.create_progress("t", on_cancel=nothing) is None
        assert (await served.peer.ask(1, "agent/echo"))["result"] == {}


async def test_progress_that_the_client_refuses_is_none() -> None:
    connection = make_connection()
    async with serving(connection) as served, asyncio.TaskGroup() as tasks:
        await served.peer.initialize(window=PROGRESS)
        created = tasks.create_task(connection.create_progress("t", on_cancel=nothing))
        question = await served.peer.read()
        served.peer.send(id=question["id"], error={"code": METHOD_NOT_FOUND, "message": "no"})
        assert await created is None
