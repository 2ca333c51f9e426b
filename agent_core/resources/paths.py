"""Locations of Tiller's own files."""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value

APP = "tiller"
MAX_SOCKET_PATH_BYTES = 100
"""Linux takes 107 bytes, macOS and the BSDs 103."""
LONGEST_NAME = "daemon.sock"
EXTENSION_LOCK = "extensions.lock.json"
"""The lock file of installed extension packages, in the configuration folder."""


class AppPaths(Value, frozen=True, kw_only=True):
    """The folders of one user. None of them need exist."""

    config: Path
    data: Path
    runtime: Path

    @property
    def settings(self) -> Path:
        """The user's settings."""
        return self.config / "settings.json"

    @property
    def models(self) -> Path:
        """The user's own providers and models."""
        return self.config / "models.json"

    @property
    def auth(self) -> Path:
        """The user's keys; for their eyes only."""
        return self.config / "auth.json"

    @property
    def trust(self) -> Path:
        """Which workspaces the user trusts, and what they saw then."""
        return self.data / "trust.json"

    @property
    def sessions(self) -> Path:
        """Session files, in a folder per workspace."""
        return self.data / "sessions"

    @property
    def index(self) -> Path:
        """Search index of the sessions; a cache."""
        return self.data / "index.sqlite3"

    @property
    def costs(self) -> Path:
        """Ledger of model calls."""
        return self.data / "costs.sqlite3"

    @property
    def outputs(self) -> Path:
        """Outputs of tools that were too long to be shown, in a folder per session."""
        return self.data / "outputs"

    @property
    def blobs(self) -> Path:
        """Contents of changed files before and after the change, in a folder per session."""
        return self.data / "blobs"

    @property
    def worktrees(self) -> Path:
        """Git worktrees for isolated work, each with its record beside it."""
        return self.data / "worktrees"

    @property
    def memory(self) -> Path:
        """Memory files, one of the user and one per project, with their history."""
        return self.data / "memory"

    @property
    def web(self) -> Path:
        """Tasks that scripts created over HTTP, and shared pages."""
        return self.data / "web"

    @property
    def channels(self) -> Path:
        """Messages of chat platforms, one file per app."""
        return self.data / "channels"

    @property
    def logs(self) -> Path:
        """Log files, for troubleshooting."""
        return self.data / "logs"


def home_of(env: Mapping[str, str]) -> Path:
    """Return the home folder that an environment names."""
    home = env.get("HOME")
    return Path(home) if home else Path("/")


def app_paths(env: Mapping[str, str]) -> AppPaths:
    """Find the folders: an override of the environment, else where the platform keeps such things.

    Args:
        env: `TILLER_CONFIG_DIR`, `TILLER_DATA_DIR`, `TILLER_RUNTIME_DIR`; elsewhere than on Windows and macOS also
            the `XDG_…` variables; `HOME` for a leading `~`.

    Raises:
        UsageError: An override is a relative path, which would mean another folder in every terminal.
    """
    data = (
        _override(env, "TILLER_DATA_DIR")
        or _xdg(env, "XDG_DATA_HOME")
        or platformdirs.user_data_path(APP, appauthor=False)
    )
    return AppPaths(
        config=_override(env, "TILLER_CONFIG_DIR")
        or _xdg(env, "XDG_CONFIG_HOME")
        or platformdirs.user_config_path(APP, appauthor=False),
        data=data,
        runtime=_short_enough(
            _override(env, "TILLER_RUNTIME_DIR")
            or _xdg(env, "XDG_RUNTIME_DIR")
            or _platform_runtime(data)
        ),
    )


def project_folder(root: Path) -> Path:
    """Return the folder of a workspace's own settings; used only when the workspace is trusted."""
    return root / ".tiller"


def _short_enough(runtime: Path) -> Path:
    """Return a stand-in for a folder in which a socket's path would be too long for the system.

    An editor's front door finds the same folder by itself, without any of this being loaded.
    """
    socket = os.fsencode(runtime / LONGEST_NAME)
    if len(socket) <= MAX_SOCKET_PATH_BYTES or sys.platform == "win32":
        return runtime
    digest = hashlib.sha256(os.fsencode(runtime)).hexdigest()[:12]
    return Path(f"/tmp/tiller-{os.getuid()}-{digest}")  # noqa: S108 - its owner and mode are checked before it is used


def _override(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name, "")
    if not value:
        return None
    home = env.get("HOME", "")
    if home and (value == "~" or value.startswith("~/")):
        value = home + value[1:]
    path = Path(value)
    if not path.is_absolute():
        message = f"{name} is {value!r}, a relative path: give an absolute one, or unset it"
        raise UsageError(message)
    return path


def _platform_runtime(data: Path) -> Path:
    """Without XDG_RUNTIME_DIR the usual guess is a shared folder below /tmp; a private one is better."""
    if sys.platform in {"win32", "darwin"}:
        return platformdirs.user_runtime_path(APP, appauthor=False)
    return data / "runtime"


def _xdg(env: Mapping[str, str], name: str) -> Path | None:
    if sys.platform in {"win32", "darwin"}:
        return None
    value = env.get(name, "")
    # The XDG standard: relative paths are invalid and are ignored.
    return Path(value) / APP if value.startswith("/") else None
