"""The words in which ready-made requests are put to the agent: fix, implement, explain, review; pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.kernel.text import one_line
from agent_core.kernel.values import Value
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.plain.comment_requests import CommentRequest

MOST_PROBLEMS: Final = 50
MESSAGE_CHARS: Final = 1_000


class TaskLocation(Value, frozen=True, kw_only=True):
    """Where somebody is in a file."""

    uri: str
    name: str
    """As the user knows the file: relative to the workspace where it is in it."""
    lines0: tuple[int, int] | None = None
    """The first and the last line that are meant; None: the whole file."""

    @property
    def description(self) -> str:
        """Return where it is."""
        if self.lines0 is None:
            return f"`{self.name}`"
        first, last = self.lines0[0] + 1, self.lines0[1] + 1
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        return f"{where} of `{self.name}`"


class TaskDiagnostic(Value, frozen=True, kw_only=True):
    """A problem that an editor shows."""

    line0: int
    message: str
    source: str = ""


def fix(place: TaskLocation, problems: Sequence[TaskDiagnostic]) -> str:
    """Ask for problems to be fixed; without any, for those that can be found."""
    if not problems:
        return (
            f"Fix the problems in {place.description}: find out what its compiler, linter, type checker or tests "
            "say of it, and mend the cause."
        )
    rows = [_row(one) for one in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        rows.append(f"- and {len(problems) - MOST_PROBLEMS} more")
    what = "this problem" if len(problems) == 1 else "these problems"
    return (
        f"Fix {what} in `{place.name}`. Mend the cause, do not silence the report.\n"
        + "\n".join(rows)
    )


def implement(place: TaskLocation) -> str:
    """Ask for what is begun to be finished."""
    return (
        f"Implement {place.description}: write what is only named, stubbed or marked as still to be done there, "
        "in the way of the code around it. Leave the rest as it is."
    )


def explain(place: TaskLocation) -> str:
    """Ask for an explanation."""
    return (
        f"Explain {place.description}: what it is for, how it works, and what is surprising about it. "
        "Change nothing."
    )


def review(place: TaskLocation) -> str:
    """Ask for a review."""
    return (
        f"Review {place.description}. Name bugs, risks and what is hard to understand, each with its line, the worst "
        "first; say how each could be mended. Change nothing."
    )


def asked_for(place: TaskLocation, requests: Sequence[CommentRequest]) -> str:
    """Ask for what comments ask for."""
    if len(requests) == 1:
        (one,) = requests
        return (
            f"A comment in line {one.first_line0 + 1} of `{place.name}` asks you: {one_line(one.text)}\n"
            "Do that, and take the comment out when it is done."
        )
    rows = "\n".join(f"- line {one.first_line0 + 1}: {one_line(one.text)}" for one in requests)
    return (
        f"Comments in `{place.name}` ask you:\n{rows}\n"
        "Do that, and take each comment out when it is done."
    )


def problem_of(diagnostic: Mapping[str, object]) -> TaskDiagnostic | None:
    """Read a diagnostic as an editor sends it; None: it is none."""
    message = diagnostic.get("message")
    text = message if isinstance(message, str) else (as_object(message) or {}).get("value")
    start = as_object((as_object(diagnostic.get("range")) or {}).get("start")) or {}
    line0 = start.get("line")
    if not isinstance(text, str) or not text or not isinstance(line0, int):
        return None
    named = (diagnostic.get(name) for name in ("source", "code"))
    source = " ".join(str(one) for one in named if isinstance(one, str | int) and one != "")
    return TaskDiagnostic(line0=line0, message=text[:MESSAGE_CHARS], source=source[:MESSAGE_CHARS])


def _row(problem: TaskDiagnostic) -> str:
    source = f" ({one_line(problem.source)})" if problem.source else ""
    return f"- line {problem.line0 + 1}: {one_line(problem.message)}{source}"
