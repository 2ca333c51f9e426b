"""The processes of `tiller lark` and `tiller slack` import little, and nothing before it is needed."""

import subprocess
import sys

import pytest

from tests.support.harness.shared import ROOT

MOST_MB = 40
FOREIGN = ("lark_oapi", "pydantic", "pygls", "lsprotocol", "requests", "rich", "slack_bolt")
PROBE = """
import sys
from contextlib import nullcontext
from importlib import import_module

def resident():
    with open('/proc/self/status') as status:
        return int(next(line for line in status if line.startswith('VmRSS')).split()[1]) / 1024

before = resident()
command = import_module('tiller_server.cli.subcommands.' + sys.argv[1])
without_command = getattr(command, 'httpx_without_command', nullcontext)
with without_command():
    channel = import_module('tiller_server.channels.' + sys.argv[1] + '.channel')
from agent_core.kernel.json import encode
encode({})  # loads the fast parser
print(resident() - before, *(name for name in sys.argv[2:] if name in sys.modules))
"""


@pytest.mark.parametrize("platform", ["lark", "slack"])
def test_the_imports_of_a_chat_process_need_less_than_forty_megabytes(
    platform: str, child_env: dict[str, str]
) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux shows the resident memory in /proc")
    printed = subprocess.run(
        [sys.executable, "-c", PROBE, platform, *FOREIGN],
        cwd=ROOT,
        env=child_env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert float(printed[0]) <= MOST_MB, printed
    assert printed[1:] == []
