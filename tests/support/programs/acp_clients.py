"""Real clients of the Agent Client Protocol, as npm has them, and where their packages are."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(sys.prefix) / "acp" / "node_modules"
NODE: Final = Path(sys.prefix) / "node" / "bin" / "node"
VERSIONS: Final[Mapping[str, str]] = {
    "@agentclientprotocol/sdk": "2.4.0",
    "acpx": "0.19.1",
    "pi-acp": "0.0.34",
}
_ENVIRONMENT: Mapping[str, str] = os.environ  # noqa: TID251 - to know whether this is CI


def npm_client(name: str) -> Path:
    """Return the folder of a package; skips the test without it, fails where it has to be installed.

    Raises:
        AssertionError: It is missing in CI, or of another version.
    """
    package = FOLDER / name
    if not NODE.is_file() or not (package / "package.json").is_file():
        reason = f"{name} is not installed: `make acp-setup` installs it"
        assert _ENVIRONMENT.get("CI") != "true", reason
        pytest.skip(reason)
    found = json.loads((package / "package.json").read_text("utf-8"))["version"]
    assert found == VERSIONS[name], f"{name} is {found}, not {VERSIONS[name]}"
    return package
