"""Agents that tasks can be given to: built in, or Markdown files with front matter."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from agent_core.kernel.text import for_model, one_line
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadProblem
from agent_core.resources.skills import MOST_NAME, NAME, Frontmatter, split_frontmatter

MOST_DESCRIPTION: Final = 300
MOST_INSTRUCTIONS: Final = 64_000
INHERIT: Final = frozenset({"", "inherit", "default"})
TOOL_NAMES: Final[Mapping[str, str]] = {
    "glob": "find",
    "multiedit": "edit",
    "webfetch": "fetch",
    "websearch": "web_search",
    "todowrite": "todo",
    "list": "ls",
}
"""Names that other agents have for tools, in lower case."""
NOT_FOR_TASKS: Final = frozenset(
    {"task", "task_result", "task_list", "task_stop", "plan", "ask", "background"}
)
"""Tools that a task does not get: they are those of the conversation with the user."""
READING: Final = ("read", "grep", "find", "ls", "bash", "fetch", "web_search")


class AgentDefinition(Value, frozen=True, kw_only=True):
    """One kind of agent."""

    name: str
    description: str
    """When to use it; part of the description of the tool `task`."""
    instructions: str = ""
    """Part of its system prompt."""
    tools: tuple[str, ...] | None = None
    """Its tools; None: those of the session that gives the task."""
    model: str | None = None
    mode: Literal["plan"] | None = None
    """`plan`: it only reads."""
    path: Path | None = None
    """Its file; None: it is built in, or external."""
    is_external: bool = False
    """Whether it is a program that the settings name."""


class ReadAgent(Value, frozen=True, kw_only=True):
    """Result of reading a file; without an agent, `problems` has the reason."""

    agent: AgentDefinition | None
    problems: tuple[LoadProblem, ...] = ()


BUILT_IN: Final[Sequence[AgentDefinition]] = (
    AgentDefinition(
        name="general",
        description="works on any task with the tools that you have",
    ),
    AgentDefinition(
        name="explore",
        description="finds and explains code, changes nothing; fast and cheap for broad searches",
        instructions=(
            "You explore: find what is asked for and report it with paths and line numbers. Search broadly first, then read "
            "only what matters. Nothing may be changed."
        ),
        tools=READING,
        mode="plan",
    ),
    AgentDefinition(
        name="review",
        description="reviews code or a diff critically, changes nothing",
        instructions=(
            "You review: look for defects that a user or a maintainer would meet. Report each with path, line, why it is wrong "
            "and how it fails, the worst first; leave out matters of taste. Say so when there is none. Nothing may be changed."
        ),
        tools=READING,
        mode="plan",
    ),
)


def read_agent(text: str, path: Path) -> ReadAgent:
    """Read the file of an agent."""
    matter = split_frontmatter(text)
    if matter.problem:
        return _none(path, f"{matter.problem}; the agent is left out", matter.problem_line)
    name = one_line(matter.text("name")) or path.stem
    description = " ".join(matter.text("description").split())
    if not NAME.fullmatch(name) or len(name) > MOST_NAME:
        why = f"its name {name[:MOST_NAME]!r} must be of a-z, 0-9 and single hyphens, at most {MOST_NAME} characters"
        return _none(path, f"{why}; the agent is left out", 1)
    if not description:
        return _none(path, "it has no description; the agent is left out", 1)
    body = for_model(matter.body.strip())
    return ReadAgent(
        agent=AgentDefinition(
            name=name,
            description=for_model(description)[:MOST_DESCRIPTION],
            instructions=body[:MOST_INSTRUCTIONS],
            tools=_tools(matter),
            model=None if matter.text("model") in INHERIT else one_line(matter.text("model")),
            mode="plan" if "plan" in {matter.text("mode"), matter.text("permissionMode")} else None,
            path=path,
        )
    )


def _tools(matter: Frontmatter) -> tuple[str, ...] | None:
    """Return the tools that a file names, by our names; None: it names none, or all."""
    named = matter.string_list("tools")
    if not named or "*" in named:
        return None
    ours = (TOOL_NAMES.get(one.lower(), one.lower()) for one in named)
    return tuple(dict.fromkeys(ours))


def _none(path: Path, message: str, line: int | None) -> ReadAgent:
    problem = LoadProblem(message=message, path=path, line=line, level="error")
    return ReadAgent(agent=None, problems=(problem,))
