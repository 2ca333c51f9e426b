"""The project that ships for the demo fails for one reason, and the embedded model finds it."""

import shutil
from pathlib import Path

from tests.support.harness.sources import SAMPLE
from tests.support.session.repairing import BARE_PYTHON, Repairer


async def test_the_sample_fails_and_is_repaired(tmp_path: Path) -> None:
    root = tmp_path / "work"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("__pycache__"))
    one = Repairer(root=root, scratch=tmp_path / "scratch", python=BARE_PYTHON)
    assert await one.ask("Please repair the tests.") == (
        "The tests pass now (4 tests). Repaired:\n"
        "- invoice/totals.py:21: `threshhold` → `threshold`"
    )
    assert [call.name for call in one.calls] == ["bash", "read", "bash", "edit", "bash"]


def test_it_holds_nothing_but_its_own_files() -> None:
    names = [
        path.relative_to(SAMPLE).as_posix()
        for path in sorted(SAMPLE.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert names == [
        "README.md",
        "invoice/__init__.py",
        "invoice/document.py",
        "invoice/items.py",
        "invoice/totals.py",
        "tests/__init__.py",
        "tests/test_invoice.py",
    ]
