"""Repairs of a misspelt module: the standard library's, or one of the project."""

import ast
import re
import sys
from collections.abc import Sequence

from agent_core.providers.adapters.embedded.commands import LIST_MODULES, try_names
from agent_core.providers.adapters.embedded.decisions import (
    Declined,
    RepairDecision,
    RepairEvidence,
    RunCommand,
    Site,
)
from agent_core.providers.adapters.embedded.names import attributes_of, use_instead
from agent_core.providers.adapters.embedded.source import PythonSource
from agent_core.providers.adapters.embedded.spelling import closest

NO_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")


def repair_module(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about a module that is not there.

    A package that is not installed may have nearly the name of another (`httpx` and `http`), so a candidate must
    also hold everything that the file uses of it.
    """
    match = NO_MODULE.match(site.failure.message)
    if match is None:
        return Declined(why="Python names no repair for it")
    missing = match["name"]
    source = evidence.source(site.path, site.line)
    if not isinstance(source, PythonSource):
        return source
    listed = evidence.output(LIST_MODULES)
    if listed is None:
        return RunCommand(
            command=LIST_MODULES, why=f"I look for a module with nearly the name `{missing}`."
        )
    candidates = {*_modules(listed.output.splitlines()), *sys.stdlib_module_names}
    private = missing.startswith("_")
    alike = (
        one
        for one in candidates
        if one.count(".") == missing.count(".") and one.startswith("_") == private
    )
    meant = closest(missing, alike)
    if meant is None:
        return Declined(
            why=f"the module {missing!r} is not installed, and no other has such a name"
        )
    return _replace(site, source, evidence, missing=missing, meant=meant)


def _replace(
    site: Site, source: PythonSource, evidence: RepairEvidence, *, missing: str, meant: str
) -> RepairDecision:
    statement = _import_at(source, site.line)
    used = sorted(_used(source, statement, missing=missing, meant=meant))
    if not used and meant in sys.stdlib_module_names:
        return Declined(
            why=f"the module {missing!r} is not there, and nothing shows that {meant!r} is meant"
        )
    command = try_names(meant, used)
    tried = evidence.output(command)
    if tried is None:
        why = f"`{meant}` is nearly `{missing}`; I check that it has what is used of it."
        return RunCommand(command=command, why=why)
    if tried.failed:
        return Declined(why=f"the module {missing!r} is not installed, and {meant!r} is another")
    for old, new in zip(missing.split("."), meant.split("."), strict=True):
        if old == new:
            continue
        for dotted in (False, True):
            name = source.first_from(site.line, old, dotted=dotted)
            if name is not None:
                return use_instead(source, site, name, new)
    return Declined(why=f"line {site.line} does not hold {missing!r}")


def _modules(paths: Sequence[str]) -> set[str]:
    """Turn paths of files into the names by which they are imported."""
    names: set[str] = set()
    for path in paths:
        parts = path.strip().removeprefix("./").removesuffix(".py").split("/")
        if parts[-1] == "__init__":
            parts.pop()
        if parts[:1] == ["src"]:
            parts = parts[1:]
        if parts and all(part.isidentifier() for part in parts):
            names.add(".".join(parts))
            # A folder without __init__.py is a package too.
            names.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
    return names


def _import_at(source: PythonSource, line: int) -> ast.Import | ast.ImportFrom | None:
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and node.lineno <= line <= (
            node.end_lineno or 0
        ):
            return node
    return None


def _used(
    source: PythonSource, statement: ast.Import | ast.ImportFrom | None, *, missing: str, meant: str
) -> set[str]:
    """Return the names that a file uses of a module it imports."""
    match statement:
        case ast.ImportFrom(names=names):
            return {one.name for one in names if one.name != "*"}
        case ast.Import(names=names):
            aliases = {one.asname for one in names if one.name == missing and one.asname}
            bound = aliases or {missing, meant}
            return {used for one in bound for used in attributes_of(source, one)}
        case _:
            return set()
