"""Folders and settings in which an agent of an evaluation runs: none of the user's sessions, rules and extensions."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, decode, encode
from agent_core.kernel.values import Value
from agent_core.resources.paths import AppPaths, app_paths

KEPT_SETTINGS: Final = (
    "defaultProvider",
    "defaultModel",
    "defaultThinkingLevel",
    "cacheRetention",
    "retry",
    "stream",
)
"""Settings of the user that say how a model is asked; the others would make results differ between machines."""
UNCONTAINED: Final = "yolo"
CONTAINED: Final = "auto"


class AgentPlace(Value, frozen=True, kw_only=True):
    """Where one agent runs."""

    folder: Path
    """Private; holds everything of it."""
    variables: Mapping[str, str]
    permission: str

    @property
    def paths(self) -> AppPaths:
        """Folders of Tiller in it."""
        return app_paths(self.variables)


def make_place(
    folder: Path,
    *,
    env: Mapping[str, str],
    hidden: Sequence[Path],
    contained: bool,
    test_s: float,
    providers: JsonObject | None = None,
) -> AgentPlace:
    """Make the folders, with the models and the keys of the user. Blocking.

    Args:
        folder: New folder for everything.
        env: Environment of the user.
        hidden: Folders that contained commands cannot read: tasks with their tests and solutions, results.
        contained: Whether commands are contained; else they run without.
        test_s: Seconds that a command may take that names no limit.
        providers: Providers of models.json instead of those of the user.
    """
    config = folder / "config"
    for made in (folder, config, folder / "data", folder / "run"):
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
    theirs = app_paths(env)
    values: dict[str, JsonValue] = {}
    if providers is None:
        for path in (theirs.models, theirs.auth):
            if path.is_file():
                _ = shutil.copy2(path, config / path.name)
        given = _settings_of(theirs)
        values = {name: given[name] for name in KEPT_SETTINGS if name in given}
    else:
        _ = (config / "models.json").write_bytes(encode({"providers": providers}))
    mode = CONTAINED if contained else UNCONTAINED
    values |= {
        "permission": {"mode": mode, "fallback": "rules"},
        "sandbox": "auto" if contained else "off",
        "bash": {"timeoutS": test_s},
        "containment": {"hidePaths": [str(one.resolve()) for one in hidden]},
    }
    _ = (config / "settings.json").write_bytes(encode(values))
    # Tests run on the Python that runs this: the system's may be older, or missing.
    path = os.pathsep.join((str(Path(sys.executable).parent), env.get("PATH", os.defpath)))
    variables = {
        **env,
        "PATH": path,
        "TILLER_CONFIG_DIR": str(config),
        "TILLER_DATA_DIR": str(folder / "data"),
        "TILLER_RUNTIME_DIR": str(folder / "run"),
    }
    return AgentPlace(folder=folder, variables=variables, permission=mode)


def _settings_of(paths: AppPaths) -> JsonObject:
    try:
        return as_object(decode(paths.settings.read_bytes()))
    except (OSError, ValueError):
        return {}
