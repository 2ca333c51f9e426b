"""Repairs of a call that does not fit: a method without `self`, a keyword that Python can name."""

import re

from agent_core.providers.adapters.embedded.commands import find_identifiers
from agent_core.providers.adapters.embedded.decisions import (
    Declined,
    RepairDecision,
    RepairEvidence,
    RunCommand,
    Site,
)
from agent_core.providers.adapters.embedded.members import FOUND
from agent_core.providers.adapters.embedded.names import repair_missing_self, use_instead
from agent_core.providers.adapters.embedded.source import FunctionNode, PythonSource, positional

TOO_MANY = re.compile(
    r"""(?P<owner>\w+)\.(?P<method>\w+)\(\)\ takes\ (?:from\ \d+\ to\ )?(?P<takes>\d+)\ positional\ arguments?
    \ but\ (?P<given>\d+)\ (?:was|were)\ given""",
    re.VERBOSE,
)
KEYWORD = re.compile(r".*got an unexpected keyword argument '(?P<name>\w+)'")


def repair_call(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about a TypeError."""
    if (keyword := KEYWORD.match(site.failure.message)) and site.failure.suggested:
        source = evidence.source(site.path, site.line)
        if not isinstance(source, PythonSource):
            return source
        found = source.first_from(site.line, keyword["name"], dotted=False)
        if found is None or not found.keyword:
            return Declined(why=f"line {site.line} does not hold {keyword['name']!r}")
        return use_instead(source, site, found, site.failure.suggested)
    match = TOO_MANY.search(site.failure.message)
    if match is None or int(match["given"]) != int(match["takes"]) + 1:
        return Declined(why="Python names no repair for it")
    return _missing_self(site, evidence, owner=match["owner"], method=match["method"])


def _missing_self(
    site: Site, evidence: RepairEvidence, *, owner: str, method: str
) -> RepairDecision:
    command = find_identifiers([f"def {method}"])
    found = evidence.output(command)
    if found is None:
        return RunCommand(command=command, why=f"I look for the definition of `{owner}.{method}`.")
    for place in FOUND.finditer(found.output):
        line = int(place["line"])
        source = evidence.source(place["path"], line)
        if not isinstance(source, PythonSource):
            return source
        function, around = source.function_at(line), source.class_at(line)
        if function is None or around is None or around.name != owner or function.name != method:
            continue
        if _lacks_self(function):
            there = Site(
                failure=site.failure, path=place["path"], line=function.lineno, raised_here=False
            )
            return repair_missing_self(source, there)
    return Declined(why=f"`{owner}.{method}` has its `self`: the call passes one argument too many")


def _lacks_self(function: FunctionNode) -> bool:
    return not function.decorator_list and positional(function)[:1] not in (["self"], ["cls"])
