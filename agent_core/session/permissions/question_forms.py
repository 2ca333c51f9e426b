"""Validation of question forms and of their answers: pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.events import Answer, QuestionLine
from agent_core.kernel.errors import UsageError

MOST_LINES: Final = 20
MOST_OPTIONS: Final = 100
MOST_CHARS: Final = 20_000
"""Of a text, and of an answer in words."""


def check_form(lines: Sequence[QuestionLine]) -> tuple[QuestionLine, ...]:
    """Check that a form can be asked, and return its questions.

    Raises:
        UsageError: The form cannot be answered, or is too large to be read; the message says why.
    """
    if not 1 <= len(lines) <= MOST_LINES:
        message = f"a question has 1 to {MOST_LINES} lines, this one has {len(lines)}"
        raise UsageError(message)
    ids = [line.id for line in lines]
    if len(set(ids)) < len(ids):
        message = f"two lines of the question have the same id: {', '.join(ids)}"
        raise UsageError(message)
    for line in lines:
        _check_line(line)
    return tuple(lines)


def fitting(lines: Sequence[QuestionLine], given: Mapping[str, object]) -> dict[str, Answer]:
    """Return the answers of a form; a line that is left out takes its default.

    Raises:
        UsageError: They do not fit; the text names the line.
    """
    strangers = given.keys() - {line.id for line in lines}
    if strangers:
        message = f"the question has no line {min(strangers)!r}; there are {', '.join(line.id for line in lines)}"
        raise UsageError(message)
    found: dict[str, Answer] = {}
    for line in lines:
        answer = given.get(line.id, line.default)
        if answer is None:
            message = f"line {line.id!r} of the question has no answer and no default"
            raise UsageError(message)
        found[line.id] = _fitting(line, answer)
    return found


def defaults(lines: Sequence[QuestionLine]) -> dict[str, Answer] | None:
    """Return what counts when nobody says anything; None when a line has no default."""
    found = {line.id: line.default for line in lines if line.default is not None}
    return found if len(found) == len(lines) else None


def _check_line(line: QuestionLine) -> None:
    if not line.id or not line.text.strip():
        message = f"line {line.id!r} of the question has no id or says nothing"
        raise UsageError(message)
    if len(line.text) > MOST_CHARS:
        message = f"line {line.id!r} of the question has {len(line.text)} characters, {MOST_CHARS} is the most"
        raise UsageError(message)
    ids = [one.id for one in line.options]
    fits = 1 <= len(ids) <= MOST_OPTIONS and len(set(ids)) == len(ids) and all(ids)
    if line.kind == "choice" and not fits:
        message = f"line {line.id!r} of the question needs 1 to {MOST_OPTIONS} options with ids of their own"
        raise UsageError(message)
    if line.kind != "choice" and ids:
        message = f"line {line.id!r} of the question is a {line.kind}, which has no options"
        raise UsageError(message)
    if line.default is not None:
        _ = _fitting(line, line.default)


def _fitting(line: QuestionLine, answer: object) -> Answer:
    match line.kind, answer:
        case "confirm", bool():
            return answer
        case "text", str() if len(answer) <= MOST_CHARS:
            return answer
        case "choice", str() if _is_option(line, answer):
            return answer
        case "choice", list() | tuple() if answer and all(_is_option(line, one) for one in answer):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - foreign JSON
            return tuple(str(one) for one in answer)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - foreign JSON
        case _:
            message = (
                f"line {line.id!r} of the question takes {_wanted(line)}, not {_shown(answer)}"
            )
            raise UsageError(message)


def _is_option(line: QuestionLine, answer: object) -> bool:
    return any(one.id == answer for one in line.options)


def _wanted(line: QuestionLine) -> str:
    match line.kind:
        case "confirm":
            return "true or false"
        case "text":
            return f"a text of at most {MOST_CHARS} characters"
        case "choice":
            return f"one or more of {', '.join(one.id for one in line.options)}"


def _shown(answer: object) -> str:
    return f"{repr(answer)[:80]}"
