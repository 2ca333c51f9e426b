"""Repairs of a name that is not defined: misspelt, not imported, or an attribute without `self`."""

import ast
import re
import sys

from agent_core.providers.adapters.embedded.commands import ask_python, try_names
from agent_core.providers.adapters.embedded.output import suggestion_in
from agent_core.providers.adapters.embedded.source import (
    FunctionNode,
    Name,
    Source,
    binds,
    imports,
    positional,
)
from agent_core.providers.adapters.embedded.spelling import slips
from agent_core.providers.adapters.embedded.verdicts import (
    Declined,
    Evidence,
    Repair,
    Run,
    Site,
    Verdict,
)

UNDEFINED = re.compile(r"name '(?P<name>\w+)' is not defined")


def repair_name(site: Site, evidence: Evidence) -> Verdict:
    """Say what to do about a NameError."""
    match = UNDEFINED.match(site.failure.message)
    if match is None or not site.raised_here:
        return Declined(why="Python names no repair for it")
    source = evidence.source(site.path, site.line)
    if not isinstance(source, Source):
        return source
    if match["name"] == "self":
        return repair_missing_self(source, site)
    return _repair_in(source, site, evidence, missing=match["name"])


def told_suggestion(site: Site, evidence: Evidence) -> str | Run | Declined:
    """Give what the interpreter suggests, asking it when the test runner left it out."""
    failure = site.failure
    if failure.suggested is not None:
        return failure.suggested
    command = ask_python(evidence.test_command)
    asked = evidence.output(command)
    if asked is None:
        why = "The test runner leaves out what Python itself would suggest, so I ask Python."
        return Run(command=command, why=why)
    told = suggestion_in(asked.output, failure)
    return told if told is not None else Declined(why="Python suggests nothing for it")


def repair_missing_self(source: Source, site: Site) -> Verdict:
    """Give a method its `self`: where a name `self` is not defined, or one argument too many arrives."""
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


def _repair_in(source: Source, site: Site, evidence: Evidence, *, missing: str) -> Verdict:
    found = source.first_from(site.line, missing, dotted=False)
    if found is None:
        return Declined(why=f"line {site.line} does not hold {missing!r} any more")
    if _is_attribute_of_self(source, site.line, missing):
        return use_instead(source, site, found, f"self.{missing}")
    if (imported := _missing_import(source, site, missing, evidence)) is not None:
        return imported
    return _suggested(source, site, found, evidence)


def _suggested(source: Source, site: Site, found: Name, evidence: Evidence) -> Verdict:
    told = told_suggestion(site, evidence)
    if not isinstance(told, str):
        return told
    binding = _misspelt_binding(source, site.line, missing=found.text, suggested=told)
    if binding is not None:
        return Repair(
            path=site.path,
            line=binding.line,
            edits=source.replaced([(binding, found.text)]),
            what=f"`{told}` → `{found.text}`, the name by which it is used",
        )
    return use_instead(source, site, found, told)


def use_instead(source: Source, site: Site, found: Name, new: str) -> Repair:
    """Replace one occurrence of a name."""
    return Repair(
        path=site.path,
        line=found.line,
        edits=source.replaced([(found, new)]),
        what=f"`{found.text}` → `{new}`",
    )


def _misspelt_binding(source: Source, line: int, *, missing: str, suggested: str) -> Name | None:
    """Find the binding when it, not its uses, is misspelt: it stands alone against several uses."""
    function = source.function_at(line)
    nodes = list(ast.walk(function)) if function is not None else []
    if function is None or not any(binds(node, suggested) for node in nodes):
        nodes, function = list(source.nodes()), None
    within = _lines(function)
    bound = [name for name in source.occurrences(suggested, within=within) if not name.dotted]
    uses = [name for name in source.occurrences(missing, within=within) if not name.dotted]
    if len(bound) != 1 or len(uses) < 2:  # noqa: PLR2004 - one use proves nothing
        return None
    if any(binds(node, missing) or imports(node, missing) for node in nodes):
        return None
    return bound[0] if any(binds(node, suggested) for node in nodes) else None


def _lines(function: FunctionNode | None) -> range | None:
    if function is None:
        return None
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def _is_attribute_of_self(source: Source, line: int, name: str) -> bool:
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


def _missing_import(source: Source, site: Site, missing: str, evidence: Evidence) -> Verdict | None:
    """Import a module of the standard library that is used without having been imported."""
    known = missing in sys.stdlib_module_names or site.failure.forgotten_import == missing
    used = sorted(attributes_of(source, missing))
    if not known or not used:
        return None
    command = try_names(missing, used)
    tried = evidence.output(command)
    if tried is None:
        why = f"`{missing}` looks like the module of that name; I check that it has what is used of it."
        return Run(command=command, why=why)
    if tried.failed or source.tree is None:
        return None
    line = _import_line(source.tree)
    return Repair(
        path=site.path,
        line=line,
        edits=(source.inserted(line, f"import {missing}"),),
        what=f"`import {missing}`",
    )


def attributes_of(source: Source, name: str) -> set[str]:
    """Give the attributes that are looked up on a name."""
    return {
        node.attr
        for node in source.nodes()
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    }


def _import_line(tree: ast.Module) -> int:
    """Give the line before which an import belongs: behind the docstring and `__future__`."""
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
