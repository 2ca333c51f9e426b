"""Whether the tests of the gate to the disk notice that it was changed."""

import pytest

from tests.support.mutation import mutate
from tests.support.sizes import at_size, is_campaign

GATE = ("gate", "disk_gate")
CHANGED = {
    "agent_core/workspace/files/disk/gate/folder_gate.py": GATE,
    "agent_core/workspace/files/disk/gate/openat2.py": GATE,
    "agent_core/workspace/files/disk/gate/walk.py": GATE,
    "agent_core/workspace/files/disk/regular_files.py": ("disk_gate", "disk_writes"),
    "agent_core/workspace/files/disk/path_handle.py": (*GATE, "disk_writes"),
    "agent_core/workspace/permissions/protected_names.py": ("protected",),
    "agent_core/workspace/files/windows_names.py": ("windows_names",),
}


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not is_campaign(), reason="runs the tests hundreds of times: make campaign")
@pytest.mark.parametrize("changed", CHANGED)
def test_changes_of_the_gate_are_noticed(changed: str) -> None:
    tests = [f"tests/workspace/test_{name}.py" for name in CHANGED[changed]]
    report = mutate(changed, tests=tests, at_most=at_size(ci=0, campaign=60))
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
