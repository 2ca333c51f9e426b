"""What destructive commands cost: which run unasked, what undo brings back, and that all else is named.

The table of docs/terminal/destructive-commands.md holds what is expected of each row. To write it anew after a change:
`TILLER_CAMPAIGN=1 TILLER_WRITE_TABLE=1 pytest tests/security/red_team/test_destructive_undo.py`.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.changes.adapters.disk_detector import DiskChangeDetector
from agent_core.events import Notice
from agent_core.kernel.errors import CheckpointConflict
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin import builtin_tools
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.permissions.call_permission import SandboxLevel
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.sandbox import Sandbox, SandboxCapability, sandbox_for
from agent_core.workspace.sandbox.backends.landlock import try_landlock
from tests.security.red_team.containment import boundaries, verdict
from tests.security.red_team.destructive import FILES, HISTORY, IGNORED, ROWS
from tests.security.red_team.world import World, laid_out
from tests.support.harness.shared import ROOT
from tests.support.harness.sizes import is_campaign, paired
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.contained import require_full

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the commands are those of Linux"),
    pytest.mark.timeout(60),
]
PAGE: Final = ROOT / "docs" / "terminal" / "destructive-commands.md"
LEVELS: Final = get_args(SandboxLevel)
COMMANDS: Final = (*(row.command for row in ROWS), *FILES)
NOTHING: Final = "nothing"
MOST_NAMES: Final = 4
HEADER: Final[Sequence[str]] = (
    "| Command | Full containment | Lost with full | Lost with partial or none |",
    "|---|---|---|---|",
)
LEAST_ROWS: Final = 60
ROUNDS: Final = paired(COMMANDS, LEVELS)[:: 1 if is_campaign() else 4]
WRITES: Final = os.environ.get("TILLER_WRITE_TABLE") == "1"  # noqa: TID251 - the switch is the environment
EVERYDAY: Final = (
    "git status && git diff",
    "git add -A && git commit -q -m 'a commit'",
    "git checkout main",
    "git checkout -b topic",
    "git switch -c topic",
    "git stash && git stash pop",
    "git merge topic",
    "git rebase main",
    "git cherry-pick topic",
    "git revert --no-edit HEAD",
    "git branch topic && git tag v1",
    "git worktree list; git log --oneline",
)
Cells = tuple[str, str, str]
"""The verdict in full containment, what is lost there, and what is lost with partial containment or none."""


@dataclass(frozen=True, slots=True)
class State:
    """What the user has."""

    files: Mapping[Path, bytes]
    """Of both roots, without git folders."""
    commits: frozenset[str]
    """All that a ref, a reflog or the stash reaches."""


@pytest.fixture(scope="module")
def kept() -> Iterator[World]:
    """Return a machine with history, to be copied for each row."""
    with laid_out() as machine:
        machine.as_user(HISTORY + IGNORED)
        shutil.copytree(machine.root.parent, machine.top / "work", symlinks=True)
        yield machine


@pytest.fixture
def machine(kept: World) -> World:
    _ = kept.as_user("chmod -R u+rwX work; rm -rf work; cp -a ../work work", cwd=kept.home)
    return kept


def test_the_page_has_every_row_with_what_the_policy_says() -> None:
    rows = _page()
    assert len(COMMANDS) >= LEAST_ROWS
    assert {command: cells[0] for command, cells in rows.items()} == {
        command: _verdict(command, "full") for command in COMMANDS
    }


@pytest.mark.parametrize("level", LEVELS)
def test_no_row_runs_unasked_that_nothing_holds(level: SandboxLevel) -> None:
    unasked = [one for one in COMMANDS if _verdict(one, level) == "run"]
    assert bool(unasked) == (level == "full")


@pytest.mark.parametrize("command", EVERYDAY)
def test_git_commands_that_only_add_run_unasked_in_full_containment(command: str) -> None:
    assert _verdicts(command) == ("run", "ask", "ask")


@pytest.mark.parametrize(("command", "level"), ROUNDS)
async def test_undo_after_a_yes_brings_files_back_and_names_all_else(
    machine: World, command: str, level: SandboxLevel
) -> None:
    told = await _run_and_undo(machine, command, level)
    # `partial` keeps a command in the folders of the workspace; within them it can do what it could do without.
    column = 1 if level == "full" else 2
    if WRITES and level != "partial":
        await to_thread.run_sync(_write, command, column, told)
    cells = (await to_thread.run_sync(_page))[command]
    assert told == cells[column]
    if level == "full" and cells[0] == "run":
        assert ".git" not in told


async def _run_and_undo(machine: World, command: str, level: SandboxLevel) -> str:
    """Run a command as after a yes, undo it, and return what is named; nothing else may be lost."""
    before = await to_thread.run_sync(_state, machine)
    async with _session(machine, level) as b:
        b.model.add(
            call("bash", {"command": command.replace("$SECOND", str(machine.second))}), say("done")
        )
        _ = await b.session.prompt("go")
        _ = await b.idle()
        notices = [one.text for one in b.seen() if isinstance(one, Notice)]
        named = [one.path for one in b.session.changes.log.all if one.is_lost]
        latest = b.session.checkpoints.latest_run
        left = set[Path]()
        if latest is not None:
            try:
                done = await b.session.checkpoints.restore(latest.checkpoint)
                left = {one.path for one in done.skipped}
            except CheckpointConflict:
                left = set(named)
    now = await to_thread.run_sync(_state, machine)
    lost = {path for path, held in before.files.items() if now.files.get(path) != held}
    # The page says so: what package managers put there is not looked at.
    lost = {path for path in lost if "node_modules" not in path.parent.parts}
    silent = {path for path in lost if {path, *path.parents}.isdisjoint(named)}
    assert silent == set(), notices
    assert set(named) <= left or latest is None
    git = [path for path in named if ".git" in path.parts]
    assert git or before.commits <= now.commits, "commits are lost without a word"
    assert all(path.name in " ".join(notices) or len(named) > 1 for path in named)
    return _shortened(sorted(_name(path, machine) for path in named))


@asynccontextmanager
async def _session(machine: World, level: SandboxLevel) -> AsyncGenerator[Bench]:
    roots, contents = (machine.root, machine.second), MemoryBlobStore()
    sandbox = await to_thread.run_sync(_sandbox, machine, level)
    files, processes = DiskFiles(roots, machine.root), DiskProcesses(sandbox=sandbox)
    lookout = DiskChangeDetector(roots, contents, processes, env=machine.env)
    place = WorkspaceContext(
        workspace=Workspace(roots=roots, files=files, processes=processes, env=machine.env),
        raw=files,
        detector=lookout,
        permissions=PermissionState(mode="yolo"),
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(to_thread.run_sync, sandbox.close)
        stack.callback(lookout.close)
        session = bench(
            ScriptedModel([]),
            tools=builtin_tools(),
            root=machine.root,
            workspace=place,
            contents=contents,
        )
        yield await stack.enter_async_context(session)


def _sandbox(machine: World, level: SandboxLevel) -> Sandbox:
    """Return what contains commands at a level; skips where the machine has nothing of the kind."""
    match level:
        case "full":
            found = require_full()
        case "partial":
            if try_landlock() is None:
                pytest.skip("this machine has no Landlock, so there is no partial containment")
            found = SandboxCapability(level="partial", how="Landlock", why_not_full="told")
        case "none":
            found = SandboxCapability(level="none", how="nothing", why_not_full="told")
    bounds = boundaries(
        machine.root, machine.second, env=machine.env, own=(), quarantine=machine.quarantine
    )
    return sandbox_for(found, bounds)


def _verdicts(command: str) -> tuple[str, str, str]:
    full, partial, none = (_verdict(command, level) for level in ("full", "partial", "none"))
    return full, partial, none


def _verdict(command: str, level: SandboxLevel) -> str:
    return verdict(command, root=ROOT, level=level, mode="ask", git_starts_programs=False)


def _state(machine: World) -> State:
    files = {
        path: path.read_bytes()
        for root in (machine.root, machine.second)
        for path in _walk(root)
        if path.is_file() and not path.is_symlink()
    }
    script = "git rev-list --all --reflog 2>/dev/null || true"
    commits = machine.as_user(script, cwd=machine.root).split()
    return State(files=files, commits=frozenset(commits))


def _walk(root: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        yield from (Path(at, name) for name in names if name != ".git")


def _shortened(names: Sequence[str]) -> str:
    """Return names for a cell: of more than a few below one part of `.git`, that part and their number."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names) or NOTHING
    parts = Counter("/".join(name.split("/")[:2]) for name in names if name.startswith(".git/"))
    groups = {part: count for part, count in parts.items() if count > 1}
    single = [name for name in names if "/".join(name.split("/")[:2]) not in groups]
    return ", ".join([*single, *(f"{count} files below {part}" for part, count in groups.items())])


def _name(path: Path, machine: World) -> str:
    if path.is_relative_to(machine.root):
        return str(path.relative_to(machine.root))
    return f"$SECOND/{path.relative_to(machine.second)}"


def _page() -> dict[str, Cells]:
    """Read the table of the page."""
    rows: dict[str, Cells] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").replace("\\|", "\0").split("|")]
            command, verdict_in_full, *lost = (cell.replace("\0", "|") for cell in cells)
            rows[command.strip("`").strip()] = verdict_in_full, lost[0], lost[1]
    return rows


def _write(command: str, column: int, lost: str) -> None:
    """Put a cell into the page, in place of the one that is there."""
    rows = _page()
    _, *cells = rows.get(command, ("", "", ""))
    cells[column - 1] = lost
    rows[command] = _verdict(command, "full"), cells[0], cells[1]
    head = PAGE.read_text("utf-8").partition("| Command |")[0]
    lines = [*HEADER]
    for one in COMMANDS:
        if one in rows:
            told = one.replace("|", "\\|")
            fence = "``" if "`" in one else "`"
            lines.append(f"| {fence}{told}{fence} | {' | '.join(rows[one])} |")
    _ = PAGE.write_text(head + "\n".join(lines) + "\n", "utf-8")
