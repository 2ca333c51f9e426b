"""A small task of an evaluation, to be changed by tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEST = "tests.test_sums.SumsTest."
BROKEN = "def add(a, b):\n    return a - b\n"
TESTS = """import unittest

import sums


class SumsTest(unittest.TestCase):
    def test_zero(self):
        self.assertEqual(sums.add(0, 0), 0)

    def test_add(self):
        self.assertEqual(sums.add(2, 3), 5)
"""
PATCH = """--- a/sums.py
+++ b/sums.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
FIELDS: Mapping[str, Any] = {
    "instance_id": "sums",
    "kind": "repair",
    "problem_statement": "`sums.add` subtracts. Please repair it.",
    "FAIL_TO_PASS": [TEST + "test_add"],
    "PASS_TO_PASS": [TEST + "test_zero"],
    "test_command": ["python3", "-B", "-m", "unittest", "-q", "{tests}"],
    "limits": {"paths": ["sums.py"]},
}


def write_task(
    suite: Path, *, patch: str = PATCH, code: str = BROKEN, tests: str = TESTS, **fields: Any
) -> Path:
    """Write the task into a suite, with other fields, and return its folder; a field that is None is left out."""
    merged = {**FIELDS, **fields}
    folder = suite / str(merged["instance_id"])
    files = {
        "repo/sums.py": code,
        "tests/__init__.py": "",
        "tests/test_sums.py": tests,
        "solution.patch": patch,
        "task.json": json.dumps({name: one for name, one in merged.items() if one is not None}),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
