"""Importing a module does nothing: a stdio server that prints on import has already lost its client."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.support.shared import ROOT
from tests.support.sources import PRODUCT, sources

PROBE = ROOT / "tests" / "support" / "import_probe.py"

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
    modules = [source.module for source in sources(*PRODUCT)]
    acts = _probe(ROOT, modules, cwd=tmp_path, env=child_env)
    assert [f"{module}: {line}" for module, lines in acts.items() for line in lines] == []
    assert sorted(acts) == sorted(modules)
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_acts_on_import_is_noticed(tmp_path: Path, child_env: dict[str, str]) -> None:
    package = tmp_path / "server"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "noisy.py").write_text(NOISY, encoding="utf-8")
    (package / "broken.py").write_text("1 / 0", encoding="utf-8")
    (package / "quiet.py").write_text("LIMIT = 3", encoding="utf-8")
    acts = _probe(
        tmp_path, ["server.noisy", "server.broken", "server.quiet"], cwd=tmp_path, env=child_env
    )
    assert [line.split("(")[0].strip() for line in acts["server.noisy"]] == [
        "server.noisy read the variable 'SEEN'",
        "wrote 'made.txt'",
        "socket.__new__",
        "took the signals SIGUSR1",
        "left 1 threads",
        r"printed b'hello\n'",
    ]
    assert acts["server.broken"] == ["raised ZeroDivisionError('division by zero')"]
    assert acts["server.quiet"] == []


def _probe(
    root: Path, modules: Iterable[str], *, cwd: Path, env: Mapping[str, str]
) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-P", str(PROBE), str(root), *modules],
        cwd=cwd, env=env, capture_output=True, text=True, check=True, timeout=560,
    )  # fmt: skip
    return json.loads(done.stdout)
