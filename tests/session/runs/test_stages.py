"""The stages of a run as events, and the effect of an error in each of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from typing_extensions import override

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.events import (
    ChangeCounts,
    ErrorRaised,
    ExtensionError,
    Notice,
    RunEnded,
    RunStageStarted,
)
from agent_core.hooks import Hook, HookTable, RunSettled
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ProviderError, StorageUnavailable
from agent_core.kernel.json import as_object
from agent_core.providers import ModelRequest
from agent_core.session.context import SessionOptions, WorkspaceContext
from agent_core.session.history.entries import RUN
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.runs import executor
from agent_core.session.runs.executor import UNCOUNTED
from agent_core.session.runs.retry_policy import RetryOptions
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.storage.port import OpenedSession, Recovery, SessionLog
from agent_core.tools import ToolSpec
from agent_core.tools.builtin import builtin_tools
from agent_core.transcript import AnyEntry, CustomEntry
from agent_core.transcript.entries import Header
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.session.scripted_model import Gate, ScriptedModel, Turn, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import echo

ALL = ["prepare", "execute", "summarize", "persist"]
REFUSED = ProviderError("no such model", reason="not_found", provider="p", status=404)


class FillingLog:
    """A log on a disk that is full for a time; the rest is the log's own."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        if self.is_full:
            raise StorageUnavailable("the disk is full")
        await self._log.append(entries)


def stages(b: Bench) -> Sequence[str]:
    return [one.event.stage for one in b.events if isinstance(one.event, RunStageStarted)]


def ended(b: Bench) -> RunEnded:
    (one,) = (stamped.event for stamped in b.events if isinstance(stamped.event, RunEnded))
    return one


async def go(b: Bench) -> None:
    _ = await b.session.prompt("go")
    await b.idle()


async def test_each_run_has_its_stages_once_and_in_order_however_many_turns_it_has() -> None:
    async with bench(
        ScriptedModel([call("echo", {"text": "x"}), say("done")]), tools=[echo()]
    ) as b:
        await go(b)
        assert stages(b) == ALL
        assert (ended(b).status, ended(b).stage) == ("completed", None)


async def test_an_error_while_a_run_is_prepared_ends_it_before_a_request() -> None:
    async def broken(specs: Sequence[ToolSpec]) -> str:
        raise StorageUnavailable(f"the instructions of {len(specs)} tools cannot be read")

    model = ScriptedModel([say("never")])
    async with bench(model, system_prompt=broken) as b:
        await go(b)
        assert (stages(b), model.requests) == (["prepare", "summarize", "persist"], [])
        assert (ended(b).status, ended(b).stage) == ("failed", "prepare")


async def test_an_error_of_the_model_keeps_what_was_done_before() -> None:
    options = SessionOptions(retry=RetryOptions(enabled=False))
    model = ScriptedModel([call("echo", {"text": "x"}), REFUSED])
    async with bench(model, tools=[echo()], options=options) as b:
        await go(b)
        assert (stages(b), ended(b).stage, b.results()) == (ALL, "execute", ["echo:x"])


async def test_a_cancelled_run_has_its_last_stages_too() -> None:
    gate = Gate()
    async with bench(ScriptedModel([[gate, *say("never")]])) as b:
        _ = await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        _ = await b.session.abort()
        await b.idle()
        assert (stages(b), ended(b).status, ended(b).stage) == (ALL, "cancelled", None)


async def test_a_hook_that_fails_after_the_turns_changes_nothing_in_the_result() -> None:
    async def fail(value: RunSettled, _: object) -> None:
        raise RuntimeError(value.status)

    hooks = HookTable()
    hooks.add(Hook("broken", fail), at=RunSettled)
    async with bench(ScriptedModel([say("done")]), hooks=hooks) as b:
        await go(b)
        assert (stages(b), ended(b).status, ended(b).error) == (ALL, "completed", None)
        assert [one for one in b.events if isinstance(one.event, ExtensionError)]


async def test_a_disk_that_is_full_at_the_end_changes_nothing_in_the_result() -> None:
    store = MemoryStore()
    header = Header(id=SessionId("s-1"), at_ms=0, cwd="/project")
    log = FillingLog(await store.create(header))

    def answer(request: ModelRequest) -> Turn:
        del request
        log.is_full = True
        return say("done")

    opened = OpenedSession(log=cast("Any", log), entries=(), recovery=Recovery())
    async with bench(ScriptedModel([answer]), store=store, opened=opened) as b:
        await go(b)
        assert (stages(b), ended(b).status, ended(b).error) == (ALL, "completed", None)
        assert [one for one in b.events if isinstance(one.event, ErrorRaised)]
        log.is_full = False
        await b.session.close()
    entries = (await store.read(SessionId("s-1"))).entries
    runs = [
        as_object(one.data)
        for one in entries
        if isinstance(one, CustomEntry) and one.custom_type == RUN
    ]
    assert runs[-1]["status"] == "completed"


class HeldContents(MemoryBlobStore):
    """File contents that are slow to read for a time."""

    def __init__(self) -> None:
        super().__init__()
        self.gate: Gate | None = None

    @override
    async def get(self, key: str) -> bytes | None:
        if self.gate is not None:
            await self.gate.wait()
        return await super().get(key)


async def test_changes_that_cannot_be_counted_in_time_are_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "COUNT_S", 0.05)
    contents, gate = HeldContents(), Gate()
    # More text than is held between runs, so that it is read again.
    large = {"path": str(tmp_path / "a.txt"), "content": "line\n" * 20_000}
    model = ScriptedModel([call("write", large), say("written"), say("done")])
    files = DiskFiles((tmp_path,), tmp_path)
    workspace = Workspace(roots=(tmp_path,), files=files, processes=DiskProcesses(), env={})
    place = WorkspaceContext(
        workspace=workspace, raw=files, permissions=PermissionState(mode="yolo")
    )
    async with (
        bench(model, tools=builtin_tools(), root=tmp_path, workspace=place, contents=contents) as b,
        anyio.create_task_group() as group,
    ):
        await go(b)
        contents.gate = gate
        group.start_soon(b.session.changes.list)
        with anyio.fail_after(5):
            await gate.reached.wait()
        _ = await b.session.prompt("again")
        await b.idle()
        last = [one.event for one in b.events if isinstance(one.event, RunEnded)][-1]
        assert (last.status, last.changes) == ("completed", ChangeCounts())
        assert UNCOUNTED in [one.event.text for one in b.events if isinstance(one.event, Notice)]
        gate.release()
