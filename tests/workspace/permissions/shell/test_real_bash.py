"""What is read as plain is what a real bash runs, word for word."""

import itertools
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.workspace.permissions.shell import PlainCommandLine, read_command
from tests.support.harness.sizes import at_size
from tests.support.workspace.shell_lines import PROGRAMS, LineMaker
from tests.workspace.permissions.shell.real_bash import Argv, calls_in_bash

ACCEPTED = at_size(ci=200, campaign=2000)
SEED = 20
# Programs of a pipeline start side by side; one in quotes or a comment only costs the look at the order.
PIPE = re.compile(r"(?<!\|)\|(?!\|)")
# In a group behind such a join, or behind `!`, a command may have its turn with neither of the two endings.
MAY_BE_PASSED = re.compile(r"!\s|[({].*(&&|\|\|)|(&&|\|\|).*[({]", re.DOTALL)

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("bash") is None, reason="no bash"),
]


def test_accepted_lines_run_exactly_the_words_that_were_read(tmp_path: Path) -> None:
    chosen = list(itertools.islice(_accepted(), ACCEPTED))
    ran = calls_in_bash([line for line, _ in chosen], programs=PROGRAMS, folder=tmp_path)
    unsound = [
        (line, plain.commands, calls)
        for (line, plain), calls in zip(chosen, ran, strict=True)
        if not _is_the_same(line, plain.commands, calls)
    ]
    assert unsound == []
    assert len(chosen) == ACCEPTED


def _accepted() -> Iterator[tuple[str, PlainCommandLine]]:
    """Give lines that are plain, and of which every program leaves a trace."""
    silent = _own_words_of_bash()
    for line in LineMaker(seed=SEED).lines():
        plain = read_command(line)
        if isinstance(plain, PlainCommandLine) and not any(
            "/" in argv[0] or argv[0] in silent for argv in plain.commands
        ):
            yield line, plain


def _own_words_of_bash() -> frozenset[str]:
    told = subprocess.run(
        ["bash", "-c", "compgen -b"], check=True, capture_output=True, text=True
    ).stdout
    return frozenset(told.split())


def _is_the_same(line: str, read: tuple[Argv, ...], runs: list[list[Argv]]) -> bool:
    """Compare: nothing ran that was not read, everything that was read ran with one ending or the other."""
    if any(Counter(calls) - Counter(read) for calls in runs):
        return False
    if not MAY_BE_PASSED.search(line) and set(itertools.chain.from_iterable(runs)) != set(read):
        return False
    return bool(PIPE.search(line)) or all(_in_order(calls, read) for calls in runs)


def _in_order(calls: list[Argv], read: tuple[Argv, ...]) -> bool:
    rest = iter(read)
    return all(argv in rest for argv in calls)
