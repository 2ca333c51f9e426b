"""The extension in a real VS Code: stories of its users, told by the programs in `vscode-client/e2e`."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from scripts.vsix.targets import target_of

ROOT: Final = Path(__file__).parents[2]
STORIES: Final = sorted((ROOT / "vscode-client" / "e2e").glob("*.e2e.ts"))
STORY_S: Final = 420
TRIES: Final = 2
_ENVIRONMENT: Final[Mapping[str, str]] = os.environ  # noqa: TID251 - to know whether this is CI
_PREFIX: Final = Path(sys.prefix)
# Nothing that a user does in the panel needs more of the network than the provider, which is on this machine here.
_OFFLINE: Final = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent", "--")
_NODE: Final = _PREFIX / "node" / "bin" / "node"
_CODE: Final = _PREFIX / "workbench/node_modules/code-server/out/node/entry.js"


def _browser() -> Path | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    return None if found is None else Path(found)


def _vsix() -> Path | None:
    target = target_of(platform.system(), platform.machine())
    built = (ROOT / "build").glob(f"tiller-{target.name}-*.vsix")
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


def _offline() -> Sequence[str]:
    """Give what takes the network away from a story; nothing, and a word about it, where that is not allowed."""
    try:
        done = subprocess.run([*_OFFLINE, "true"], capture_output=True, timeout=10, check=False)
        why = done.stderr.decode(errors="replace").strip()
    except OSError as error:
        why = str(error)
    else:
        if done.returncode == 0:
            return _OFFLINE
    print(f"the stories are told with the network on, because bubblewrap does not start: {why}")
    return ()


@pytest.fixture(scope="module")
def world() -> dict[str, str]:
    """Give the environment of a story; skips where something that it needs is missing, except in CI."""
    needed = {
        "Node 24 (make e2e-vscode)": _NODE if _NODE.exists() else None,
        "VS Code 1.139 (make e2e-vscode)": _CODE if _CODE.exists() else None,
        "Chromium": _browser(),
        "the extension (make vsix)": _vsix(),
    }
    missing = [name for name, found in needed.items() if found is None]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        assert _ENVIRONMENT.get("CI") != "true", reason
        pytest.skip(reason)
    return {
        **_ENVIRONMENT,
        "PATH": f"{_NODE.parent}:{_ENVIRONMENT['PATH']}",
        "TILLER_E2E_PYTHON": sys.executable,
        "TILLER_E2E_WORKBENCH": str(_CODE),
        "TILLER_E2E_CHROMIUM": str(_browser()),
        "TILLER_E2E_VSIX": str(_vsix()),
    }


@pytest.mark.e2e
@pytest.mark.timeout(TRIES * STORY_S + 30)
@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.name.removesuffix(".e2e.ts"))
def test_a_story_of_a_user_comes_true(story: Path, world: dict[str, str]) -> None:
    # A window that other work starves of time is given a second chance; what it met first is told.
    told = ""
    for _ in range(TRIES):
        done = subprocess.run(
            [*_offline(), _NODE, "--test", "--test-reporter=spec", story],
            env=world,
            cwd=ROOT / "vscode-client",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STORY_S,
            check=False,
        )
        told = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        print(told)
        if done.returncode == 0:
            return
    pytest.fail(told)
