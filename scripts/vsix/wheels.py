"""Collects Tiller and all that it needs as wheels, so that an editor can install them without a network."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.vsix.targets import PYTHONS, Target

ROOT: Final = Path(__file__).parents[2]
CONSTRAINTS: Final = ROOT / "constraints.txt"
MANIFEST: Final = "install.json"
_KEY: Final = "key"
# A Python of a Linux distribution often comes without pip; its wheel runs as it lies there.
PIP: Final = "pip==26.3"


def collect(target: Target, *, kept: Path, into: Path) -> None:
    """Fill `into` with the wheels for all Pythons of a target, and a manifest that says how to install them.

    Args:
        target: The platform.
        kept: Where downloaded wheels stay for the next time.
        into: An empty folder.
    """
    own = own_wheel(into)
    _dependencies(target, own, kept=kept)
    for wheel in sorted(kept.glob("*.whl")):
        shutil.copy2(wheel, into)
    _, version, *_ = own.name.split("-")
    (pip,) = (wheel.name for wheel in into.glob("pip-*.whl"))
    manifest = {
        "requirement": f"tillerd[{','.join(target.extras)}]=={version}",
        # The extension installs again what differs: pre-releases have the same version of Tiller.
        "version": f"{version}-{hashlib.sha256(own.read_bytes()).hexdigest()[:12]}",
        "pip": pip,
        "pythons": list(PYTHONS),
    }
    (into / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def own_wheel(into: Path) -> Path:
    """Build the wheel of Tiller in a folder that has none."""
    pinned = {"PIP_CONSTRAINT": str(CONSTRAINTS), "PIP_BUILD_CONSTRAINT": str(CONSTRAINTS)}
    _pip("wheel", "--no-deps", "--wheel-dir", str(into), str(ROOT), variables=pinned)
    (wheel,) = into.glob("tillerd-*.whl")
    return wheel


def _dependencies(target: Target, own: Path, *, kept: Path) -> None:
    """Download what the wheel of Tiller names, unless that was done for the same names and versions."""
    wanted = repr((target, PYTHONS, PIP)).encode()
    pinned = CONSTRAINTS.read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    key = hashlib.sha256(wanted + pinned).hexdigest()
    stamp = kept / _KEY
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == key:
        return
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    requirement = f"{own}[{','.join(target.extras)}]"
    for python in PYTHONS:
        _download([requirement, PIP, *target.arguments(python)], kept)
    (kept / own.name).unlink()
    stamp.write_text(key, encoding="utf-8")


def _download(what: Sequence[str], into: Path) -> None:
    options = ("--only-binary=:all:", "-c", str(CONSTRAINTS), "--dest", str(into))
    _pip("download", *options, *what)


def _pip(*arguments: str, variables: dict[str, str] | None = None) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", arguments[0], *quiet, *arguments[1:]]
    environment = {**os.environ, **(variables or {})}  # noqa: TID251 - pip's own settings are there
    subprocess.run(command, check=True, env=environment)  # noqa: S603 - this very Python, and words of ours
