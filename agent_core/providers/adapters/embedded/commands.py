"""The commands by which the embedded model learns what it must know."""

import re
import shlex
from collections.abc import Sequence

OWN_PYTHON = 'PATH="$PWD/.venv/bin:$PWD/venv/bin:$PATH"'
"""A project's own environment comes first."""

PYTEST = "python3 -B -m pytest -q --tb=native -p no:cacheprovider --continue-on-collection-errors"
# -B: a byte-code file of the same second and size as the repaired source would hide the repair.
UNITTEST = "python3 -B -m unittest"

RUN_TESTS = (
    f"{OWN_PYTHON}; pwd -P; "
    f"if python3 -c 'import pytest' 2>/dev/null; then {PYTEST}; else {UNITTEST}; fi"
)
RUN_TESTS_IN_FOLDER = f"{OWN_PYTHON}; pwd -P; {UNITTEST} discover -s tests"
"""For unittest a `tests` folder that is no package must be named."""
TEST_COMMANDS = frozenset({RUN_TESTS, RUN_TESTS_IN_FOLDER})

ASKING = """
import io, runpy, sys, traceback
plain, said = traceback.TracebackException.__init__, {}
def asked(self, kind, error, *rest, **options):
    plain(self, kind, error, *rest, **options)
    if isinstance(error, (AttributeError, NameError)):
        kept, sys.stderr = sys.stderr, io.StringIO()
        try:
            sys.__excepthook__(kind, error, None)
            words = sys.stderr.getvalue().strip()
        finally:
            sys.stderr = kept
        said[words.splitlines()[-1]] = True
traceback.TracebackException.__init__ = asked
try:
    import pytest
    sys.argv = ["pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
except ImportError:
    sys.argv[0] = "unittest"
try:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
finally:
    print(*said, sep="\\n")
"""
ASKING_MARK = "sys.__excepthook__"
"""Text that marks such a command."""
# Before 3.12 only the interpreter's own top level adds «Did you mean», not the traceback module that test
# runners print with.


def ask_python(test_command: str) -> str:
    """Run the tests again so that the interpreter adds its suggestions, one line each at the end."""
    arguments = " discover -s tests" if test_command == RUN_TESTS_IN_FOLDER else ""
    return f"{OWN_PYTHON}; python3 -B -c {shlex.quote(ASKING.strip())}{arguments}"


def try_names(module: str, names: Sequence[str]) -> str:
    """Import a module and look up names in it: fails, with the interpreter's suggestion, when one is missing."""
    looked_up = "".join(f"; m.{name}" for name in names)
    return f"{OWN_PYTHON}; python3 -B -c {shlex.quote(f'import {module} as m{looked_up}')}"


def find_identifiers(names: Sequence[str]) -> str:
    """List the lines of the project's Python files that hold any of these words."""
    pattern = "|".join(re.escape(name) for name in names)
    return f"grep -rnwE --include='*.py' --exclude-dir='.?*' --exclude-dir=venv -e {shlex.quote(pattern)} ."


LIST_MODULES = (
    "find . -name '.?*' -prune -o -name venv -prune -o -name '*.py' -print | sort | head -n 5000"
)
