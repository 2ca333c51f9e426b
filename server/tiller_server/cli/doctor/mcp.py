"""Check of the MCP servers for `tiller doctor`. Blocking; starts none of them."""

import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from agent_core.mcp.definitions import Http, Server, ServerFiles
from agent_core.resources.paths import AppPaths
from agent_core.workspace.sandbox import Sandbox
from tiller_server.cli.doctor.check import Check

NAME: Final = "MCP servers"
INSTALL: Final = "pip install 'tillerd[mcp]'"


def mcp_check(
    paths: AppPaths, *, workspace: Path, env: Mapping[str, str], sandbox: Sandbox
) -> Check:
    """Return which servers the user's own file names, and the problems with them.

    Servers that a project names are not checked: whether the project is trusted is another question.
    """
    files = ServerFiles(config=paths.config, root=workspace, env=env, is_trusted=lambda: False)
    defined = files.read_now()
    if defined.problems:
        summary = "; ".join(defined.problems)
        return Check(name=NAME, status="note", found=summary, advice="repair it, then ask again")
    if not defined.servers:
        off = ", ".join(entry.name for entry in defined.entries)
        found = f"switched off: {off}" if off else f"none are named in {paths.config / 'mcp.json'}"
        return Check(name=NAME, status="ok", found=found)
    names = ", ".join(one.name for one in defined.servers)
    if find_spec("mcp") is None:
        found = f"{names}: the library that speaks with them is not installed"
        return Check(name=NAME, status="missing", found=found, advice=INSTALL)
    if missing := [one for one in defined.servers if _is_missing(one, env)]:
        what = ", ".join(f"{one.name} ({_program(one)})" for one in missing)
        advice = "install their programs, or name them with their whole paths"
        return Check(name=NAME, status="missing", found=f"not to be found: {what}", advice=advice)
    if loose := [one.name for one in defined.servers if _is_loose(one, sandbox)]:
        found = f"{names}; not contained: {', '.join(loose)}"
        return Check(name=NAME, status="note", found=found, advice="they have your rights")
    return Check(name=NAME, status="ok", found=names)


def _is_missing(server: Server, env: Mapping[str, str]) -> bool:
    if isinstance(server.way, Http):
        return False
    return shutil.which(_program(server), path=env.get("PATH")) is None


def _is_loose(server: Server, sandbox: Sandbox) -> bool:
    if isinstance(server.way, Http):
        return False
    return not server.way.contained or sandbox.containing.level == "none"


def _program(server: Server) -> str:
    return "" if isinstance(server.way, Http) else server.way.argv[0]
