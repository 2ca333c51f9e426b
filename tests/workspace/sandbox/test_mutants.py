"""Whether the tests of containment notice that what builds it was changed."""

import pytest

from tests.support.mutation import mutate
from tests.support.sizes import at_size, is_campaign

FILES = {
    "bubblewrap": ("bubblewrap",),
    "control_group": ("control_group",),
    "denials": ("denials",),
    "environment": ("environment",),
    "git_folders": ("git_folders",),
    "git_programs": ("git_programs",),
    "guarded_names": ("guarded_names",),
    "holds": ("holds",),
    "home_view": ("home_view",),
    "keeper": ("keeper",),
    "landlock": ("landlock",),
    "landlock_launcher": ("landlock",),
    "profile": ("profile",),
    "quarantine": ("quarantine",),
    "sandbox": ("choice",),
    "seccomp": ("seccomp",),
    "secret_places": ("places",),
    "survey": ("survey",),
    "toolchains": ("environment", "home_view"),
    "tracked_secrets": ("tracked_secrets",),
    "tree_index": ("tree_index",),
    "uncontained": ("choice",),
}
"""The quick tests that own a file; what they find, a command in real containment would find too, in seconds each."""


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not is_campaign(), reason="runs the tests hundreds of times: make campaign")
@pytest.mark.parametrize("name", FILES)
def test_changes_of_containment_are_noticed(name: str) -> None:
    report = mutate(
        f"agent_core/workspace/sandbox/{name}.py",
        tests=[f"tests/workspace/sandbox/test_{one}.py" for one in FILES[name]],
        at_most=at_size(ci=0, campaign=60),
    )
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
