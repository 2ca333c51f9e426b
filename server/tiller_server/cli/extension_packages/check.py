"""Checks an extension package: its code is loaded as by a session, in a process of its own. Blocking."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent_core.kernel.values import Value, threadsafe
from tiller_server.cli.extension_packages.project import ExtensionPackage, PackageFault

START_LIMIT_S: Final = 2.0
PROCESS_LIMIT_S: Final = 30.0
PROBE: Final = "tiller_server.cli.extension_packages.probe"


class ProbeResult(Value, frozen=True, kw_only=True):
    """The faults of a package, and the names that it registered by kind."""

    faults: tuple[PackageFault, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = {}
    start_s: float = 0.0


def probe_package(
    package: ExtensionPackage, env: Mapping[str, str], *, limit_s: float = START_LIMIT_S
) -> ProbeResult:
    """Load a package in a process of its own and return its faults. The code runs with the rights of the user."""
    entry = package.root / package.entry
    with tempfile.TemporaryDirectory(prefix="tiller-ext-") as folder:
        result = Path(folder) / "result.json"
        argv = [
            sys.executable,
            "-I",
            "-B",
            "-m",
            PROBE,
            package.name,
            str(entry),
            str(limit_s),
            str(result),
        ]
        try:
            ran = subprocess.run(  # noqa: S603 - this interpreter, with this module
                argv,
                env=dict(env),
                cwd=package.root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROCESS_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _failed(entry, f"loading did not end within {PROCESS_LIMIT_S:g} s")
        try:
            return msgspec.json.decode(result.read_bytes(), type=threadsafe(ProbeResult))
        except (OSError, msgspec.DecodeError):
            return _failed(entry, f"its code ended the process with exit code {ran.returncode}")


def _failed(entry: Path, message: str) -> ProbeResult:
    return ProbeResult(faults=(PackageFault(message=message, file=str(entry)),))
