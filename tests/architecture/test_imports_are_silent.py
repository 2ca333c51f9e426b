"""Importing a module does nothing: a stdio server that prints on import has already lost its client."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT
from tests.support.harness.sources import PRODUCT, Source, sources

PROBE = ROOT / "tests" / "architecture" / "import_probe.py"

LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
NOISY = """
import os, signal, socket, threading
from pathlib import Path
print("hello")
os.environ.get("SEEN")
Path("made.txt").write_text("x")
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
socket.socket()
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.timeout(600)
def test_importing_any_module_does_nothing_else(tmp_path: Path, child_env: dict[str, str]) -> None:
    order = _each_after_one_it_imports(sources(*PRODUCT))
    acts = _probe(ROOT, order, cwd=tmp_path, env=child_env)
    assert [f"{module}: {line}" for module, lines in acts.items() for line in lines] == []
    assert sorted(acts) == sorted(order)
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_acts_on_import_is_noticed(tmp_path: Path, child_env: dict[str, str]) -> None:
    package = tmp_path / "tiller_server"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "noisy.py").write_text(NOISY, encoding="utf-8")
    (package / "broken.py").write_text("1 / 0", encoding="utf-8")
    (package / "quiet.py").write_text("LIMIT = 3", encoding="utf-8")
    (package / "late.py").write_text("import tiller_server.quiet\nprint('late')", encoding="utf-8")
    (package / "user.py").write_text("import tiller_server.broken", encoding="utf-8")
    order = {
        "tiller_server.noisy": None,
        "tiller_server.broken": None,
        "tiller_server.quiet": None,
        "tiller_server.late": "tiller_server.quiet",
        "tiller_server.user": "tiller_server.broken",
    }
    acts = _probe(tmp_path, order, cwd=tmp_path, env=child_env)
    assert [line.split("(")[0].strip() for line in acts["tiller_server.noisy"]] == [
        "tiller_server.noisy read the variable 'SEEN'",
        "wrote 'made.txt'",
        "socket.__new__",
        "took the signals SIGUSR1",
        "left 1 threads",
        r"printed b'hello\n'",
    ]
    assert acts["tiller_server.broken"] == ["raised ZeroDivisionError('division by zero')"]
    assert acts["tiller_server.user"] == acts["tiller_server.broken"]
    assert acts["tiller_server.quiet"] == []
    assert acts["tiller_server.late"] == [r"printed b'late\n'"]


def test_a_module_comes_after_the_largest_that_it_imports_and_never_after_one_of_a_circle() -> None:
    texts = {
        "a": "",
        "a.base": "",
        "a.more": "from a import base",
        "a.top": "import a.base\nfrom a.more import name\ndef late():\n    import a.round",
        "a.round": "try:\n    import a.trip\nexcept ImportError: pass",
        "a.trip": "from a.round import name",
    }
    files = [
        Source(path=f"{name.replace('.', '/')}.py", text=text, tree=ast.parse(text))
        for name, text in texts.items()
    ]
    assert _each_after_one_it_imports(files) == {
        "a": None,
        "a.base": "a",
        "a.more": "a.base",
        "a.top": "a.more",
        "a.round": "a",
        "a.trip": "a",
    }


def _each_after_one_it_imports(files: Sequence[Source]) -> dict[str, str | None]:
    """Name for each module the one out of whose process it starts: the import that loads most of what it needs."""
    names = {file.module for file in files}
    direct = {
        file.module: (set(_named(file.tree)) | set(_packages(file.module))) & names
        for file in files
    }
    loaded = {module: _reached(module, direct=direct) for module in direct}
    return {
        module: max(
            (other for other in direct[module] if module not in loaded[other]),
            key=lambda other: (len(loaded[other]), other),
            default=None,
        )
        for module in direct
    }


def _reached(module: str, *, direct: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        for other in direct[waiting.pop()] - seen:
            seen |= {other}
            waiting.append(other)
    return seen


def _named(node: ast.AST) -> Iterator[str]:
    """Yield what a module imports when it is loaded, and perhaps names in it that are no modules."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            names = [str(child.module), *(f"{child.module}.{alias.name}" for alias in child.names)]
        elif isinstance(child, LATER) or _is_for_the_checker(child):
            continue
        else:
            yield from _named(child)
            continue
        for name in names:
            yield from (name, *_packages(name))


def _is_for_the_checker(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _packages(module: str) -> Iterator[str]:
    """Yield the packages that are loaded before `module`."""
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _probe(
    root: Path, order: Mapping[str, str | None], *, cwd: Path, env: Mapping[str, str]
) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-P", str(PROBE), str(root)],
        input=json.dumps(order), cwd=cwd, env=env, capture_output=True, text=True, check=True, timeout=560,
    )  # fmt: skip
    return json.loads(done.stdout)
