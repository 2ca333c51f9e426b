"""Installed extension packages: their files first, then the lock file, so that a package is installed whole or not at all. Blocking."""

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.extensions.package_lock import (
    FOLDER,
    LockedPackage,
    hashes_of,
    lock_text,
    package_folder,
    read_lock,
)
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.private_file import locked, make_private_folder, replace_text
from agent_core.resources.paths import EXTENSION_LOCK
from tiller_server.cli.extension_packages.source import FetchedPackage

STAGING: Final = ".staging-"
STAGING_AGE_S: Final = 24 * 3600.0
"""After this time a folder of an installation that was killed is removed."""


def install_package(
    config: Path, fetched: FetchedPackage, *, replaces: str | None
) -> LockedPackage:
    """Copy the files of a package, then enter it in the lock file; return its entry.

    Args:
        config: The configuration folder.
        fetched: The package, which the user trusts.
        replaces: Pin of the installed version that the user agreed to replace; None: none is installed.

    Raises:
        ExtensionBroken: Another version was installed meanwhile, or a file changed while it was copied.
        OSError: There is no room; the installed packages are as before.
    """
    package = fetched.package
    entry = LockedPackage(
        version=package.version,
        source=fetched.source,
        commit=fetched.commit,
        entry=package.entry,
        files=package.files,
    )
    folder = config / FOLDER
    make_private_folder(folder)
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        for path in package.files:
            target = staging / path
            target.parent.mkdir(parents=True, exist_ok=True)
            _ = shutil.copyfile(package.root / path, target, follow_symlinks=False)
        if hashes_of(staging) != package.files:
            message = (
                f"the files of {package.name!r} changed while they were copied; install it again"
            )
            raise ExtensionBroken(message)
        with locked(config / EXTENSION_LOCK):
            packages = read_lock(config)
            before = packages.get(package.name)
            if (before.pin if before else None) != replaces:
                message = f"{package.name!r} was installed or updated by another process meanwhile; look at `tiller ext list`"
                raise ExtensionBroken(message)
            target = package_folder(config, package.name, entry)
            # Files of a killed installation, or of one whose files were changed.
            shutil.rmtree(target, ignore_errors=True)
            _ = staging.rename(target)
            _write(config, {**packages, package.name: entry})
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return entry


def remove_package(config: Path, name: str) -> None:
    """Remove a package from the lock file, then its files.

    Raises:
        ExtensionBroken: It is not installed.
    """
    with locked(config / EXTENSION_LOCK):
        packages = read_lock(config)
        if packages.pop(name, None) is None:
            message = f"no package {name!r} is installed; `tiller ext list` lists them"
            raise ExtensionBroken(message)
        _write(config, packages)


def _write(config: Path, packages: Mapping[str, LockedPackage]) -> None:
    """Replace the lock file and remove folders that it does not name. The lock is held."""
    replace_text(config / EXTENSION_LOCK, lock_text(packages))
    kept = {package_folder(config, name, package) for name, package in packages.items()}
    for path in (config / FOLDER).iterdir() if (config / FOLDER).is_dir() else ():
        with suppress(OSError):
            is_fresh = (
                path.name.startswith(STAGING)
                and SystemClock().now_ms() / 1_000 - path.stat().st_mtime < STAGING_AGE_S
            )
            if path not in kept and not is_fresh:
                shutil.rmtree(path)
