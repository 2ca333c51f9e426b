"""The glossary of ARCHITECTURE.md has every name that a package of the core exports, and no other."""

import importlib
import pkgutil
import re

import agent_core
from tests.support.harness.shared import ROOT

PACKAGE = re.compile(r"^### (\w+)$", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)`( •)? \| .+ \|$", re.MULTILINE)


def test_the_glossary_has_what_each_package_exports() -> None:
    sections = _sections()
    exports = {name: set(_exports(name)) for name in _packages() if _exports(name)}
    assert {name: set(rows) for name, rows in sections.items()} == exports


def test_the_glossary_marks_what_the_core_itself_exports() -> None:
    marked = {
        name for rows in _sections().values() for name, is_marked in rows.items() if is_marked
    }
    assert marked | {"TillerError"} == set(agent_core.__all__)


def _packages() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(agent_core.__path__) if module.ispkg]


def _exports(package: str) -> tuple[str, ...]:
    module = importlib.import_module(f"agent_core.{package}")
    return tuple(getattr(module, "__all__", ()))


def _sections() -> dict[str, dict[str, bool]]:
    """Return the names of each package on the page, with whether they are marked."""
    page = (ROOT / "agent_core" / "ARCHITECTURE.md").read_text("utf-8")
    _, _, glossary = page.partition("\n## Glossary\n")
    heads = list(PACKAGE.finditer(glossary))
    ends = [*(head.start() for head in heads[1:]), len(glossary)]
    return {
        head[1]: {name: bool(mark) for name, mark in ROW.findall(glossary[head.end() : end])}
        for head, end in zip(heads, ends, strict=True)
    }
