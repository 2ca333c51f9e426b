"""The server as pytest-lsp's client sees it: typed by lsprotocol, and held against what each editor declares."""

from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient, client_capabilities

from tests.lsp.conftest import Frames
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(60)]

EDITORS = ["visual-studio-code", "neovim", "emacs"]
METHODS = {
    "agent/ack",
    "agent/auth/login",
    "agent/auth/logout",
    "agent/auth/status",
    "agent/background/move",
    "agent/plan/respond",
    "agent/background/stop",
    "agent/task/resume",
    "agent/task/stop",
    "agent/task/changes",
    "agent/task/merge",
    "agent/task/discard",
    "agent/bash",
    "agent/blob/read",
    "agent/blob/store",
    "agent/changes/list",
    "agent/changes/resolve",
    "agent/checkpoint/list",
    "agent/checkpoint/preview",
    "agent/checkpoint/restore",
    "agent/command/complete",
    "agent/command/list",
    "agent/compact",
    "agent/costs",
    "agent/editorContext",
    "agent/extension/list",
    "agent/extension/press",
    "agent/extension/render",
    "agent/followUp",
    "agent/model/cycle",
    "agent/model/list",
    "agent/permission/respond",
    "agent/permission/rules",
    "agent/prompt",
    "agent/question/respond",
    "agent/queue/update",
    "agent/resources/reload",
    "agent/review",
    "agent/run/cancel",
    "agent/run/retry",
    "agent/session/close",
    "agent/session/configure",
    "agent/session/delete",
    "agent/session/export",
    "agent/session/fork",
    "agent/session/label",
    "agent/session/list",
    "agent/session/navigate",
    "agent/session/open",
    "agent/session/read",
    "agent/session/rename",
    "agent/session/stats",
    "agent/session/tree",
    "agent/status",
    "agent/steer",
    "agent/subscribe",
    "agent/thinking/cycle",
    "agent/trust",
}


async def introduce(
    client: LanguageClient, ground: Ground, editor: str = "neovim"
) -> types.InitializeResult:
    """Introduce the client as an editor."""
    return await client.initialize_session(
        types.InitializeParams(
            capabilities=client_capabilities(editor),
            root_uri=ground.root.as_uri(),
            workspace_folders=[
                types.WorkspaceFolder(uri=ground.root.as_uri(), name=ground.root.name)
            ],
        )
    )


async def ask(client: LanguageClient, method: str, params: dict[str, Any]) -> Any:
    """Send a request that lsprotocol does not know."""
    return await client.protocol.send_request_async(method, params)


@pytest.mark.parametrize("editor", EDITORS)
async def test_initialize_answers_every_editor_with_what_the_agent_can_do(
    client: LanguageClient, ground: Ground, editor: str
) -> None:
    result = await introduce(client, ground, editor)
    assert result.server_info == types.ServerInfo(name="tiller", version="0.1.0")
    capabilities = result.capabilities
    assert capabilities.execute_command_provider is not None
    commands = {
        "tiller.send",
        "tiller.stop",
        "tiller.steer",
        "tiller.compact",
        "tiller.accept",
        "tiller.reject",
        "tiller.apply",
        "tiller.restore",
        "tiller.trust",
    }
    assert commands <= set(capabilities.execute_command_provider.commands)
    assert capabilities.code_action_provider == types.CodeActionOptions(
        code_action_kinds=("quickfix.tiller", "refactor.tiller")
    )
    sync = capabilities.text_document_sync
    assert isinstance(sync, types.TextDocumentSyncOptions)
    assert (sync.open_close, sync.change) == (True, types.TextDocumentSyncKind.Incremental)
    experimental: Any = capabilities.experimental
    agent = experimental["agent"]
    assert set(agent["methods"]) == METHODS
    await client.shutdown_session()


async def test_a_prompt_that_waits_is_answered_with_the_end_of_its_run(
    client: LanguageClient, ground: Ground
) -> None:
    ground.provider.script([says("Hello there")])
    await introduce(client, ground)
    result = await ask(client, "agent/prompt", prompt("hi", wait=True))
    assert (result.status, result.message) == ("completed", "Hello there")
    assert result.usage.context.size == 32_000
    await client.shutdown_session()


async def test_a_subscription_streams_frames_on_the_clients_own_token(
    client: LanguageClient, ground: Ground, frames: Frames
) -> None:
    ground.provider.script([{"text": "word " * 50, "deltas": 50}])
    await introduce(client, ground)
    # Its answer comes at the end of the subscription: the request is cancelled by leaving.
    client.protocol.send_request("agent/subscribe", {"partialResultToken": "events"})
    await frames.until(lambda: frames.values.get("events"))
    assert frames.values["events"][0]["kind"] == "agent/snapshot"
    accepted = await ask(client, "agent/prompt", prompt("go"))
    assert accepted.accepted == "started"

    def events() -> list[dict[str, Any]]:
        values = frames.values["events"]
        return [event for value in values for event in value.get("events", [])]

    await frames.until(lambda: any(event["type"] == "run.ended" for event in events()))
    of_run = [event["type"] for event in events() if event.get("run") == accepted.run]
    assert (of_run[0], of_run[-1]) == ("run.started", "run.ended")
    text = "".join(event["text"] for event in events() if event["type"] == "message.delta")
    assert text == "word " * 50
    await client.shutdown_session()


async def test_a_plain_editor_sees_a_command_run_as_work_done_progress(
    client: LanguageClient, ground: Ground, frames: Frames
) -> None:
    ground.provider.script([says("done")])
    await introduce(client, ground)
    sent: Any = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command="tiller.send", arguments=["do it"])
    )
    assert sent["accepted"] == "started"

    def kinds() -> list[str]:
        return [value["kind"] for values in frames.values.values() for value in values]

    await frames.until(lambda: "end" in kinds())
    assert (kinds()[0], kinds()[-1]) == ("begin", "end")
    assert set(kinds()[1:-1]) <= {"report"}
    await client.shutdown_session()


async def test_the_model_reads_unsaved_text_and_its_edit_comes_as_a_workspace_edit(
    client: LanguageClient, ground: Ground
) -> None:
    path = ground.file("shape.py", "area = w * h\n")
    applied: list[types.WorkspaceEdit] = []

    @client.feature(types.WORKSPACE_APPLY_EDIT)  # pyright: ignore[reportUntypedFunctionDecorator] - of pygls
    def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        applied.append(params.edit)
        return types.ApplyWorkspaceEditResult(applied=False, failure_reason="the user said no")

    repair = {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]}
    ground.provider.script(
        [calls(("read", {"path": "shape.py"})), calls(("edit", repair)), says("ok")]
    )
    await introduce(client, ground)
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            text_document=types.TextDocumentItem(
                uri=path.as_uri(), language_id="python", version=3, text="area = w * hight\n"
            )
        )
    )
    result = await ask(client, "agent/prompt", prompt("repair it", wait=True))
    assert result.status == "completed"
    (edit,) = applied
    changed = edit.document_changes or list(edit.changes or {})
    assert len(changed) == 1
    read, edited = tool_texts(ground.provider.requests[-1])
    assert "hight" in read
    assert "the user said no" in edited
    assert path.read_text("utf-8") == "area = w * h\n"
    await client.shutdown_session()


async def test_an_error_has_a_code_and_a_kind_and_loses_nothing(
    client: LanguageClient, ground: Ground
) -> None:
    ground.provider.script([says("still here")])
    await introduce(client, ground)
    with pytest.raises(JsonRpcException) as refused:
        await ask(client, "agent/prompt", {"session": "nobody", "content": "hi"})
    assert refused.value.code == -32803
    data: Any = refused.value.data
    assert data["kind"] == "SessionNotFound"
    with pytest.raises(JsonRpcException) as unknown:
        await ask(client, "agent/unheard", {})
    assert unknown.value.code == -32601
    result = await ask(client, "agent/prompt", prompt("go on", wait=True))
    assert result.message == "still here"
    await client.shutdown_session()


async def test_shutdown_and_exit_end_the_process_with_code_0_in_the_middle_of_a_run(
    client: LanguageClient, ground: Ground
) -> None:
    ground.provider.script([{"text": "half", "stall_forever_after_deltas": 1}])
    await introduce(client, ground)
    await ask(client, "agent/prompt", prompt("go"))
    await client.shutdown_session()
    assert client._server is not None
    assert client._server.returncode == 0
    assert [one["data"]["status"] for one in ground.entries() if one["type"] == "custom"] == [
        *("started", "cancelled")
    ]
