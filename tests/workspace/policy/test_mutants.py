"""Whether the tests of the policy notice that it was changed."""

import pytest

from tests.support.mutation import mutate
from tests.support.sizes import at_size, is_campaign

# The properties are left out: they are slow, and what they find the tables must find too.
QUICK = [
    f"tests/workspace/policy/test_{name}.py"
    for name in ("matrix", "commands", "paths_and_hosts", "offers", "file", "keeping", "git_facts", "git_look", "explain")
]  # fmt: skip


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not is_campaign(), reason="runs the tests hundreds of times: make campaign")
def test_changes_of_the_policy_are_noticed() -> None:
    tests = [*QUICK, "tests/workspace/policy/test_rules_in_force.py"]
    report = mutate("agent_core/workspace/policy", tests=tests, at_most=at_size(ci=0, campaign=200))
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
