"""The ports are public: an adapter whose paths do not exist on this machine serves every tool."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_core.kernel import JsonValue
from agent_core.tools.builtin import builtin_tools
from agent_core.workspace import Workspace
from tests.support.workspace.default_tools import ON_FILES
from tests.support.workspace.rooted_workspace import Mount, RootedFiles, rooted_workspace
from tests.tools.conftest import Bench, details, words
from tests.workspace.files.conformance import FilesConformance
from tests.workspace.files.subject import Mounted, Subject

INNER = Path("/box/workspace")


class TestRootedFiles(FilesConformance):
    """Below another root."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        outer = Path(os.path.realpath(tmp_path))
        (outer / "workspace").mkdir()
        files = RootedFiles(Mount(INNER, outer / "workspace"), INNER.parent / "home")
        contents = Mounted(Mount(INNER.parent, outer))
        return Subject(files=files, root=INNER, home=INNER.parent / "home", contents=contents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A call of a tool, and what must come of it."""

    tool: str
    arguments: Mapping[str, JsonValue]
    told: str
    """A part of what the model reads."""
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files afterwards, by name."""
    is_error: bool = False


BEFORE = {"a.txt": "one\ntwo\n", "src/b.py": "import os\n", ".gitignore": "*.log\n", "x.log": "two"}
CASES = [
    Case(tool="read", arguments={"path": "a.txt"}, told="one\ntwo"),
    Case(tool="read", arguments={"path": f"{INNER}/src/b.py"}, told="import os"),
    Case(tool="read", arguments={"path": f"file://{INNER}/a.txt"}, told="one\ntwo"),
    Case(tool="read", arguments={"path": "none.txt"}, told=f"{INNER}/none.txt", is_error=True),
    Case(tool="read", arguments={"path": "/etc/passwd"}, told="outside", is_error=True),
    Case(tool="read", arguments={"path": f"{INNER}/../x"}, told="outside", is_error=True),
    Case(
        tool="write",
        arguments={"path": f"{INNER}/new/c.txt", "content": "three\n"},
        told="c.txt",
        after={"new/c.txt": "three\n"},
    ),
    Case(
        tool="edit",
        arguments={"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]},
        told="a.txt",
        after={"a.txt": "one\n2\n"},
    ),
    Case(
        tool="bash",
        arguments={"command": "cat a.txt && echo done > made.txt"},
        told="one\ntwo",
        after={"made.txt": "done\n"},
    ),
    Case(tool="bash", arguments={"command": "exit 3"}, told="3", is_error=True),
    Case(tool="grep", arguments={"pattern": "two"}, told="a.txt:2: two"),
    Case(tool="grep", arguments={"pattern": "import", "path": f"{INNER}/src"}, told="b.py:1:"),
    Case(tool="grep", arguments={"pattern": "x", "path": "none"}, told="none", is_error=True),
    Case(tool="find", arguments={"pattern": "*.py"}, told="src/b.py"),
    Case(tool="find", arguments={"pattern": "*.py", "path": f"{INNER}/src"}, told="b.py"),
    Case(tool="ls", arguments={}, told="a.txt\nsrc/"),
    Case(tool="ls", arguments={"path": f"{INNER}/src"}, told="b.py"),
    Case(tool="ls", arguments={"path": "/"}, told="outside", is_error=True),
]


@pytest.fixture
def rooted(tmp_path: Path, child_env: dict[str, str]) -> Bench:
    outer = Path(os.path.realpath(tmp_path)) / "elsewhere"
    outer.mkdir()
    workspace: Workspace = rooted_workspace(INNER, outer, env=child_env)
    bench = Bench(
        root=outer, workspace=workspace, tools={tool.spec.name: tool for tool in builtin_tools()}
    )
    for name, text in BEFORE.items():
        _ = bench.put(name, text)
    return bench


def test_every_tool_is_tried() -> None:
    assert {case.tool for case in CASES} == {*ON_FILES}


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda case: " ".join((case.tool, *(str(one) for one in case.arguments.values()))),
)
async def test_a_tool_works_on_paths_that_are_not_of_this_machine(
    rooted: Bench, case: Case
) -> None:
    outcome = await rooted.call(case.tool, dict(case.arguments))
    told = words(outcome)
    assert case.told in told
    assert outcome.result.is_error is case.is_error
    assert str(rooted.root) not in told
    if outcome.result.details is not None:
        assert str(rooted.root) not in repr(details(outcome))
    after = {name: (rooted.root / name).read_text() for name in case.after}
    assert after == case.after


async def test_commands_run_where_the_workspace_lies(rooted: Bench) -> None:
    outcome = await rooted.run("bash", command="pwd -P")
    assert words(outcome).strip() == str(rooted.root)


async def test_ignored_files_are_ignored_there_too(rooted: Bench) -> None:
    assert "x.log" not in words(await rooted.run("grep", pattern="two"))
