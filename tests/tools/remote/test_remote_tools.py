"""The tests of the seven tools on files, once more in workspaces behind SSH and in a container."""

import inspect
from collections.abc import Mapping
from types import ModuleType

import tests.tools.builtin.edit.test_edit
import tests.tools.builtin.edit.test_edit_shapes
import tests.tools.builtin.read.test_read
import tests.tools.builtin.read.test_read_notebook
import tests.tools.builtin.search.test_find
import tests.tools.builtin.search.test_grep
import tests.tools.builtin.search.test_ls
import tests.tools.builtin.test_bash
import tests.tools.builtin.test_write

MODULES: Mapping[str, ModuleType] = {
    "bash": tests.tools.builtin.test_bash,
    "edit": tests.tools.builtin.edit.test_edit,
    "edit_shapes": tests.tools.builtin.edit.test_edit_shapes,
    "find": tests.tools.builtin.search.test_find,
    "grep": tests.tools.builtin.search.test_grep,
    "ls": tests.tools.builtin.search.test_ls,
    "notebook": tests.tools.builtin.read.test_read_notebook,
    "read": tests.tools.builtin.read.test_read,
    "write": tests.tools.builtin.test_write,
}
FIXTURES = frozenset({"bench", "tmp_path"})
OF_ANYIO = ("anyio_backend",)
"""Its plugin marks each coroutine that it has collected before."""
OF_THIS_MACHINE: Mapping[str, str] = {
    "test_bash_a_missing_folder_is_named": "the message names the other side",
    "test_bash_a_missing_shell_is_named": "the message names the other side",
    "test_edit_ten_megabytes_are_edited_in_five_seconds": "a limit for the disk of this machine",
    "test_edit_shapes_ten_thousand_matches_are_counted_and_more_are_not": "a limit for the disk of this machine",
    "test_grep_a_line_in_another_encoding_is_read_as_well_as_can_be": "an answer of ripgrep",
    "test_grep_a_glob_that_is_none_is_explained": "an answer of ripgrep",
}
"""Tests that look at this machine alone, and why."""


def _usable(function: object) -> bool:
    """Return whether a test needs nothing but a bench and its own parameters."""
    if not inspect.iscoroutinefunction(function):
        return False
    marks = getattr(function, "pytestmark", [])
    if any(mark.name == "usefixtures" and mark.args != OF_ANYIO for mark in marks):
        return False
    given = {
        name
        for mark in marks
        if mark.name == "parametrize"
        for name in (mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0])
    }
    parameters = set(inspect.signature(function).parameters)
    return "bench" in parameters and parameters <= FIXTURES | {name.strip() for name in given}


for _tool, _module in MODULES.items():
    for _name, _function in tuple(vars(_module).items()):
        _own = f"test_{_tool}_{_name.removeprefix('test_')}"
        if _name.startswith("test_") and _own not in OF_THIS_MACHINE and _usable(_function):
            globals()[_own] = _function


def test_all_seven_tools_are_tried() -> None:
    counts = {tool: sum(name.startswith(f"test_{tool}_") for name in globals()) for tool in MODULES}
    assert all(count >= 4 for count in counts.values()), counts
    assert sum(counts.values()) >= 112
