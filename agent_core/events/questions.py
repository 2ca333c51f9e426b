"""What a person is asked because nobody else can know it, and what they can answer."""

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
    """For a `choice`: what there is to choose from."""
    default: Answer | None = None
    """What counts when nobody says anything else; None: then nothing is known."""


class Question(Value, frozen=True, kw_only=True):
    """Asks a person what is meant."""

    request: str
    session: SessionId
    run: RunId | None
    """None: nothing runs; the wire then shows an empty run."""
    questions: tuple[QuestionLine, ...]
    blocking: bool
    """Whoever asks goes no further without an answer."""
    since_ms: int
    expires_ms: int | None
    """When silence becomes the answer."""


class Answers(Value, frozen=True, kw_only=True):
    """What a question came to."""

    answers: Mapping[str, Answer] | None
    """By the id of the line; None: there are none, and `by` says why."""
    by: str
    """Who answered or declined: a client, `timeout`, `cancelled`, `policy` (nobody is to be asked here), `unshown`
    (no client can show it)."""


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
