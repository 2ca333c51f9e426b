"""What is read with msgspec is read as a type that no other thread is still building."""

import ast
from collections.abc import Iterator

from tests.support.harness.sources import PRODUCT, Source, sources

BUILT_IN = frozenset({"int", "str", "list", "tuple", "dict"})
"""Types that have no description of their own, alone or of each other."""


PLACES = {"convert": 1, "decode": 1, "Decoder": 0}
"""Which argument is the type, by the name of what reads."""
READS = frozenset(
    {
        "msgspec.convert",
        "msgspec.json.decode",
        "msgspec.json.Decoder",
        "msgspec.msgpack.decode",
        "msgspec.msgpack.Decoder",
    }
)


def test_structs_are_read_through_threadsafe() -> None:
    wrong = [
        f"{source.path}:{line}: pass the type through agent_core.kernel.values.threadsafe"
        for source in sources(*PRODUCT)
        if source.path != "agent_core/kernel/values.py"
        for line in unsafe_reads(source)
    ]
    assert wrong == []


def unsafe_reads(source: Source) -> Iterator[int]:
    """Yield the lines of calls that read a type as msgspec finds it."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (kind := _read_type(node)) is not None:
            is_safe = isinstance(kind, ast.Call) and ast.unparse(kind.func) == "threadsafe"
            names = {one.id for one in ast.walk(kind) if isinstance(one, ast.Name)}
            if not is_safe and not names <= BUILT_IN | {"object"}:
                yield node.lineno


def _read_type(call: ast.Call) -> ast.expr | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in PLACES:
        return None
    if ast.unparse(call.func) not in READS:
        return None
    by_name = next((one.value for one in call.keywords if one.arg == "type"), None)
    return by_name or next(iter(call.args[PLACES[call.func.attr] :]), None)


def test_an_unsafe_read_is_noticed() -> None:
    text = "msgspec.convert(x, A)\nmsgspec.json.decode(x, type=list[A])\nmsgspec.convert(x, int)\nmsgspec.convert(x, threadsafe(A))\nmsgspec.json.Decoder(A)"
    assert [*unsafe_reads(Source(path="a.py", text=text, tree=ast.parse(text)))] == [1, 2, 5]
