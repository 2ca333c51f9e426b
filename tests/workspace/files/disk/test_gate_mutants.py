"""Whether the tests of the gate to the disk notice that it was changed."""

import pytest

from tests.support.harness.mutation import mutate
from tests.support.harness.sizes import at_size

GATE = ("files/disk/test_gate.py", "files/disk/test_disk_gate.py")
CHANGED = {
    "agent_core/workspace/files/disk/gate/folder_gate.py": GATE,
    "agent_core/workspace/files/disk/gate/openat2.py": GATE,
    "agent_core/workspace/files/disk/gate/walk.py": GATE,
    "agent_core/workspace/files/disk/regular_files.py": (
        "files/disk/test_disk_gate.py",
        "files/disk/test_disk_writes.py",
    ),
    "agent_core/workspace/files/disk/path_handle.py": (*GATE, "files/disk/test_disk_writes.py"),
    "agent_core/workspace/permissions/protected_names.py": ("permissions/test_protected.py",),
    "agent_core/workspace/files/windows_names.py": ("files/test_windows_names.py",),
}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("changed", CHANGED)
def test_changes_of_the_gate_are_noticed(changed: str) -> None:
    tests = [f"tests/workspace/{name}" for name in CHANGED[changed]]
    report = mutate(changed, tests=tests, at_most=at_size(ci=0, campaign=60))
    print(report.told())
    assert report.share_killed >= 0.85, report.told()
