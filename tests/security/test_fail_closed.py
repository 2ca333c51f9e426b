"""One part fails at a time, in a whole session on the disk: nothing runs, nothing is written, nothing gets out."""

import importlib
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from anyio import to_thread

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import ToolEnded
from agent_core.resources.trust.evidence import gather
from agent_core.resources.trust.workspace_trust import TrustStore
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder
from tests.support.workspace.contained import require_full

pytestmark = [pytest.mark.timeout(60)]

TOUCH = {"name": "bash", "arguments": {"command": "touch made"}}
WRITE = {"name": "write", "arguments": {"path": "AGENTS.md", "content": "made"}}
OUTSIDE = {"name": "write", "arguments": {"path": "../made", "content": "made"}}

# Where a fault is put, and the call that must not get through because of it.
COMMAND_PARTS = (
    "agent_core.workspace.permissions.shell.strict_parser:read_command",
    "agent_core.workspace.permissions.shell.mentions:mentioned",
    "agent_core.workspace.permissions.policy.decision:parse_subject",
    "agent_core.workspace.permissions.policy.decision:strict_rule",
    "agent_core.workspace.permissions.policy.decision:column_of",
    "agent_core.workspace.permissions.policy.decision:decide",
    "agent_core.session.permissions.broker:PolicyContext",
    "agent_core.workspace.sandbox.survey:plan_holds",
    "agent_core.workspace.sandbox.survey:home_view",
    "agent_core.workspace.sandbox.backends.bubblewrap:git_access",
    "agent_core.workspace.sandbox.backends.bubblewrap:bubblewrap_arguments",
    "agent_core.workspace.sandbox.backends.bubblewrap:filter_descriptor",
    "agent_core.workspace.sandbox.backends.bubblewrap:inner_environment",
)
UNCONTAINED_PARTS = (
    "agent_core.workspace.sandbox.selection:probe",
    "agent_core.assembly.workspace:sandbox_for",
    "agent_core.assembly.config:load_rules",
    "agent_core.workspace.permissions.policy.decision:offers",
    "agent_core.workspace.permissions.policy.decision:risk_of",
    "agent_core.session.permissions.permission_prompts:PermissionPrompts.count_denial",
    "agent_core.session.permissions.permission_prompts:PermissionPrompts.ask",
    "agent_core.session.permissions.requests:build_request",
)
FILE_PARTS = (
    "agent_core.session.permissions.broker:is_protected",
    "agent_core.session.permissions.guarded_files:is_protected",
    "agent_core.workspace.permissions.policy.decision:column_of",
    "agent_core.session.permissions.broker:FileAccess",
    "agent_core.session.permissions.permission_prompts:PermissionPrompts.ask",
)


class Boom(Exception):
    """The fault that is put in."""


ERRORS = (Boom(), OSError("disk"), TimeoutError())


def break_part(
    monkeypatch: pytest.MonkeyPatch, part: str, error: Exception = ERRORS[0]
) -> Callable[[], int]:
    """Let a part fail whenever it is used; gives how often that was."""
    module_name, _, name = part.partition(":")
    holder: Any = importlib.import_module(module_name)
    *path, last = name.split(".")
    for one in path:
        holder = getattr(holder, one)
    uses: list[int] = []

    def fail(*_given: object, **_named: object) -> object:
        uses.append(1)
        raise error

    monkeypatch.setattr(holder, last, fail)
    return lambda: len(uses)


def configure(folder: Folder, lab: LoopbackProvider, *turns: Any, **settings: Any) -> None:
    write_config(folder.dirs.config, lab, settings=settings)
    lab.script([*({"tool_calls": [turn]} for turn in turns), {"text": "done"}])


async def statuses(folder: Folder) -> list[str]:
    """Run the script; gives how its calls ended, or nothing when not even a session came to be."""
    ended: list[str] = []
    with suppress(Boom, OSError):
        async with folder.open(model=None) as session:
            reader = session.subscribe()
            await session.prompt("go")
            _ = await session.wait_idle()
            events = [one.event for one in reader.take_now()]
            ended = [event.status for event in events if isinstance(event, ToolEnded)]
    return ended


@pytest.fixture
def _full() -> None:
    _ = require_full()


@pytest.mark.usefixtures("_full")
async def test_with_nothing_broken_a_contained_command_runs(folder: Folder, lab: Any) -> None:
    configure(folder, lab, TOUCH, permission={"mode": "ask", "fallback": "rules"})
    assert await statuses(folder) == ["ok"]
    assert (folder.root / "made").exists()


@pytest.mark.usefixtures("_full")
@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("part", COMMAND_PARTS)
async def test_a_part_that_fails_lets_nothing_run(
    folder: Folder, lab: Any, monkeypatch: pytest.MonkeyPatch, part: str, error: Exception
) -> None:
    configure(folder, lab, TOUCH, permission={"mode": "ask", "fallback": "rules"})
    used = break_part(monkeypatch, part, error)
    ended = await statuses(folder)
    assert used() > 0
    assert not (folder.root / "made").exists()
    assert set(ended) <= {"blocked", "error"}


@pytest.mark.parametrize("fallback", ["rules", "ask"])
@pytest.mark.parametrize("part", UNCONTAINED_PARTS)
async def test_where_nothing_is_contained_a_part_that_fails_asks_or_refuses(
    folder: Folder, lab: Any, monkeypatch: pytest.MonkeyPatch, part: str, fallback: str
) -> None:
    sandbox = "auto" if "containment" in part or "probe" in part else "off"
    permission = {"mode": "ask", "fallback": fallback, "timeoutS": 0.1}
    configure(folder, lab, TOUCH, permission=permission, sandbox=sandbox)
    _ = break_part(monkeypatch, part)
    ended = await statuses(folder)
    assert not (folder.root / "made").exists()
    assert set(ended) <= {"blocked", "error"}


async def test_a_probe_that_fails_is_told_and_the_session_works_uncontained(
    folder: Folder, lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(folder, lab, TOUCH, permission={"mode": "ask", "fallback": "rules"})
    _ = break_part(monkeypatch, "agent_core.workspace.sandbox.selection:probe")
    async with folder.open(model=None) as session:
        assert session.info.snapshot().sandbox == "none"


@pytest.mark.parametrize("part", FILE_PARTS)
async def test_a_part_that_fails_lets_no_protected_file_be_written(
    folder: Folder, lab: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    configure(folder, lab, WRITE, permission={"mode": "yolo", "fallback": "ask", "timeoutS": 0.1})
    _ = break_part(monkeypatch, part)
    ended = await statuses(folder)
    assert not (folder.root / "AGENTS.md").exists()
    assert set(ended) <= {"blocked", "error"}


async def test_a_redactor_that_fails_withholds_what_it_could_not_look_through(
    folder: Folder, lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = {"name": "bash", "arguments": {"command": "echo s3cret-token-of-mine"}}
    configure(folder, lab, say, permission={"mode": "ask", "fallback": "rules"})
    folder.env["DEPLOY_TOKEN"] = "s3cret-token-of-mine"
    _ = break_part(monkeypatch, "agent_core.kernel.redaction.redactor:HeldValues.spans")
    told: list[str] = []
    with suppress(Boom):
        async with folder.open(model=None) as session:
            reader = session.subscribe()
            await session.prompt("go")
            _ = await session.wait_idle()
            told = [repr(one.event) for one in reader.take_now()]
            told += [repr(one) for one in session.info.messages]
    assert not [one for one in told if "s3cret-token" in one]
    for path in folder.files:
        assert "s3cret-token" not in path.read_text("utf-8")


async def test_a_file_of_rules_that_cannot_be_read_loosens_nothing(
    folder: Folder, lab: Any
) -> None:
    configure(folder, lab, TOUCH, permission={"mode": "ask", "fallback": "rules"}, sandbox="off")
    rules = {"version": 1, "rules": [{"tool": "bash", "argv": ["touch"], "decision": "allow"}]}
    folder.write("policy.json", json.dumps(rules)[:-1])
    assert await statuses(folder) == ["blocked"]
    assert not (folder.root / "made").exists()


@pytest.mark.parametrize(
    "part",
    [
        "agent_core.resources.trust.workspace_trust:gather",
        "agent_core.resources.trust.workspace_trust:marks",
        "agent_core.resources.trust.workspace_trust:TrustStore.decision",
        "agent_core.resources.trust.workspace_trust:WorkspaceTrust._gathered",
    ],
)
async def test_a_trust_check_that_fails_trusts_nothing(
    folder: Folder, lab: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    permission = {"mode": "yolo", "fallback": "rules"}
    configure(folder, lab, TOUCH, permission=permission, defaultProjectTrust="ask")
    (folder.root / "AGENTS.md").write_text("SAY-THE-WORD", encoding="utf-8")
    await to_thread.run_sync(_trust, folder)
    _ = break_part(monkeypatch, part)
    request = SessionRequest(workspace=folder.root, env=folder.env)
    async with open_session(request) as session:
        reader = session.subscribe()
        await session.prompt("go")
        _ = await session.wait_idle()
        events = [one.event for one in reader.take_now()]
    assert [event.status for event in events if isinstance(event, ToolEnded)] == ["blocked"]
    assert not (folder.root / "made").exists()
    assert "SAY-THE-WORD" not in json.dumps([one["body"] for one in lab.requests])


def _trust(folder: Folder) -> None:
    """Let the user have said yes, so that only the fault is left to say no."""
    store = TrustStore(folder.dirs.data / "trust.json")
    store.record(folder.root, "trusted", seen=gather(folder.root), at_ms=1)
