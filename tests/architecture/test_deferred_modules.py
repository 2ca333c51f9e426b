"""What the core imports at first use is imported ahead of it by a process that serves many."""

import ast
from collections.abc import Iterator

from tests.support.harness.sources import Source, sources
from tiller_server.process.deferred_modules import DEFERRED

MARK = "at first use"


def test_the_table_names_every_module_that_is_imported_at_first_use() -> None:
    modules = {source.module for source in sources("agent_core")}
    marked = {name for source in sources("agent_core") for name in _marked(source, modules)}
    assert sorted(marked - {*DEFERRED}) == [], "add them to DEFERRED"
    assert sorted({*DEFERRED} - marked) == [], "remove them from DEFERRED"


def _marked(source: Source, modules: set[str]) -> Iterator[str]:
    lines = source.text.splitlines()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and MARK in lines[node.lineno - 1]:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else str(node.module)
