"""Questions to the user that only the user can answer, and their answers."""

from collections.abc import Mapping
from typing import Literal

from agent_core.kernel import RunId, SessionId
from agent_core.kernel.values import Value

QuestionKind = Literal["choice", "text", "confirm"]
Answer = bool | str | tuple[str, ...]
"""Yes or no to a `confirm`; words for a `text`; an option's id for a `choice`, or several."""


class QuestionOption(Value, frozen=True, kw_only=True):
    """One thing to choose."""

    id: str
    label: str
    description: str | None = None


class QuestionLine(Value, frozen=True, kw_only=True):
    """One question of a form."""

    id: str
    text: str
    kind: QuestionKind
    options: tuple[QuestionOption, ...] = ()
    """Options of a `choice`."""
    default: Answer | None = None
    """Answer used when the user gives none; None: then there is no answer."""


class Question(Value, frozen=True, kw_only=True):
    """Asks a person what is meant."""

    request: str
    session: SessionId
    run: RunId | None
    """None: nothing runs; the wire then shows an empty run."""
    questions: tuple[QuestionLine, ...]
    blocking: bool
    """Whether the asker waits for the answer."""
    since_ms: int
    expires_ms: int | None
    """When silence becomes the answer."""


class Answers(Value, frozen=True, kw_only=True):
    """Answers to a question, or the reason why there are none."""

    answers: Mapping[str, Answer] | None
    """By the id of the line; None: there are none, and `by` says why."""
    by: str
    """Source of the answer or refusal: a client, `timeout`, `cancelled`, `policy` (the policy forbids questions here),
    `unshown` (no client can show it)."""


class QuestionRequested(Value, frozen=True, kw_only=True):
    """A person is asked what is meant; it stands in the session's file already."""

    run: RunId | None
    request: Question


class QuestionResolved(Value, frozen=True, kw_only=True):
    """A question is answered or withdrawn."""

    run: RunId | None
    request: str
    by: str
    answers: Mapping[str, Answer] | None = None
    """None: there are none."""
