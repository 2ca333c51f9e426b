"""What grep, find and ls say of themselves, whatever their arguments."""

import pytest

from agent_core.kernel import JsonObject
from agent_core.resources.instructions import ToolPrompt
from agent_core.tools.builtin import builtin_tools
from tests.support.session.prompts import build_system_prompt

TOOLS = {tool.spec.name: tool for tool in builtin_tools()}
SEARCHES = ("grep", "find", "ls")


def test_they_are_in_their_order() -> None:
    files = ("read", "write", "edit", "bash", "grep", "find", "ls")
    tasks = ("task", "task_result", "task_list", "task_stop")
    others = ("todo", "ask", "background", "fetch", "web_search", "plan", *tasks)
    assert tuple(TOOLS) == (*files, *others)


@pytest.mark.parametrize("name", SEARCHES)
def test_they_only_read_and_may_run_side_by_side(name: str) -> None:
    spec = TOOLS[name].spec
    assert (spec.kind, spec.parallel_safe) == ("read", True)


@pytest.mark.parametrize(
    ("name", "arguments", "title"),
    [
        ("grep", {"pattern": "x", "path": "src"}, "grep /x/ in src"),
        ("grep", {"pattern": "x", "glob": "*.py"}, "grep /x/ in . (*.py)"),
        ("grep", {"query": "a\nb", "file_path": "src"}, "grep /a b/ in src"),
        ("grep", {"pattern": "x" * 90}, f"grep /{'x' * 80}…/ in ."),
        ("grep", {"pattern": 3, "path": []}, "grep /?/ in ."),
        ("find", {"pattern": "*.py", "path": "src"}, "find *.py in src"),
        ("find", {}, "find ? in ."),
        ("ls", {"path": "src"}, "ls src"),
        ("ls", {"path": None}, "ls ."),
    ],
)
def test_titles_say_what_is_looked_for(name: str, arguments: JsonObject, title: str) -> None:
    assert TOOLS[name].title(arguments) == title


def test_the_prompt_gives_their_rule_once(tmp_path) -> None:
    words = [
        ToolPrompt(name=name, snippet=tool.spec.snippet, guidelines=tool.spec.guidelines)
        for name, tool in TOOLS.items()
    ]
    prompt = build_system_prompt(root=tmp_path, tools=words)
    assert prompt.count("Prefer grep, find and ls to bash for looking around") == 1
    assert all(f"- {name}: " in prompt for name in SEARCHES)
