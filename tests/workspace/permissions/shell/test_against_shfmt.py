"""Where both our reader and shfmt see plain commands in a line, they see the same ones."""

import itertools

import pytest

from agent_core.workspace.permissions.shell import PlainCommandLine, read_command
from tests.support.harness.sizes import at_size
from tests.support.workspace.shell_lines import LineMaker
from tests.workspace.permissions.shell.shfmt import commands_by_shfmt, find_shfmt

MADE = at_size(ci=300, campaign=4000)
SEED = 3
SHFMT = find_shfmt()

pytestmark = pytest.mark.skipif(
    SHFMT is None, reason="shfmt is not installed: pip install shfmt-py"
)


@pytest.mark.timeout(600)
def test_no_line_is_plain_for_both_with_different_words() -> None:
    assert SHFMT is not None
    both = ours = 0
    different: list[tuple[str, object, object]] = []
    not_plain: list[str] = []
    for line in itertools.islice(LineMaker(seed=SEED).lines(), MADE):
        read = read_command(line)
        if not isinstance(read, PlainCommandLine):
            continue
        ours += 1
        theirs = commands_by_shfmt(line, shfmt=SHFMT)
        if theirs is None:
            not_plain.append(line)
            continue
        both += 1
        if theirs != read.commands:
            different.append((line, read.commands, theirs))
    print(f"{MADE} lines, {ours} plain for us, {both} for both")
    assert different == []
    assert not_plain == []
    assert both > MADE // 4
