"""What is read with msgspec is read as a type that no other thread is still building."""

import ast
from collections.abc import Iterator

from tests.support.harness.sources import PRODUCT, Source, sources

BUILT_IN = frozenset({"int", "str", "list", "tuple", "dict"})
"""Types that have no description of their own, alone or of each other."""


def test_structs_are_read_through_threadsafe() -> None:
    wrong = [
        f"{source.path}:{line}: pass the type through agent_core.kernel.values.threadsafe"
        for source in sources(*PRODUCT)
        for line in unsafe_reads(source)
    ]
    assert wrong == []


def unsafe_reads(source: Source) -> Iterator[int]:
    """Yield the lines of calls that read a type as msgspec finds it; decoders of modules are built by their import."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (kind := _read_type(node)) is not None:
            is_safe = isinstance(kind, ast.Call) and ast.unparse(kind.func) == "threadsafe"
            names = {one.id for one in ast.walk(kind) if isinstance(one, ast.Name)}
            if not is_safe and not names <= BUILT_IN | {"object"}:
                yield node.lineno


def _read_type(call: ast.Call) -> ast.expr | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"convert", "decode"}:
        return None
    if ast.unparse(call.func) not in {
        "msgspec.convert",
        "msgspec.json.decode",
        "msgspec.msgpack.decode",
    }:
        return None
    by_name = next((one.value for one in call.keywords if one.arg == "type"), None)
    return by_name or (call.args[1] if len(call.args) > 1 else None)


def test_an_unsafe_read_is_noticed() -> None:
    text = "msgspec.convert(x, A)\nmsgspec.json.decode(x, type=list[A])\nmsgspec.convert(x, int)\nmsgspec.convert(x, threadsafe(A))"
    assert [*unsafe_reads(Source(path="a.py", text=text, tree=ast.parse(text)))] == [1, 2]
