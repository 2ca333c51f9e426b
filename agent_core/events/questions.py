"""What a person is asked because nobody else can know it, and what they can answer."""

from collections.abc import Mapping
from typing import Literal

from agent_core.kernel import RunId, SessionId
from agent_core.kernel.records import dataclass

QuestionKind = Literal["choice", "text", "confirm"]
Answer = bool | str | tuple[str, ...]
"""Yes or no to a `confirm`; words for a `text`; an option's id for a `choice`, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOption:
    """One thing to choose."""

    id: str
    label: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLine:
    """One question of a form."""

    id: str
    text: str
    kind: QuestionKind
    options: tuple[QuestionOption, ...] = ()
    """For a `choice`: what there is to choose from."""
    default: Answer | None = None
    """What counts when nobody says anything else; None: then nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a question came to."""

    answers: Mapping[str, Answer] | None
    """By the id of the line; None: there are none, and `by` says why."""
    by: str
    """Who answered or declined: a client, `timeout`, `cancelled`, `policy` (nobody is to be asked here), `unshown`
    (no client can show it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRequested:
    """A person is asked what is meant; it stands in the session's file already."""

    run: RunId | None
    request: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionResolved:
    """A question is answered or withdrawn."""

    run: RunId | None
    request: str
    by: str
    answers: Mapping[str, Answer] | None = None
    """None: there are none."""
