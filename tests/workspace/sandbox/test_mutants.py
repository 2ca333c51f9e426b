"""Whether the tests of containment notice that what builds it was changed."""

import pytest

from tests.support.harness.mutation import mutate
from tests.support.harness.sizes import at_size

CHANGED = {
    "agent_core/workspace/sandbox/backends/bubblewrap.py": (
        "backends/test_bubblewrap.py",
        "backends/test_profile.py",
    ),
    "agent_core/workspace/sandbox/backends/keeper.py": (
        "backends/test_control_group.py",
        "backends/test_keeper.py",
    ),
    "agent_core/workspace/sandbox/backends/landlock.py": ("backends/test_landlock.py",),
    "agent_core/workspace/sandbox/backends/landlock_launcher.py": ("backends/test_landlock.py",),
    "agent_core/workspace/sandbox/backends/seccomp.py": ("backends/test_seccomp.py",),
    "agent_core/workspace/sandbox/backends/uncontained.py": ("test_choice.py",),
    "agent_core/workspace/sandbox/denial_messages.py": ("test_denials.py",),
    "agent_core/workspace/sandbox/environment.py": (
        "test_environment.py",
        "test_home_view.py",
    ),
    "agent_core/workspace/sandbox/guards/git.py": (
        "guards/test_git_folders.py",
        "guards/test_git_programs.py",
    ),
    "agent_core/workspace/sandbox/guards/tree_index.py": (
        "guards/test_guarded_names.py",
        "guards/test_tree_index.py",
    ),
    "agent_core/workspace/sandbox/guards/mount_plan.py": ("guards/test_holds.py",),
    "agent_core/workspace/sandbox/guards/secret_places.py": (
        "guards/test_places.py",
        "guards/test_tracked_secrets.py",
    ),
    "agent_core/workspace/sandbox/home_view.py": ("test_home_view.py",),
    "agent_core/workspace/sandbox/quarantine.py": ("test_quarantine.py",),
    "agent_core/workspace/sandbox/selection.py": ("test_choice.py",),
    "agent_core/workspace/sandbox/survey.py": ("test_survey.py",),
}
"""The quick tests that own a file; what they find, a command in real containment would find too, in seconds each."""


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("changed", CHANGED)
def test_changes_of_containment_are_noticed(changed: str) -> None:
    report = mutate(
        changed,
        tests=[f"tests/workspace/sandbox/{name}" for name in CHANGED[changed]],
        at_most=at_size(ci=0, campaign=60),
    )
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
