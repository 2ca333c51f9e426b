"""What a line of a conversation means."""

import pytest

from agent_core.resources.slash_commands import Slashed
from tiller_server.cli.chat.line_parser import Line, Shell, Unknown, Words, meaning

OURS, THEIRS = ("model", "quit", "resume"), ("review", "skill:pdf")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", None),
        ("   ", None),
        ("!", None),
        ("!!  ", None),
        ("Hello there", Words(text="Hello there")),
        ("  /model is a word here", Words(text="/model is a word here")),
        ("/model", Slashed(name="model", arguments="")),
        ("/model  a/b ", Slashed(name="model", arguments="a/b")),
        ("/review the tests", Words(text="/review the tests")),
        ("/skill:pdf x", Words(text="/skill:pdf x")),
        ("/modle", Unknown(name="modle", nearest="model")),
        ("/xyzzy now", Unknown(name="xyzzy", nearest=None)),
        ("/etc/hosts is wrong", Words(text="/etc/hosts is wrong")),
        ("/ alone", Words(text="/ alone")),
        ("!ls -l", Shell(command="ls -l", exclude_from_context=False)),
        ("!! ls ", Shell(command="ls", exclude_from_context=True)),
        (" !ls", Words(text="!ls")),
    ],
)
def test_a_line_means_words_a_command_or_a_command_for_the_shell(
    line: str, meant: Line | None
) -> None:
    assert meaning(line, ours=OURS, theirs=THEIRS) == meant
