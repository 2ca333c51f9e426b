"""Repairs of a name that is not defined: misspelt, not imported, or an attribute without `self`."""

import ast
import re
import sys

from agent_core.providers.adapters.embedded.commands import ask_python, try_names
from agent_core.providers.adapters.embedded.decisions import (
    Declined,
    Repair,
    RepairDecision,
    RepairEvidence,
    RunCommand,
    Site,
)
from agent_core.providers.adapters.embedded.output import suggestion_in
from agent_core.providers.adapters.embedded.source import (
    FunctionNode,
    Name,
    PythonSource,
    binds,
    bound_by,
    imported_by,
    imports,
    positional,
)
from agent_core.providers.adapters.embedded.spelling import slips

UNBOUND = re.compile(r"(?:cannot access )?local variable '(?P<name>\w+)'")
UNDEFINED = re.compile(r"name '(?P<name>\w+)' is not defined")


def repair_name(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about a NameError."""
    match = UNDEFINED.match(site.failure.message)
    if match is None or not site.raised_here:
        return Declined(why="Python names no repair for it")
    source = evidence.source(site.path, site.line)
    if not isinstance(source, PythonSource):
        return source
    if match["name"] == "self":
        return repair_missing_self(source, site)
    return _repair_in(source, site, evidence, missing=match["name"])


def repair_unbound(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about a local variable that is read before it is set: its first setting may be misspelt."""
    match = UNBOUND.match(site.failure.message)
    if match is None or not site.raised_here:
        return Declined(why="Python names no repair for it")
    source = evidence.source(site.path, site.line)
    if not isinstance(source, PythonSource):
        return source
    lonely = _unused_binding(source, site.line, missing=match["name"])
    if lonely is None:
        return Declined(why="Python names no repair for it")
    return _rename_binding(source, site, lonely, match["name"])


def interpreter_suggestion(site: Site, evidence: RepairEvidence) -> str | RunCommand | Declined:
    """Return what the interpreter suggests, asking it when the test runner left it out."""
    failure = site.failure
    if failure.suggested is not None:
        return failure.suggested
    for answer in evidence.answers:
        if (suggestion := suggestion_in(answer, failure)) is not None:
            return suggestion
    command = ask_python(evidence.test_command)
    if evidence.output(command) is not None:
        return Declined(why="Python suggests nothing for it")
    why = "The test runner leaves out what Python itself would suggest, so I ask Python."
    return RunCommand(command=command, why=why)


def use_instead(source: PythonSource, site: Site, found: Name, new: str) -> Repair:
    """Replace one occurrence of a name."""
    return Repair(
        path=site.path,
        line=found.line,
        edits=source.replaced([(found, new)]),
        what=f"`{found.text}` → `{new}`",
    )


def repair_missing_self(source: PythonSource, site: Site) -> RepairDecision:
    """Return a method its `self`: where a name `self` is not defined, or one argument too many arrives."""
    function, owner = source.function_at(site.line), source.class_at(site.line)
    if function is None or owner is None or function not in owner.body or function.decorator_list:
        return Declined(why="`self` is used outside of a plain method")
    name = next((n for n in source.occurrences(function.name) if n.line >= function.lineno), None)
    if name is None:
        return Declined(why=f"the definition of {function.name!r} cannot be found")
    opening = source.lines[name.line - source.first_line][name.column + len(name.text) :]
    if not opening.startswith("("):
        return Declined(why=f"the parameters of {function.name!r} are written in an unusual way")
    parameters = positional(function)
    if parameters and slips(parameters[0], "self") == 1:
        first = source.first_from(name.line, parameters[0], dotted=False)
        if first is not None:
            return use_instead(source, site, first, "self")
    empty = not (
        parameters or function.args.vararg or function.args.kwonlyargs or function.args.kwarg
    )
    with_self = f"{function.name}(self" if empty else f"{function.name}(self, "
    opened = Name(
        text=f"{function.name}(", line=name.line, column=name.column, dotted=False, keyword=False
    )
    return Repair(
        path=site.path,
        line=name.line,
        edits=source.replaced([(opened, with_self)]),
        what=f"the method `{function.name}` takes `self`",
    )


def _repair_in(
    source: PythonSource, site: Site, evidence: RepairEvidence, *, missing: str
) -> RepairDecision:
    found = source.first_from(site.line, missing, dotted=False)
    if found is None:
        return Declined(why=f"line {site.line} does not hold {missing!r} any more")
    if (imported := _missing_import(source, site, missing, evidence)) is not None:
        return imported
    return _suggested(source, site, found, evidence)


def _suggested(
    source: PythonSource, site: Site, found: Name, evidence: RepairEvidence
) -> RepairDecision:
    suggestion = interpreter_suggestion(site, evidence)
    if isinstance(suggestion, RunCommand):
        return suggestion
    if not _is_of_this_file(source, suggestion):
        # A built-in, or nothing: a variable that nobody uses is the better witness.
        lonely = _unused_binding(source, site.line, missing=found.text)
        suggestion = lonely.text if lonely is not None else suggestion
    if _is_attribute_of_self(source, site.line, found.text) and not _is_local(
        source, site, suggestion
    ):
        return use_instead(source, site, found, f"self.{found.text}")
    if isinstance(suggestion, Declined):
        # The interpreter does not know swapped letters for a slip; in a short name they are too far for it.
        suggestion = _one_slip_away(source, site.line, found.text) or suggestion
    if not isinstance(suggestion, str):
        return suggestion
    binding = _misspelt_binding(source, site.line, missing=found.text, suggested=suggestion)
    if binding is None:
        return use_instead(source, site, found, suggestion)
    return _rename_binding(source, site, binding, found.text)


def _is_of_this_file(source: PythonSource, name: str | Declined) -> bool:
    return isinstance(name, str) and any(not one.dotted for one in source.occurrences(name))


def _rename_binding(source: PythonSource, site: Site, binding: Name, used: str) -> Repair:
    return Repair(
        path=site.path,
        line=binding.line,
        edits=source.replaced([(binding, used)]),
        what=f"`{binding.text}` → `{used}`, the name by which it is used",
    )


def _is_local(source: PythonSource, site: Site, name: str | Declined) -> bool:
    function = source.function_at(site.line)
    if function is None or not isinstance(name, str):
        return False
    return any(binds(node, name) for node in ast.walk(function))


def _one_slip_away(source: PythonSource, line: int, missing: str) -> str | None:
    """Return the one name of the function or file that is a single slip from the missing one."""
    if len(missing) < 3:  # noqa: PLR2004 - every name is near to so short a one
        return None
    function = source.function_at(line)
    nodes = [] if function is None else list(ast.walk(function))
    candidates = {bound_by(node) for node in nodes if not isinstance(node, ast.Attribute)}
    for statement in _body(source):
        candidates |= _bound_here(statement)
    near = [one for one in candidates if one and slips(missing, one) == 1]
    return near[0] if len(near) == 1 else None


def _bound_here(statement: ast.stmt) -> set[str | None]:
    """Return the names that a statement of a module makes, also by importing them."""
    if isinstance(statement, ast.Assign):
        return {bound_by(node) for one in statement.targets for node in ast.walk(one)}
    return {bound_by(statement), *imported_by(statement)}


def _unused_binding(source: PythonSource, line: int, *, missing: str) -> Name | None:
    """Find a variable of the function that is set, never used, and a single slip from the missing name."""
    function = source.function_at(line)
    if function is None:
        return None
    set_here = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    near = [one for one in set_here if slips(one, missing) == 1]
    found = source.occurrences(near[0]) if len(near) == 1 else ()
    return found[0] if len(found) == 1 else None


def _misspelt_binding(
    source: PythonSource, line: int, *, missing: str, suggested: str
) -> Name | None:
    """Find the binding when it, not its uses, is misspelt: it stands alone against several uses."""
    alone, uses = source.occurrences(suggested), source.occurrences(missing)
    if len(alone) != 1 or alone[0].dotted or len(uses) < 2:  # noqa: PLR2004 - two witnesses
        return None
    nodes = source.nodes
    if any(_names_anew(node, missing) or imports(node, missing) for node in nodes):
        return None
    function = source.function_at(line)
    seen_from_here = function is None or alone[0].line in _lines(function)
    if not seen_from_here and not any(suggested in _bound_here(node) for node in _body(source)):
        return None
    return alone[0] if any(_names_anew(node, suggested) for node in nodes) else None


def _names_anew(node: ast.AST, name: str) -> bool:
    return binds(node, name) and not isinstance(node, ast.Attribute)


def _body(source: PythonSource) -> list[ast.stmt]:
    return [] if source.tree is None else source.tree.body


def _lines(function: FunctionNode) -> range:
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def _is_attribute_of_self(source: PythonSource, line: int, name: str) -> bool:
    function, owner = source.function_at(line), source.class_at(line)
    if function is None or owner is None or positional(function)[:1] != ["self"]:
        return False
    if any(isinstance(node, ast.ClassDef) for node in ast.walk(function)):
        return False
    if any(binds(node, name) for node in owner.body if not isinstance(node, ast.ClassDef)):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for node in ast.walk(owner)
    )


def _missing_import(
    source: PythonSource, site: Site, missing: str, evidence: RepairEvidence
) -> RepairDecision | None:
    """Import a module of the standard library that is used without having been imported."""
    is_module = missing in sys.stdlib_module_names or site.failure.forgotten_import == missing
    used = sorted(attributes_of(source, missing))
    if not is_module or not used:
        return None
    command = try_names(missing, used)
    tried = evidence.output(command)
    if tried is None:
        why = f"`{missing}` looks like the module of that name; I check that it has what is used of it."
        return RunCommand(command=command, why=why)
    if tried.failed or source.tree is None:
        return None
    line = _import_line(source.tree)
    return Repair(
        path=site.path,
        line=line,
        edits=(source.inserted(line, f"import {missing}"),),
        what=f"`import {missing}`",
    )


def attributes_of(source: PythonSource, name: str) -> set[str]:
    """Return the attributes that are looked up on a name."""
    return {
        node.attr
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    }


def _import_line(tree: ast.Module) -> int:
    """Return the line before which an import belongs: behind the docstring and `__future__`."""
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            return _first_line(node)
    return len(tree.body) + 1


def _first_line(statement: ast.stmt) -> int:
    decorated = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    decorators = statement.decorator_list if decorated else []
    return min([statement.lineno, *(one.lineno for one in decorators)])
