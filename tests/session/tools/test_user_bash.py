"""The user's own commands: run without asking, told as events, kept where they split nothing."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agent_core.events import BashEnded, BashOutput, BashStarted, RunEnded
from agent_core.kernel import SessionId
from agent_core.kernel.errors import FileMissing, SessionBusy, SessionClosed, UsageError
from agent_core.messages import BashMessage, ToolResultMessage
from agent_core.session import BashResult
from agent_core.session.context import SessionOptions, WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.workspace import Workspace
from agent_core.workspace.permissions.call_permission import PolicyMode
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench, unmarked
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.processes import processes_with, wait_gone
from tests.support.workspace.tools import Hold

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@asynccontextmanager
async def ground(
    root: Path,
    *turns: Any,
    options: Mapping[str, Any] | None = None,
    mode: PolicyMode = "yolo",
    **more: Any,
) -> AsyncGenerator[Bench, None]:
    """Open a session whose commands really run."""
    workspace = Workspace(
        roots=(root,),
        files=MemoryFiles((root,), Path("/home/user"), files={}),
        processes=DiskProcesses(),
        env={**ENV, "TILLER_TEST_MARK": str(root)},
    )
    settings = SessionOptions(
        tool_options={"bash": dict(options or {})}, scratch=str(root.parent / "outputs")
    )
    place = WorkspaceContext(workspace=workspace, permissions=PermissionState(mode=mode))
    async with bench(ScriptedModel(turns), options=settings, workspace=place, **more) as b:
        yield b


async def sleepers(root: Path) -> set[int]:
    """Wait for a `sleep` that a command of this test started."""
    mark = f"TILLER_TEST_MARK={root}"
    return await anyio.to_thread.run_sync(
        lambda: processes_with(mark, "sleep", below=os.getpid(), at_least=1)
    )


def kept(b: Bench) -> list[BashMessage]:
    """Give the commands in the conversation."""
    return [one for one in b.messages if isinstance(one, BashMessage)]


async def test_a_command_runs_in_the_workspace_and_its_output_comes_back(root: Path) -> None:
    (root / "a.txt").write_text("alpha\n", encoding="utf-8")
    async with ground(root) as b:
        result = await b.session.execute_bash("cat a.txt; pwd")
        assert result.output == f"alpha\n{root}\n"
        assert (result.exit_code, result.cancelled, result.truncated) == (0, False, False)
        assert (result.full_output, result.deferred) == (None, False)


async def test_it_is_told_from_its_start_to_its_end(root: Path) -> None:
    async with ground(root) as b:
        await b.session.execute_bash("echo one; exit 3")
        assert b.names() == ["bash.started", "bash.output", "bash.ended"]
        started, output, ended = b.seen()
        assert started == BashStarted(command="echo one; exit 3")
        assert output == BashOutput(text="one\n")
        assert ended == BashEnded(
            exit_code=3, output="one\n", cancelled=False, truncated=False, full_output=None
        )


async def test_the_model_reads_it_before_the_next_words(root: Path) -> None:
    async with ground(root, say("I see")) as b:
        await b.session.execute_bash("echo hello; exit 2")
        await b.session.prompt("what happened?")
        await b.idle()
        assert [type(one).__name__ for one in b.messages[:2]] == ["BashMessage", "UserMessage"]
        (message,) = kept(b)
        assert b.model.requests[0].messages[0] == message
        assert (message.command, message.output, message.exit_code) == (
            "echo hello; exit 2",
            "hello\n",
            2,
        )


async def test_what_is_excluded_is_kept_and_never_shown_to_the_model(root: Path) -> None:
    async with ground(root, say("ok")) as b:
        result = await b.session.execute_bash("echo secret", exclude_from_context=True)
        assert result.output == "secret\n"
        await b.session.prompt("go")
        await b.idle()
        assert kept(b) == []
        held = [getattr(one, "message", None) for one in b.session.info.entries]
        (message,) = [one for one in held if isinstance(one, BashMessage)]
        assert message.exclude_from_context
        assert "secret" not in repr(b.model.requests[0].messages)


async def test_nobody_is_asked_for_permission(root: Path) -> None:
    async with ground(root, mode="plan") as b:
        result = await b.session.execute_bash("echo x > made; cat made")
        assert result.output == "x\n"


async def test_the_settings_of_the_tool_hold(root: Path) -> None:
    async with ground(root, options={"prefix": "greet() { echo hi; }"}) as b:
        assert (await b.session.execute_bash("greet")).output == "hi\n"
    async with ground(root, options={"timeoutS": 0.2}) as b:
        result = await b.session.execute_bash("echo up; sleep 100")
        assert result.output == "up\n\nCommand timed out after 0.2 seconds"
        assert (result.exit_code, result.cancelled) == (None, False)
        assert kept(b)[0].output == result.output


async def test_long_output_is_cut_and_whole_in_a_file(root: Path) -> None:
    async with ground(root) as b:
        result = await b.session.execute_bash("seq 1 30000")
        assert result.truncated
        assert result.output.endswith("\n29999\n30000")
        assert result.full_output is not None
        whole = await anyio.Path(result.full_output).read_text(encoding="utf-8")
        assert whole.splitlines() == [str(n) for n in range(1, 30001)]
        assert kept(b)[0].full_output == result.full_output


async def test_a_command_that_a_signal_ended_has_no_exit_code(root: Path) -> None:
    async with ground(root) as b:
        result = await b.session.execute_bash("kill -9 $$")
        assert result.exit_code is None
        assert result.output == "Command exited with code 137 (killed by SIGKILL)"


@pytest.mark.parametrize("command", ["", " \n"], ids=["nothing", "blank"])
async def test_an_empty_command_is_refused(root: Path, command: str) -> None:
    async with ground(root) as b:
        with pytest.raises(UsageError, match="the command is empty"):
            await b.session.execute_bash(command)
        assert b.seen() == []


async def test_a_shell_that_is_not_there_is_told_and_nothing_is_kept(root: Path) -> None:
    async with ground(root, options={"shellPath": "/no/shell"}) as b:
        with pytest.raises(FileMissing):
            await b.session.execute_bash("echo x")
        assert b.names() == ["bash.started", "bash.ended"]
        assert b.session.info.entries == ()
        assert b.session.info.snapshot().activity.bash is None


async def test_a_second_command_is_refused_while_one_runs(root: Path) -> None:
    async with ground(root) as b, anyio.create_task_group() as group:
        group.start_soon(b.session.execute_bash, "sleep 100")
        await sleepers(root)
        assert b.session.info.snapshot().activity.bash == "sleep 100"
        with pytest.raises(SessionBusy, match="'sleep 100' is running"):
            await b.session.execute_bash("echo x")
        await b.session.abort()
    assert [one.command for one in kept(b)] == ["sleep 100"]


# Ending it.


async def test_abort_ends_it_with_everything_and_keeps_what_it_wrote(root: Path) -> None:
    results: list[BashResult] = []
    children: set[int] = set()
    async with ground(root) as b:

        async def run() -> None:
            results.append(await b.session.execute_bash("echo up; setsid sleep 100 & sleep 100"))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            children = await sleepers(root)
            result = await b.session.abort()
            assert (result.status, result.run, result.survivors) == ("cancelled", None, ())
            assert [one.command for one in result.ended] == [
                "echo up; setsid sleep 100 & sleep 100"
            ]
        assert await anyio.to_thread.run_sync(wait_gone, children) == set()
        (ended,) = results
        assert (ended.cancelled, ended.exit_code, ended.output) == (True, None, "up\n")
        (message,) = kept(b)
        assert (message.cancelled, message.output) == (True, "up\n")
        assert b.session.info.snapshot().activity.bash is None
        assert (await b.session.abort()).status == "alreadyEnded"


async def test_a_cancel_of_the_run_leaves_it_alone(root: Path) -> None:
    gate = Gate()
    async with ground(root, (gate, *say("x"))) as b, anyio.create_task_group() as group:
        receipt = await b.session.prompt("go")
        group.start_soon(b.session.execute_bash, "sleep 100")
        await sleepers(root)
        for result in (
            await b.session.abort(run=receipt.run),
            await b.session.abort(scope="run"),
        ):
            assert result.status in {"cancelled", "alreadyEnded"}
            assert b.session.info.snapshot().activity.bash == "sleep 100"
        await b.session.abort()


async def test_closing_the_session_ends_it_and_keeps_it(root: Path) -> None:
    benches: list[Bench] = []
    children: set[int] = set()
    async with anyio.create_task_group() as group:
        async with ground(root) as b:
            benches.append(b)
            group.start_soon(b.session.execute_bash, "echo up; sleep 100")
            children = await sleepers(root)
            await b.until(BashOutput)
        assert await anyio.to_thread.run_sync(wait_gone, children) == set()
    (closed,) = benches
    assert [one.output for one in kept(closed)] == ["up\n"]
    with pytest.raises(SessionClosed):
        await closed.session.execute_bash("echo x")


async def test_when_whoever_asked_is_gone_it_ends_and_is_kept(root: Path) -> None:
    children: set[int] = set()
    async with ground(root) as b:
        async with anyio.create_task_group() as group:
            group.start_soon(b.session.execute_bash, "echo up; sleep 100")
            children = await sleepers(root)
            await b.until(BashOutput)
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(wait_gone, children) == set()
        assert [(one.output, one.cancelled) for one in kept(b)] == [("up\n", True)]
        assert (await b.session.execute_bash("echo next")).output == "next\n"


# Beside a run.


async def test_during_a_run_it_waits_for_the_end_and_never_stands_between_call_and_result(
    root: Path,
) -> None:
    hold = Hold()
    async with ground(root, call("hold"), say("done"), tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        result = await b.session.execute_bash("echo beside")
        assert result.deferred
        assert kept(b) == []
        hold.release.set()
        await b.idle()
        kinds = [type(one).__name__ for one in b.messages]
        assert kinds == [
            "UserMessage",
            "AssistantMessage",
            "ToolResultMessage",
            "AssistantMessage",
            "BashMessage",
        ]
        assert all("beside" not in repr(one.messages) for one in b.model.requests)
        b.model.add(say("I see"))
        await b.session.prompt("and now?")
        await b.idle()
        assert "beside" in repr(b.model.requests[-1].messages)


async def test_what_a_cancelled_run_left_behind_comes_after_its_results(root: Path) -> None:
    hold = Hold()
    async with ground(root, call("hold"), tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        assert (await b.session.execute_bash("echo beside")).deferred
        await b.session.abort()
        assert isinstance(unmarked(b.messages)[-2], ToolResultMessage)
        assert [one.output for one in kept(b)] == ["beside\n"]
        (ended,) = [one for one in b.seen() if isinstance(one, RunEnded)]
        assert ended.status == "cancelled"


async def test_what_was_deferred_is_there_after_a_crash(root: Path) -> None:
    store, again, hold = MemoryStore(), MemoryStore(), Hold()
    async with ground(root, call("hold"), tools=[hold.tool], store=store) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        assert (await b.session.execute_bash("echo beside")).deferred
        stored = await store.read(SessionId("s-1"))
        log = await again.create(stored.header)
        await log.append(stored.entries)
        await log.close()
        await b.session.abort()
    async with ground(root, opened=await again.open(SessionId("s-1"))) as b:
        kinds = [type(one).__name__ for one in b.messages]
        assert kinds[-2:] == ["ToolResultMessage", "BashMessage"]
        assert [one.output for one in kept(b)] == ["beside\n"]
