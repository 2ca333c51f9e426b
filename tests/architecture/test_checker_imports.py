"""A module of ours that is imported for the type checker is also imported at first use, so it hides no arrow between layers."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.harness.sources import PRODUCT, Source, sources
from tiller_server.process.deferred_modules import DEFERRED

OURS = ("agent_core", "tiller_server", "tests", "bench")


def test_only_what_loads_late_is_imported_for_the_checker_alone() -> None:
    found = [
        f"{source.path}: {name}"
        for source in sources(*PRODUCT)
        for name in checked_only(source.tree)
        if name.partition(".")[0] in OURS and not _loads_late(source, name)
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "if TYPE_CHECKING:\n    from agent_core.session import AgentSession",
        "if typing.TYPE_CHECKING:\n    import agent_core.session",
        "if TYPE_CHECKING:\n    from . import sibling",
    ],
)
def test_one_of_our_own_is_noticed(source: str) -> None:
    assert [name.partition(".")[0] for name in checked_only(ast.parse(source))] == ["agent_core"]


def _loads_late(source: Source, name: str) -> bool:
    """Return whether a module is imported at first use, or belongs to a package that resolves its names then (decision 0080)."""
    is_package = source.path.endswith("/__init__.py")
    return name in DEFERRED or (is_package and name.startswith(f"{source.module}."))


def checked_only(tree: ast.AST) -> Iterator[str]:
    """Give the modules that are imported under TYPE_CHECKING; a relative one is ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for inner in node.body:
                match inner:
                    case ast.Import(names=names):
                        yield from (alias.name for alias in names)
                    case ast.ImportFrom(level=0, module=str(module)):
                        yield module
                    case ast.ImportFrom():
                        yield "agent_core"
                    case _:
                        pass
