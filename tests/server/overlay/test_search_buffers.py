"""grep, find and ls over an editor with unsaved text: they see what its user sees, with ripgrep and without it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.kernel import JsonValue
from agent_core.tools.runner import ToolOutcome
from agent_core.workspace import Workspace
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.clients.editors import Place, Window, settled
from tests.support.lsp.lsp_profiles import VSCODE
from tests.support.workspace.searches import ENGINES, Engine, searching_with
from tests.tools.conftest import Bench, details, make_bench, words
from tiller_server.lsp.overlay.save_barrier import SaveBeforeRun

NOTHING = "No matches found"


class Desk:
    """A workspace whose `a.py` is open, and the tools."""

    def __init__(self, place: Place, bench: Bench) -> None:
        self.place = place
        self.bench = bench

    def opened(self, name: str, text: str, *, on_disk: str | None = None) -> None:
        """Open another document with unsaved text."""
        path = self.place.root / name
        desk = self.place.window.desk
        if on_disk is None:
            desk.open(path.as_uri(), text)
            return
        self.bench.put(name, on_disk)
        desk.open_file(path)
        desk.change(path.as_uri(), text)

    async def run(self, tool: str, **arguments: JsonValue) -> ToolOutcome:
        await settled(self.place.window)
        return await self.bench.run(tool, **arguments)


def _desk(tmp_path: Path, env: Mapping[str, str], engine: Engine, *, typed: str) -> Desk:
    place = Place.make(tmp_path, Window(VSCODE), text="what the disk has\n", typed=typed)
    bench = make_bench(place.root, home=place.root.parent / "home", env=env)
    processes = SaveBeforeRun(DiskProcesses(), place.files)
    workspace = Workspace(roots=(place.root,), files=place.files, processes=processes, env=env)
    bench.workspace = searching_with(engine, workspace)
    return Desk(place, bench)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


@pytest.fixture
def desk(tmp_path: Path, child_env: dict[str, str], engine: Engine) -> Desk:
    return _desk(tmp_path, child_env, engine, typed="one\nwhat I typed\nthree\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param({"pattern": "what"}, "a.py:2: what I typed", id="folder"),
        pytest.param({"pattern": "what", "path": "a.py"}, "a.py:2: what I typed", id="file"),
        pytest.param({"pattern": "disk"}, NOTHING, id="not the disk"),
        pytest.param({"pattern": "disk", "path": "a.py"}, NOTHING, id="not the disk's file"),
        pytest.param({"pattern": "^what.*d$"}, "a.py:2: what I typed", id="pattern"),
        pytest.param({"pattern": "WHAT", "ignoreCase": True}, "a.py:2: what I typed", id="case"),
        pytest.param({"pattern": "I t", "literal": True}, "a.py:2: what I typed", id="literal"),
        pytest.param({"pattern": "what", "glob": "*.py"}, "a.py:2: what I typed", id="glob"),
        pytest.param({"pattern": "what", "glob": "*.js"}, NOTHING, id="another glob"),
        pytest.param({"pattern": "what", "glob": "!a.*"}, NOTHING, id="left out"),
        pytest.param(
            {"pattern": "what", "context": 1},
            "a.py-1- one\na.py:2: what I typed\na.py-3- three",
            id="context",
        ),
        pytest.param(
            {"pattern": "t", "limit": 1},
            "a.py:2: what I typed\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]",
            id="limit",
        ),
    ],
)
async def test_unsaved_text_is_searched_instead_of_the_disk(
    desk: Desk, engine: Engine, arguments: Mapping[str, JsonValue], told: str
) -> None:
    outcome = await desk.run("grep", **arguments)
    assert (outcome.status, words(outcome)) == ("ok", told)
    assert details(outcome)["engine"] == engine
    assert desk.place.disk == "what the disk has\n"


async def test_saved_and_unsaved_files_are_searched_together(desk: Desk) -> None:
    desk.bench.put("b.py", "what b has\n")
    desk.opened("sub/c.py", "what c has\n", on_disk="nothing\n")
    outcome = await desk.run("grep", pattern="what")
    assert words(outcome) == "a.py:2: what I typed\nb.py:1: what b has\nsub/c.py:1: what c has"
    assert (details(outcome)["file_count"], details(outcome)["match_count"]) == (3, 3)


@pytest.mark.parametrize(
    ("text", "pattern", "told"),
    [
        pytest.param("ende;\r\n", ";$", "a.py:1: ende;", id="crlf"),
        pytest.param("größe 🌍\n", "größe", "a.py:1: größe 🌍", id="unicode"),
        pytest.param(
            f"{'x' * 600}\n",
            "x",
            f"a.py:1: {'x' * 500}... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]",
            id="long",
        ),
        pytest.param("foo.bar(baz)\n", r"foo\.bar\(", "a.py:1: foo.bar(baz)", id="escaped"),
    ],
)
async def test_any_unsaved_text_can_be_searched(  # noqa: PLR0917 - fixtures and cases
    tmp_path: Path, child_env: dict[str, str], engine: Engine, text: str, pattern: str, told: str
) -> None:
    desk = _desk(tmp_path, child_env, engine, typed=text)
    assert words(await desk.run("grep", pattern=pattern)) == told


async def test_ignored_unsaved_files_are_left_out(desk: Desk) -> None:
    desk.bench.put(".gitignore", "*.log\nout/\n")
    desk.opened("a.log", "what is logged\n", on_disk="x\n")
    desk.opened("out/made.py", "what is made\n", on_disk="x\n")
    desk.opened("new.log", "what is new\n")
    assert words(await desk.run("grep", pattern="what")) == "a.py:2: what I typed"
    assert words(await desk.run("grep", pattern="what", path="a.log")) == "a.log:1: what is logged"
    assert words(await desk.run("grep", pattern="what", path="out")) == "made.py:1: what is made"
    assert words(await desk.run("find", pattern="*.{py,log}")) == "a.py"


async def test_a_file_that_is_only_in_the_editor_is_found(desk: Desk) -> None:
    desk.opened("new.py", "what is new\n")
    desk.opened("far/away/new.py", "what is far away\n")
    assert words(await desk.run("grep", pattern="what is")) == (
        "far/away/new.py:1: what is far away\nnew.py:1: what is new"
    )
    assert words(await desk.run("find", pattern="*")).split() == [
        "a.py",
        "far/",
        "far/away/",
        "far/away/new.py",
        "new.py",
    ]
    assert words(await desk.run("ls")).split() == ["a.py", "far/", "new.py"]
    assert words(await desk.run("ls", path="far/away")) == "new.py"
    assert words(await desk.run("grep", pattern="what", path="far")) == (
        "away/new.py:1: what is far away"
    )
    assert words(await desk.run("find", pattern="new.py", path="far")) == "away/new.py"


async def test_a_saved_document_is_searched_on_the_disk(desk: Desk) -> None:
    desk.place.window.desk.change(desk.place.uri, "what the disk has\n")
    assert words(await desk.run("grep", pattern="what")) == "a.py:1: what the disk has"


async def test_the_limit_counts_saved_and_unsaved_matches(desk: Desk) -> None:
    desk.bench.put("b.py", "t\n" * 3)
    outcome = await desk.run("grep", pattern="t", limit=4)
    assert words(outcome).rpartition("\n\n")[2] == (
        "[4 matches limit reached. Use limit=8 for more, or refine pattern]"
    )
    whole = await desk.run("grep", pattern="t", limit=5)
    assert words(whole).splitlines() == [
        "a.py:2: what I typed",
        "a.py:3: three",
        "b.py:1: t",
        "b.py:2: t",
        "b.py:3: t",
    ]
