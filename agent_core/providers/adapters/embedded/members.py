"""Repairs of a misspelt attribute or imported name: at its use, or at its definition when that is what stands alone."""

import re

from agent_core.kernel.values import Value
from agent_core.providers.adapters.embedded.commands import find_identifiers, try_names
from agent_core.providers.adapters.embedded.decisions import (
    Declined,
    Repair,
    RepairDecision,
    RepairEvidence,
    RunCommand,
    Site,
)
from agent_core.providers.adapters.embedded.names import interpreter_suggestion, use_instead
from agent_core.providers.adapters.embedded.output import SUGGESTED
from agent_core.providers.adapters.embedded.source import PythonSource, binds

NO_ATTRIBUTE = re.compile(r".*\bhas no attribute '(?P<name>\w+)'")
NOT_IMPORTED = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")
FOUND = re.compile(r"^(?:\./)?(?P<path>[^:\n]+):(?P<line>\d+):(?P<text>.*)$", re.MULTILINE)


def repair_attribute(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about an AttributeError."""
    match = NO_ATTRIBUTE.match(site.failure.message)
    if match is None or not site.raised_here or "partially initialized" in site.failure.message:
        return Declined(why="Python names no repair for it")
    suggestion = interpreter_suggestion(site, evidence)
    if not isinstance(suggestion, str):
        return suggestion
    return _repair(site, evidence, missing=match["name"], suggested=suggestion, dotted=True)


def repair_import(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about a name that a module does not have."""
    match = NOT_IMPORTED.match(site.failure.message)
    if match is None or "partially initialized" in site.failure.message:
        return Declined(why="Python names no repair for it")
    missing, suggested = match["name"], site.failure.suggested
    if suggested is None:
        command = try_names(match["module"], [missing])
        tried = evidence.output(command)
        if tried is None:
            why = f"I ask Python what `{match['module']}` has instead of `{missing}`."
            return RunCommand(command=command, why=why)
        suggestion = SUGGESTED.search(tried.output)
        suggested = suggestion["name"] if suggestion else None
    if suggested is None:
        return Declined(why="Python suggests nothing for it")
    return _repair(site, evidence, missing=missing, suggested=suggested, dotted=False)


def _repair(
    site: Site, evidence: RepairEvidence, *, missing: str, suggested: str, dotted: bool
) -> RepairDecision:
    command = find_identifiers([missing, suggested])
    found = evidence.output(command)
    if found is None:
        why = f"I look where `{missing}` and `{suggested}` stand."
        return RunCommand(command=command, why=why)
    occurrences = _occurrences(found.output, missing, suggested)
    definition = _lonely_definition(occurrences, site, missing=missing, suggested=suggested)
    if definition is not None:
        at_definition = _rename(definition, evidence, old=suggested, new=missing)
        if at_definition is not None:
            return at_definition
    source = evidence.source(site.path, site.line)
    if not isinstance(source, PythonSource):
        return source
    use = source.first_from(site.line, missing, dotted=dotted)
    if use is None:
        return Declined(why=f"line {site.line} does not hold {missing!r}")
    return use_instead(source, site, use, suggested)


class _Word(Value, frozen=True, kw_only=True):
    """A line that holds a word."""

    path: str
    line: int
    text: str
    word: str


def _occurrences(output: str, *names: str) -> tuple[_Word, ...]:
    return tuple(
        _Word(path=match["path"], line=int(match["line"]), text=match["text"], word=name)
        for match in FOUND.finditer(output)
        for name in names
        for _ in re.finditer(rf"\b{re.escape(name)}\b", match["text"])
    )


def _lonely_definition(
    occurrences: tuple[_Word, ...], site: Site, *, missing: str, suggested: str
) -> _Word | None:
    """Find the definition when it, not its uses, is misspelt: it stands alone against several uses."""
    alone = [one for one in occurrences if one.word == suggested]
    uses = [one for one in occurrences if one.word == missing]
    if len(alone) != 1 or (alone[0].path, alone[0].line) == (site.path, site.line):
        return None
    # Tests say what the code should be called; between two lines of code one use proves nothing.
    by_a_test = _is_test(site.path) and not _is_test(alone[0].path)
    if len(uses) < 2 and not by_a_test:  # noqa: PLR2004 - two witnesses
        return None
    defines = re.compile(
        rf"\s*(?:(?:async\s+)?def|class)\s+{suggested}\b|.*\b{suggested}\s*(?::[^=]+)?=[^=]|\s*{suggested}\s*:"
    )
    return alone[0] if defines.match(alone[0].text) else None


def _is_test(path: str) -> bool:
    *folders, name = path.split("/")
    named = name.startswith("test") or name.endswith("_test.py")
    return named or bool({"test", "tests"} & set(folders))


def _rename(place: _Word, evidence: RepairEvidence, *, old: str, new: str) -> RepairDecision | None:
    source = evidence.source(place.path, place.line)
    if not isinstance(source, PythonSource):
        return source
    names = source.occurrences(old)
    if len(names) != 1 or not any(binds(node, old) for node in source.nodes):
        return None
    return Repair(
        path=place.path,
        line=names[0].line,
        edits=source.replaced([(names[0], new)]),
        what=f"`{old}` → `{new}`, the name by which it is used",
    )
