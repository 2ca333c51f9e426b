"""Whether the tests of the redactor notice that it was changed."""

import pytest

from tests.support.harness.mutation import mutate
from tests.support.harness.sizes import at_size

CHANGED = {
    "agent_core/kernel/redaction/redactor.py": (
        "kernel/redaction/test_redaction.py",
        "session/test_redacting.py",
    ),
    "agent_core/kernel/redaction/pattern_search.py": (
        "kernel/redaction/test_secret_kinds.py",
        "kernel/redaction/test_secret_patterns.py",
        "kernel/redaction/test_redaction.py",
    ),
    "agent_core/kernel/redaction/patterns.py": (
        "kernel/redaction/test_secret_shapes.py",
        "kernel/redaction/test_secret_kinds.py",
        "kernel/redaction/test_secret_values.py",
        "kernel/redaction/test_secret_patterns.py",
    ),
    "agent_core/session/redaction.py": ("session/test_redacting.py",),
}
LEFT_OUT = [
    f"--deselect=tests/kernel/redaction/test_redaction.py::{name}"
    for name in (
        "test_known_shapes_are_taken_out_alike_in_any_chunking",
        "test_it_is_fast_enough_for_what_commands_print",
    )
]
"""They take as long as all others together."""


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("changed", CHANGED)
def test_changes_of_the_redactor_are_noticed(changed: str) -> None:
    tests = [f"tests/{name}" for name in CHANGED[changed]]
    report = mutate(changed, tests=[*tests, *LEFT_OUT], at_most=at_size(ci=0, campaign=60))
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
