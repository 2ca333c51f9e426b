"""Suggestions of the menu below the input line: commands behind `/`, their arguments, and files behind `@`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.session import AgentSession
from tiller_server.cli.chat.file_index import FileIndex
from tiller_server.cli.chat.line_input import paths_after
from tiller_server.cli.chat.slash_commands import COMMANDS
from tiller_server.cli.terminal.text import one_line

MOST_SUGGESTIONS: Final = 40


class InputSuggestion(Value, frozen=True):
    """A line that could follow from the one that is typed."""

    line: str
    label: str
    """How the menu names it."""
    about: str = ""


def suggestions(line: str, *, session: AgentSession, files: FileIndex) -> list[InputSuggestion]:
    """Return what a line could become. Blocking: files are looked for."""
    if line.startswith("/") and "\n" not in line:
        return _of_command(line, session=session)
    return file_suggestions(line, root=Path(session.info.root), files=files)


def file_suggestions(line: str, *, root: Path, files: FileIndex) -> list[InputSuggestion]:
    """Return what a line could become when it ends with the beginning of a file's name behind `@`."""
    head, mark, typed = line.rpartition("@")
    if not mark or any(one.isspace() for one in typed) or (head and not head[-1].isspace()):
        return []
    found = files.find(typed, limit=MOST_SUGGESTIONS)
    if not found:  # it may lie outside of the workspace, or be ignored
        return _paths(f"{head}@", typed, root=root)
    return [InputSuggestion(f"{head}@{path}", path) for path in found]


def _of_command(line: str, *, session: AgentSession) -> list[InputSuggestion]:
    name, blank, typed = line[1:].partition(" ")
    if not blank:
        rows = {one: (command.hint, command.about) for one, command in COMMANDS.items()}
        rows |= {one.name: ("", one.description) for one in session.resources.commands()}
        return command_suggestions(name, rows)
    if name == "model":
        refs = (one.ref for one in session.models.available())
        near_refs = [ref for ref in refs if typed.lower() in ref.lower()]
        return [InputSuggestion(f"/model {ref}", ref) for ref in near_refs[:MOST_SUGGESTIONS]]
    command = COMMANDS.get(name)
    if command is None:
        return []
    if command.takes_file:
        return _paths(f"/{name} ", typed, root=Path(session.info.root))
    return [
        InputSuggestion(f"/{name} {one}", one) for one in command.values if one.startswith(typed)
    ]


def command_suggestions(typed: str, rows: Mapping[str, tuple[str, str]]) -> list[InputSuggestion]:
    """Return the commands that fit what is typed behind `/`, the best first.

    Args:
        typed: The beginning of a name, or some of its characters.
        rows: Hint for the arguments and description of each command.
    """
    ranks = {one: rank for one in rows if (rank := _command_rank(typed, one)) is not None}
    return [
        InputSuggestion(f"/{one} ", f"/{one} {rows[one][0]}".rstrip(), one_line(rows[one][1]))
        for one in sorted(ranks, key=lambda one: ranks[one])
    ]


def _command_rank(typed: str, name: str) -> int | None:
    """Return how well a command fits, 0 is best; None: it does not hold the characters in their order."""
    if name.startswith(typed):
        return 0
    if typed in name:
        return 1
    chars = iter(name)
    return 2 if all(char in chars for char in typed) else None


def _paths(head: str, typed: str, *, root: Path) -> list[InputSuggestion]:
    return [
        InputSuggestion(line, line[len(head) :]) for line in paths_after(head, typed, root=root)
    ]
