"""The pure parts of a bridge: the meaning of events, and the line about the end of a run."""

import pytest

from agent_core.channels.messaging.port import Outcome
from tiller_server.channels.bridge.run_reader import (
    ReaderState,
    ShownRun,
    line_of,
    live_text,
    outcome_of,
)


@pytest.mark.parametrize(
    ("status", "kind", "has_text", "outcome", "line"),
    [
        ("completed", None, True, "completed", ""),
        ("completed", None, False, "completed", "Done; there is no text to show."),
        ("cancelled", None, True, "aborted", "Stopped."),
        ("failed", "RateLimited", False, "failed", "the model's provider asks for a long pause"),
        ("failed", "Internal", False, "failed", "an error occurred"),
        ("interrupted", None, True, "failed", "The agent was restarted during this answer."),
        ("budget", None, True, "failed", "the budget of this run is used up"),
        ("refused", None, False, "failed", "too many requests were denied"),
    ],
)
def test_each_end_of_a_run_has_an_outcome_and_where_it_is_needed_a_line(
    status: str, kind: str | None, outcome: Outcome, line: str, *, has_text: bool
) -> None:
    assert outcome_of(status) == outcome
    given = line_of(status, kind, has_text=has_text)
    assert line in given
    assert bool(given) is bool(line)


def test_a_running_answer_has_the_text_so_far_and_one_line_for_the_tool() -> None:
    state = ReaderState(run=ShownRun(run="r", is_shown=True, parts=("first",)))
    assert live_text(state, "second", "") == "first\n\nsecond"
    assert live_text(state, "", "Run\nnpm  test") == "first\n\n_Run npm test …_"
    assert len(live_text(ReaderState(), "", "x" * 500)) < 120
