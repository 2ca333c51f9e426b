"""Problems of the user's configuration files other than settings.json, for commands that open no session."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_core.assembly.config.workspace_config import home_of
from agent_core.mcp.files import ServerFiles
from agent_core.providers.catalog.models_file import read_models_file
from agent_core.resources.paths import AppPaths
from agent_core.workspace.permissions.policy.rules.rules_file import NAME, load_rules


def config_problems(paths: AppPaths, *, env: Mapping[str, str]) -> Sequence[str]:
    """Return a sentence for each problem of models.json, mcp.json and policy.json. Blocking."""
    problems: list[str] = []
    # A file that cannot be read is told where its models are needed.
    with suppress(OSError, UnicodeError):
        file = read_models_file(paths.models.read_text("utf-8-sig"), path=paths.models)
        problems.extend(map(str, file.problems))
    servers = ServerFiles(config=paths.config, root=Path("/"), env=env, is_trusted=lambda: False)
    problems.extend(servers.read_now().problems)
    return (*problems, *rule_problems(paths, env=env))


def rule_problems(paths: AppPaths, *, env: Mapping[str, str]) -> Sequence[str]:
    """Return a sentence for each problem of policy.json. Blocking."""
    loaded = load_rules(
        paths.config / NAME,
        origin="user",
        roots=(),
        env_path=env.get("PATH", ""),
        home=home_of(env),
    )
    return tuple(map(str, loaded.problems))
