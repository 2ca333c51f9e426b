"""A module holds constants, classes and functions, because one process serves many workspaces."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.support.harness.sources import PRODUCT, sources

# "path: name" → why this is no state, in a sentence.
WAIVERS: Mapping[str, str] = {
    "agent_core/workspace/files/proxy.py: _ORIGIN": "each task sees its own: whose change it is about to make",
    "agent_core/kernel/ids.py: _RUN": "each task sees its own: the run that it works for, for the log",
    "agent_core/kernel/values.py: _BUILDING": "guards what msgspec builds once for the whole process",
    "agent_core/providers/http/__init__.py: _ ": "keeps httpx from importing its command line",
    "agent_core/extensions/ports.py: _INSIDE": "each task sees its own: whether a session waits for its end",
    "agent_core/workspace/processes/mark.py: _STARTING": "guards a limit that the system keeps once for the whole process",
}

CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*|__\w+__")
TYPE_NAME = re.compile(r"_?[A-Z][A-Za-z0-9]*")
READ_ONLY = re.compile(
    r"(Final\[)?(collections\.abc\.)?(JsonObject|Mapping|Sequence|Set|Collection|Iterable|frozenset|tuple)\b"
)
HOLDERS = frozenset(
    {"dict", "list", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter", "count"}
    | {"ContextVar", "Lock", "RLock", "Event", "Condition", "Semaphore", "local"}
    | {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
)
MUTABLE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
HARMLESS = (
    ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Pass
)


def test_modules_hold_no_state() -> None:
    found = [
        f"{source.path}: {problem}"
        for source in sources(*PRODUCT)
        for problem in (*_in_body(source.tree.body), *_globals(source.tree))
    ]
    assert [line for line in found if not _waived(line)] == []
    assert [key for key in WAIVERS if not any(line.startswith(key) for line in found)] == []


@pytest.mark.parametrize(
    "text",
    [
        "cache = {}",
        "CACHE = {}",
        "CACHE: dict[str, int] = {}",
        "SEEN = set()",
        "PENDING = collections.deque()",
        "CURRENT = contextvars.ContextVar('current')",
        "LOCK = threading.Lock()",
        "server = LanguageServer('x', '1')",
        "def f():\n    global N\n    N = 1",
        "for n in range(3):\n    pass",
        "setup()",
        "A, b = 1, 2",
        "if True:\n    counter = 0",
    ],
)
def test_state_is_noticed(text: str) -> None:
    tree = ast.parse(text)
    assert [*_in_body(tree.body), *_globals(tree)] != []


@pytest.mark.parametrize(
    "text",
    [
        "LIMIT = 3",
        "_NAMES: Final = ('a', 'b')",
        "TABLE: Mapping[str, int] = {'a': 1}",
        "TABLE: Final[Mapping[str, int]] = {'a': 1}",
        "KINDS = frozenset({'a'})",
        "SessionId = NewType('SessionId', str)",
        "Event = Started | Ended",
        "_log = logging.getLogger(__name__)",
        "__all__ = ['a']",
        "X = 1\n'''What X is.'''",
        "if sys.platform == 'win32':\n    import msvcrt\nelse:\n    import fcntl",
        "if __name__ == '__main__':\n    main()",
    ],
)
def test_constants_are_left_alone(text: str) -> None:
    tree = ast.parse(text)
    assert [*_in_body(tree.body), *_globals(tree)] == []


def _in_body(body: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass
            case ast.If():
                yield from _in_body([*statement.body, *statement.orelse])
            case ast.Try():
                yield from _in_body([*statement.body, *statement.orelse, *statement.finalbody])
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _assigned(target, value=value, annotation="")
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                yield from _assigned(target, value=value, annotation=ast.unparse(annotation))
            case ast.Expr(value=ast.Constant()):
                pass
            case _ if isinstance(statement, HARMLESS):
                pass
            case _:
                yield f"{ast.unparse(statement).splitlines()[0]} runs at import"


def _assigned(target: ast.expr, *, value: ast.expr | None, annotation: str) -> Iterator[str]:
    name = ast.unparse(target)
    called = ast.unparse(value.func).split(".")[-1] if isinstance(value, ast.Call) else ""
    is_mutable = isinstance(value, MUTABLE) or called in HOLDERS
    if name == "__all__" or called == "getLogger":
        return
    if not (CONSTANT.fullmatch(name) or TYPE_NAME.fullmatch(name)):
        yield f"{name} is a variable"
    elif is_mutable and not READ_ONLY.match(annotation):
        yield f"{name} can be changed: annotate it as Mapping, Sequence or Set, or use a tuple"


def _globals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield f"{', '.join(node.names)} declared global"


def _waived(line: str) -> bool:
    return any(line.startswith(key) for key in WAIVERS)
