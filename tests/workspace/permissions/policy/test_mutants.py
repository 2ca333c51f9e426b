"""Whether the tests of the policy notice that it was changed."""

import pytest

from tests.support.harness.mutation import mutate
from tests.support.harness.sizes import at_size

# The properties are left out: they are slow, and what they find the tables must find too.
QUICK = [
    f"tests/workspace/permissions/policy/{name}"
    for name in (
        "test_matrix.py",
        "commands/test_commands.py",
        "rules/test_paths_and_hosts.py",
        "rules/test_offers.py",
        "rules/test_file.py",
        "rules/test_keeping.py",
        "commands/test_git_facts.py",
        "commands/test_git_look.py",
        "test_explain.py",
    )
]


@pytest.mark.timeout(7200)
def test_changes_of_the_policy_are_noticed() -> None:
    tests = [*QUICK, "tests/workspace/permissions/policy/rules/test_rules_in_force.py"]
    report = mutate(
        "agent_core/workspace/permissions/policy", tests=tests, at_most=at_size(ci=0, campaign=200)
    )
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
