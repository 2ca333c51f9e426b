"""The adapter costs little memory, and nothing of it is loaded before it is needed."""

import subprocess
import sys

import pytest

from tests.support.harness.shared import ROOT

MOST_MB = 40
PROBE = """
import sys

import pytest
def resident():
    with open('/proc/self/status') as status:
        return int(next(line for line in status if line.startswith('VmRSS')).split()[1]) / 1024
before = resident()
import tiller_server.channels.lark.channel
print(resident() - before, *(name for name in ('lark_oapi', 'pygls', 'lsprotocol', 'requests') if name in sys.modules))
"""


def test_the_adapter_needs_less_than_forty_megabytes(child_env: dict[str, str]) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux shows the resident memory in /proc")
    printed = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=ROOT, env=child_env, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert float(printed[0]) <= MOST_MB, printed
    assert printed[1:] == []
