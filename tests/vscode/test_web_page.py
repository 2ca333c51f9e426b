"""The page of `tiller web` in a real browser, before the real server: the programs `vscode-client/e2e/*.web.ts`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
CLIENT: Final = ROOT / "vscode-client"
PAGE: Final = ROOT / "server" / "tiller_server" / "web" / "page" / "index.html"
PROGRAMS: Final = sorted((CLIENT / "e2e").glob("*.web.ts"))
STORY_S: Final = 240
_ENVIRONMENT: Final[Mapping[str, str]] = os.environ  # noqa: TID251 - to know whether this is CI
_NODE: Final = Path(sys.prefix) / "node" / "bin" / "node"
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def world() -> dict[str, str]:
    """Return the environment of the program; skips where something that it needs is missing, except in CI."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    needed = {
        "Node 24 (make web-page)": _NODE.exists(),
        "the page (make web-page)": PAGE.exists(),
        "Playwright (make web-page)": (CLIENT / "node_modules" / "playwright-core").exists(),
        "Chromium": browser is not None,
    }
    missing = [name for name, is_there in needed.items() if not is_there]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        assert _ENVIRONMENT.get("CI") != "true", reason
        pytest.skip(reason)
    return {
        **_ENVIRONMENT,
        "TILLER_E2E_PYTHON": sys.executable,
        "TILLER_E2E_CHROMIUM": str(browser),
    }


@pytest.mark.e2e
@pytest.mark.timeout(STORY_S + 30)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name.removesuffix(".web.ts"))
def test_the_page_is_used_in_a_browser(program: Path, world: dict[str, str]) -> None:
    done = subprocess.run(
        [_NODE, "--test", "--test-reporter=spec", program],
        env=world,
        cwd=CLIENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=STORY_S,
        check=False,
    )
    told = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    print(told)
    assert done.returncode == 0, told
