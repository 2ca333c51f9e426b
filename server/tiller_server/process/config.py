"""Configuration at the start of the server: the one place of the front end that reads the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from agent_core.kernel.values import Value


class ServerConfig(Value, frozen=True, kw_only=True):
    """The environment of the process, as it was when it started."""

    env: Mapping[str, str]
    home: Path


def from_environment() -> ServerConfig:
    """Read the environment, once."""
    env = dict(os.environ)  # noqa: TID251 - the one place
    return ServerConfig(env=env, home=Path(env.get("HOME") or Path.home()))
