"""Collects the messages that people can see, by walking the code of the product."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from tests.support.harness.shared import ROOT
from tests.support.harness.sources import PRODUCT, Source, sources

TABLE = ROOT / "tests" / "data" / "messages.txt"
SPEAKING = (
    "server/tiller_server/cli/",
    "server/tiller_server/daemon/",
    "server/tiller_server/review/",
)
"""Here the calls of `OUTPUT` speak to people too."""
OUTPUT = frozenset({"complain", "error", "print", "tell", "write"})
NOTICES = frozenset({"Notice", "ErrorRaised", "RpcError"})
NAMED = frozenset({"advice", "problem"})
"""Keywords whose text people read, whatever is called."""
HELP = frozenset({"description", "epilog", "help"})
"""The same in the command line and in settings; elsewhere a description is for a model."""
HELPING = ("server/tiller_server/cli/", "agent_core/resources/settings/")
SLOT = "{}"
"""Stands for a value that is filled in."""

_Assigned = Mapping[str, list[ast.expr]]


def collect_messages(files: Sequence[Source]) -> Mapping[str, Sequence[str]]:
    """Return the messages of each file that has some, in the order of the code, each once."""
    errors = NOTICES | _error_classes(files)
    return {
        source.path: messages
        for source in files
        if (messages := list(dict.fromkeys(_of_file(source, errors))))
    }


@cache
def product_messages() -> Mapping[str, Sequence[str]]:
    """Return the messages of the product; collected once, since all tests of a run look at the same files."""
    return collect_messages(sources(*PRODUCT))


def render_table(messages: Mapping[str, Iterable[str]]) -> str:
    """Return the table as text: a path, below it a line for each message."""
    return "\n".join(
        "\n".join((path, *(f"  {text}" for text in texts), "")) for path, texts in messages.items()
    )


def _error_classes(files: Iterable[Source]) -> frozenset[str]:
    bases = {
        node.name: {_name(base) for base in node.bases}
        for source in files
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {"Exception", "TillerError", "ValueError", "TimeoutError"}
    while more := {name for name, of in bases.items() if of & names} - names:
        names |= more
    return frozenset(names & bases.keys())


def _of_file(source: Source, errors: frozenset[str]) -> Iterator[str]:
    called = errors | (OUTPUT if source.path.startswith(SPEAKING) else frozenset())
    named = NAMED | (HELP if source.path.startswith(HELPING) else frozenset())
    for scope in ast.walk(source.tree):
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            nodes = _own(scope)
            assigned = _assigned(nodes)
            for node in nodes:
                if isinstance(node, ast.Call):
                    yield from _of_call(node, assigned, called=called, named=named)
        elif isinstance(scope, ast.ClassDef) and scope.name in errors:
            for call in ast.walk(scope):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__":
                    yield from _texts_of(call.args[:1], {})


def _of_call(
    call: ast.Call, assigned: _Assigned, *, called: frozenset[str], named: frozenset[str]
) -> Iterator[str]:
    if _name(call.func) in called:
        yield from _texts_of(call.args, assigned)
        named |= {"message", "text"}
    yield from _texts_of((one.value for one in call.keywords if one.arg in named), assigned)


def _texts_of(expressions: Iterable[ast.expr], assigned: _Assigned) -> Iterator[str]:
    for expression in expressions:
        for text in _texts(expression, assigned):
            # What is one word or has no letters is a name or a mark, no message.
            if " " in text.strip() and any(char.isalpha() for char in text.replace(SLOT, "")):
                yield text.strip().replace("\n", "\\n")


def _texts(expression: ast.expr, assigned: _Assigned) -> list[str]:
    texts: list[str] = []
    match expression:
        case ast.Constant(value=str(text)):
            texts = [text]
        case ast.JoinedStr(values=values):
            texts = [_filled(values)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = _texts(right, assigned) or [SLOT]
            texts = [text + end for text in _texts(left, assigned) or [SLOT] for end in ends]
        case ast.IfExp(body=body, orelse=orelse):
            texts = [*_texts(body, assigned), *_texts(orelse, assigned)]
        case ast.BoolOp(values=values):
            texts = [text for value in values for text in _texts(value, assigned)]
        case ast.Name(id=name):
            texts = [text for value in assigned.get(name, ()) for text in _texts(value, {})]
        case _:
            pass
    return texts


def _filled(values: Iterable[ast.expr]) -> str:
    return "".join(
        value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else SLOT
        for value in values
    )


def _assigned(nodes: Iterable[ast.AST]) -> _Assigned:
    values: dict[str, list[ast.expr]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values.setdefault(name, []).append(value)
            case _:
                pass
    return values


def _own(scope: ast.AST) -> list[ast.AST]:
    """Return the nodes of a scope in the order of the code, without those of the functions in it."""
    nodes: list[ast.AST] = []
    left = [*ast.iter_child_nodes(scope)][::-1]
    while left:
        node = left.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes.append(node)
            left.extend([*ast.iter_child_nodes(node)][::-1])
    return nodes


def _name(expression: ast.expr) -> str:
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _name(value)
        case _:
            return ""
