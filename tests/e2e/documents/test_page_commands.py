"""The shell blocks of a page run as printed; what this machine cannot do is replaced, line by line, with the reason."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.clients.server import Ground, says
from tests.support.clients.shims import end_daemon
from tests.support.harness.shared import ROOT
from tests.support.programs.acp_clients import NODE, npm_client
from tests.support.programs.page_commands import FILES, STANDS, run_script

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

BLOCK: Final = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def stand(ground: Ground) -> Iterator[Ground]:
    """Create the project of the pages, with a model that has one answer, and one where JSON is wanted; end the daemon."""
    for name, text in FILES.items():
        ground.file(name, text)
    described = {**says('{"summary": "It adds prices."}'), "when": "JSON schema", "repeat": -1}
    ground.provider.script([described, {**says("Done."), "repeat": -1}])
    ground.show_images()
    yield ground
    end_daemon(ground.env)


@pytest.mark.parametrize("page", STANDS)
def test_the_commands_of_a_page_run(stand: Ground, page: str) -> None:
    rules = STANDS[page]
    text = "\n".join(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))
    assert text
    for printed, here in rules.instead.items():
        assert printed in text, f"{page} has no {printed!r} any more"
        text = text.replace(printed, here)
    for program in sorted(
        {"curl", "jq", "script"} & set(re.findall(r"[a-z]+", rules.before + text))
    ):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: `make e2e-setup` with CI=true installs it")
    acpx = npm_client("acpx") / "dist" / "cli.js" if "acpx" in text else Path()
    env = {
        **stand.env,
        "ACPX": str(acpx),
        "CI": "true",  # runs take place in the process that is started
        "MCP_SERVER": str(ROOT / "tests/support/mcp/mcp_servers.py"),
        "NODE": str(NODE),
        "PATH": f"{Path(sys.executable).parent}:{stand.env.get('PATH', '')}",
        "PYTHON": sys.executable,
    }
    run_script(f"{rules.before}{text}\n{rules.after}", cwd=stand.root, env=env)
