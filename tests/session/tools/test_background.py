"""Background commands: they outlive the run, are read and stopped, end with the session, and their end is reported."""

import resource
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agent_core.events import (
    BackgroundEnded,
    BackgroundListening,
    BackgroundStarted,
    ToolEnded,
    ToolOutputDelta,
)
from agent_core.kernel.errors import ToolError
from agent_core.kernel.json import as_object
from agent_core.session.context import SessionOptions, WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin import background_tool, bash_tool
from agent_core.workspace import Workspace
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.session.held_log import held
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.processes import living, processes_with


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _short_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a command that may fail at once."""
    monkeypatch.setattr("agent_core.session.tools.background.FIRST_S", 0.4)


@asynccontextmanager
async def ground(root: Path, *turns: Any, **more: Any) -> AsyncGenerator[Bench]:
    """Open a session whose commands really run."""
    workspace = Workspace(
        roots=(root,),
        files=MemoryFiles((root,), Path("/home/user"), files={}),
        processes=DiskProcesses(),
        env={"PATH": "/usr/bin:/bin", "TILLER_TEST_MARK": str(root)},
    )
    async with bench(
        ScriptedModel(turns),
        tools=(bash_tool(), background_tool()),
        options=SessionOptions(scratch=str(root.parent / "outputs")),
        workspace=WorkspaceContext(workspace=workspace, permissions=PermissionState(mode="yolo")),
        **more,
    ) as b:
        yield b


def begin(command: str, *, id: str = "c1") -> Any:  # noqa: A002 - reads as the wire does
    return call("bash", {"command": command, "background": True}, id=id)


def look(action: str, target: str | int | None = None, **more: Any) -> Any:
    return call("background", {"action": action, "id": target, **more}, id="c2")


async def ask(it: Bench, text: str = "go") -> list[str]:
    """Send a prompt, wait for the end of its run, and return the results of all calls so far."""
    await it.session.prompt(text)
    _ = await it.idle()
    return it.results()


def background(it: Bench, at: int = -1) -> Any:
    """Return the details for front ends in the result of a call."""
    ended = [event for event in it.seen() if isinstance(event, ToolEnded)]
    return as_object(as_object(ended[at].details).get("background"))


def last_request(it: Bench) -> str:
    return str(it.model.requests[-1].messages)


async def ended(it: Bench) -> BackgroundEnded:
    event = await it.until(BackgroundEnded)
    assert isinstance(event, BackgroundEnded)
    return event


async def test_a_command_goes_on_when_its_run_is_over_and_ends_with_the_session(root: Path) -> None:
    async with ground(root, begin("echo ready; exec sleep 60"), say("Started.")) as it:
        (result,) = await ask(it)
        facts = background(it)
        assert result == (
            f"bg1 ($ echo ready; exec sleep 60): running. Log: {facts['log']}\n"
            "Output so far:\nready"
        )
        assert facts["running"] is True
        assert await anyio.Path(str(facts["log"])).read_text() == "ready\n"
        started = next(one for one in it.seen() if isinstance(one, BackgroundStarted))
        assert (started.command.id, started.command.log) == ("bg1", facts["log"])
        snapshot = it.session.info.snapshot()
        assert (snapshot.state, snapshot.background) == ("idle", (started.command,))
        running = await anyio.to_thread.run_sync(processes_with, str(root))
        assert running
    assert (await ended(it)).by == "session"
    assert not living(running)


async def test_output_is_read_from_where_the_last_reading_ended(root: Path) -> None:
    pipe = root / "in"
    script = f"mkfifo {pipe}; echo one; read line < {pipe}; echo two; sleep 60"
    turns = [
        begin(script),
        look("read", 1, waitS=0),
        say("Waiting."),
        look("read", "bg1", waitS=10),
        look("read", "bg1", offset=0),
        say("Done."),
    ]
    async with ground(root, *turns) as it:
        first, again = await ask(it)
        assert first.endswith("Output so far:\none")
        assert again == f"bg1 ($ {script}): running. Output to byte 4:\n(no new output)"
        await anyio.to_thread.run_sync(pipe.write_text, "go\n")
        _, _, new, whole = await ask(it)
        assert new.endswith("Output to byte 8:\ntwo\n")
        assert whole.endswith("Output to byte 8:\none\ntwo\n")


@contextmanager
def file_limit(size: int) -> Generator[None]:
    """Refuse writes beyond this many bytes of a file, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_log_that_a_full_disk_cuts_is_read_to_its_end_with_the_reason(root: Path) -> None:
    turns = [begin("seq 1 10000; exec sleep 60"), look("read", "bg1", offset=0), say("Full.")]
    with file_limit(10_000):
        async with ground(root, *turns, say("I see.")) as it:
            started, read = await ask(it)
            log = background(it)["log"]
            cut = f"Log: {log}, cut: File too large"
            assert started.startswith(f"bg1 ($ seq 1 10000; exec sleep 60): running. {cut}\n")
            assert "running. Output to byte 10000:\n1\n2\n" in read
            assert read.endswith(f"[{cut}]")
            _ = await it.session.stop_background("bg1")
            await ask(it, "and?")
            assert f"The user stopped it. {cut}. Its last output:" in last_request(it)


async def test_a_command_whose_log_cannot_be_made_is_not_started(root: Path) -> None:
    await anyio.Path(root.parent / "outputs").write_text("a file where the folder would be")
    async with ground(root, begin("exec sleep 60"), say("Oh.")) as it:
        (result,) = await ask(it)
        assert result.startswith("The command was not started, because its log cannot be written")
        assert it.session.info.snapshot().background == ()
        assert not await anyio.to_thread.run_sync(processes_with, str(root))


async def test_a_command_that_fails_at_once_is_an_error_with_its_output(root: Path) -> None:
    async with ground(root, begin("echo no such port >&2; exit 3"), say("I see.")) as it:
        (result,) = await ask(it)
        assert "ended with exit code 3" in result
        assert result.endswith("Output so far:\nno such port")
        last = next(one for one in reversed(it.seen()) if isinstance(one, ToolEnded))
        assert (last.status, background(it)["exit_code"]) == ("error", 3)


async def test_the_end_is_reported_with_the_next_prompt_and_only_once(root: Path) -> None:
    pipe = root / "in"
    script = f"mkfifo {pipe}; read line < {pipe}; echo bad news; exit 7"
    async with ground(root, begin(script), say("Started."), say("I see."), say("Yes.")) as it:
        await ask(it)
        await anyio.to_thread.run_sync(pipe.write_text, "go\n")
        event = await ended(it)
        assert (event.id, event.exit_code, event.by) == ("bg1", 7, "itself")
        assert it.session.info.snapshot().background == ()
        await ask(it, "and?")
        request = last_request(it)
        assert request.count("[Report of Tiller, not of the user] The background command bg1") == 1
        assert "ended with exit code 7." in request
        assert "Its last output:\\nbad news" in request
        await ask(it, "so?")
        assert last_request(it).count("The background command bg1") == 1


async def test_an_end_during_a_run_is_reported_at_the_next_turn(root: Path) -> None:
    turns = [
        begin("sleep 0.6; echo over"),
        look("read", "bg1", waitS=10, offset=5),
        say("It is over."),
    ]
    async with ground(root, *turns) as it:
        await ask(it)
        assert "The background command bg1 ($ sleep 0.6; echo over) ended" in last_request(it)


async def test_the_model_stops_one_and_gets_no_report(root: Path) -> None:
    turns = [begin("sleep 60"), look("stop", "bg1"), say("Stopped."), say("Yes.")]
    async with ground(root, *turns) as it:
        _, stopped = await ask(it)
        assert stopped == "bg1 ($ sleep 60): ended by signal 15."
        assert not await anyio.to_thread.run_sync(processes_with, str(root))
        await ask(it, "and?")
        assert "Report of Tiller" not in last_request(it)
        assert (await ended(it)).by == "model"


async def test_the_user_stops_one_and_the_model_gets_a_report(root: Path) -> None:
    async with ground(root, begin("sleep 60"), say("Started."), say("I see.")) as it:
        await ask(it)
        stopped = await it.session.stop_background("bg1")
        assert (stopped.is_running, stopped.signal) == (False, 15)
        again = await it.session.stop_background("bg1")
        assert again == stopped
        await ask(it, "and?")
        assert "was ended by signal 15. The user stopped it." in last_request(it)
        with pytest.raises(ToolError, match="There is no background command 'bg7'; there are: bg1"):
            _ = await it.session.stop_background("bg7")


async def test_a_server_is_listed_with_its_ports(root: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = f"exec {sys.executable} -u -m http.server --bind 127.0.0.1 {port}"
    turns = [begin(server), look("read", "bg1", waitS=10, offset=0), look("list"), say("Up.")]
    async with ground(root, *turns) as it:
        *_, listed = await ask(it)
        assert f"running, listening on port {port}, " in listed
        last = [one for one in it.seen() if isinstance(one, ToolEnded)][-1]
        assert f"'ports': [{port}]" in str(last.details)
        event = await it.until(BackgroundListening)
        assert event == BackgroundListening(id="bg1", ports=(port,))
        assert it.session.info.snapshot().background[0].ports == (port,)


async def test_a_stop_of_the_run_leaves_it_running(root: Path) -> None:
    turns = [begin("sleep 60"), call("bash", {"command": "sleep 30"}, id="c2"), say("Never.")]
    async with ground(root, *turns) as it:
        await it.session.prompt("go")
        _ = await it.until(ToolEnded)
        result = await it.session.abort()
        assert result.survivors == ()
        _ = await it.idle()
        assert [one.id for one in it.session.info.snapshot().background] == ["bg1"]


async def test_more_than_the_most_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.session.tools.background.MOST_RUNNING", 1)
    calls = [begin("exec sleep 60", id=f"c{n}") for n in range(2)]
    async with ground(root, *calls, say("Enough.")) as it:
        results = await ask(it)
        assert results[-1].startswith("1 commands run in the background, which is the most")


async def test_without_any_the_list_says_so_and_an_unknown_one_is_named(root: Path) -> None:
    turns = [look("list"), look("read"), look("stop", "bg9"), say("Oh.")]
    async with ground(root, *turns) as it:
        nothing, nameless, unknown = await ask(it)
        assert nothing == "There are no background commands."
        assert nameless.startswith("Name the command with id")
        assert unknown == "There is no background command 'bg9'; there are: none."


async def test_one_that_died_with_its_process_is_reported_once_when_the_session_is_opened_again(
    root: Path,
) -> None:
    log, opened = await held()
    async with ground(root, begin("exec sleep 60"), say("Started."), opened=opened) as it:
        await ask(it)
        left = tuple(log.written)
    log, again = await held(left)
    async with ground(root, say("I see."), say("Yes."), opened=again) as it:
        await ask(it, "and?")
        assert last_request(it).count("bg1 ($ exec sleep 60) ended when Tiller was closed") == 1
        left = tuple(log.written)
    _, third = await held(left)
    async with ground(root, begin("exec sleep 60"), say("Started."), opened=third) as it:
        await ask(it, "again")
        assert last_request(it).count("ended when Tiller was closed") == 1
        assert [one.id for one in it.session.info.snapshot().background] == ["bg2"]


async def test_a_running_command_is_moved_and_its_call_returns(root: Path) -> None:
    pipe = root / "in"
    script = f"mkfifo {pipe}; echo one; read line < {pipe}; echo two; exec sleep 60"
    turns = [
        call("bash", {"command": script}),
        look("read", "bg1", waitS=10),
        say("It goes on."),
    ]
    async with ground(root, *turns) as it:
        await it.session.prompt("go")
        _ = await it.until(ToolOutputDelta)
        assert it.session.move_to_background() is True
        started = await it.until(BackgroundStarted)
        assert isinstance(started, BackgroundStarted)
        assert it.session.move_to_background(started.command.item) is False
        _ = await it.until(ToolEnded)
        await anyio.to_thread.run_sync(pipe.write_text, "go\n")
        _ = await it.idle()
        moved, read = it.results()
        assert moved.startswith(
            f"The user moved this command to the background: bg1 ($ {script}): running. Log: "
        )
        assert moved.endswith("Last output:\none")
        assert read.endswith("two\n")
        log = await anyio.Path(started.command.log).read_text()
        assert log == "one\ntwo\n"
        running = await anyio.to_thread.run_sync(processes_with, str(root))
        assert running
    assert not living(running)


async def test_nothing_is_moved_when_no_command_runs(root: Path) -> None:
    async with ground(root, say("Hello.")) as it:
        assert it.session.move_to_background() is False
        await ask(it)
        assert it.session.move_to_background() is False


async def test_a_long_output_is_whole_in_the_log_of_a_moved_command(root: Path) -> None:
    script = "seq 1 30000; echo ready; exec sleep 60"
    async with ground(root, call("bash", {"command": script}), say("Good.")) as it:
        await it.session.prompt("go")
        while "ready" not in "".join(
            one.text for one in it.seen() if isinstance(one, ToolOutputDelta)
        ):
            await it.reader.wait()
        assert it.session.move_to_background() is True
        _ = await it.idle()
        started = await it.until(BackgroundStarted)
        assert isinstance(started, BackgroundStarted)
        log = await anyio.Path(started.command.log).read_text()
        assert log == "".join(f"{n}\n" for n in range(1, 30_001)) + "ready\n"


async def test_a_stop_of_the_run_in_the_moment_of_the_move_leaves_no_process_unowned(
    root: Path,
) -> None:
    async with ground(root, call("bash", {"command": "echo on; exec sleep 60"}), say("no")) as it:
        await it.session.prompt("go")
        _ = await it.until(ToolOutputDelta)
        assert it.session.move_to_background() is True
        _ = await it.session.abort()
        running = await anyio.to_thread.run_sync(processes_with, str(root))
        listed = it.session.info.snapshot().background
        assert bool(running) is bool(listed)
    assert not living(running)


async def test_no_line_is_lost_while_a_command_that_writes_is_moved_and_stopped(root: Path) -> None:
    script = "i=0; while :; do i=$((i + 1)); echo $i; done"
    async with ground(root, call("bash", {"command": script}), say("Good.")) as it:
        await it.session.prompt("go")
        _ = await it.until(ToolOutputDelta)
        assert it.session.move_to_background() is True
        started = await it.until(BackgroundStarted)
        assert isinstance(started, BackgroundStarted)
        _ = await it.idle()
        path = anyio.Path(started.command.log)
        with anyio.fail_after(20):
            while len((await path.read_text()).splitlines()) < 200:
                await anyio.lowlevel.checkpoint()
        _ = await it.session.stop_background("bg1")
        lines = (await path.read_text()).splitlines()[:-1]  # the last one may be cut
        assert lines == [str(n) for n in range(1, len(lines) + 1)]
        assert len(lines) > 100
