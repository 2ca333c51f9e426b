"""The tokens of the system prompt and the tools are those of the last run, also where only one of them has changed."""

from types import SimpleNamespace
from typing import Any

from agent_core.compaction import estimate_text
from agent_core.providers import ToolDeclaration
from agent_core.session.history.compaction import Compaction


def declared(name: str, description: str) -> ToolDeclaration:
    return ToolDeclaration(name=name, description=description, parameters={"type": "object"})


def estimated(system: str, *tools: ToolDeclaration) -> int:
    return estimate_text(system) + estimate_text("".join(map(repr, tools)))


def test_each_change_of_the_system_prompt_or_a_tool_is_estimated() -> None:
    unused: Any = SimpleNamespace(publisher=None)
    compaction = Compaction(
        unused, models=unused, options=unused, recorder=unused, usage=unused, hooks=unused
    )
    read, bash = declared("read", "Read a file."), declared("bash", "Run a command.")
    for system, tools in (
        ("short", (read,)),
        ("short", (read,)),
        ("a longer system prompt", (read,)),
        ("a longer system prompt", (read, bash)),
        ("a longer system prompt", (read, declared("bash", "Run a command in a shell."))),
        ("a longer system prompt", ()),
        ("", ()),
    ):
        compaction.set_overhead(system, tools)
        assert compaction.overhead_tokens == estimated(system, *tools)
