"""A word that starts something else is known in every spelling."""

import pytest

from agent_core.workspace.permissions.shell import WRAPPERS, is_wrapper

NAMED_IN_RULES = [".", "source", "eval", "exec", "alias", "trap", "coproc", "time", "command", "builtin", "env", "sudo", "doas", "xargs", "nohup", "timeout", "nice", "setsid", "bash", "sh", "zsh", "python", "node", "perl", "ruby", "awk"]  # fmt: skip


@pytest.mark.parametrize("word", NAMED_IN_RULES)
def test_a_word_that_runs_others_is_on_the_list(word: str) -> None:
    assert word in WRAPPERS


@pytest.mark.parametrize(
    "word",
    ["/usr/bin/env", "Python3.11", "python3", "bash-5.2", "PERL5.36", "cmd.exe", "ld-linux-x86-64.so.2",
     "/lib/ld.so.1", "/lib/ld-musl-x86_64.so.1", "lua5.4", "../bin/sh", "php8"],
)  # fmt: skip
def test_a_wrapper_is_known_by_path_version_and_letter_case(word: str) -> None:
    assert is_wrapper(word)


@pytest.mark.parametrize(
    "word",
    ["git", "ls", "pytest", "npm", "make", "cargo", "go", "rg", "ldconfig", "shfmt", "", "3"],
)
def test_other_programs_are_no_wrappers(word: str) -> None:
    assert not is_wrapper(word)
