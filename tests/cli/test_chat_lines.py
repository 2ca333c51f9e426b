"""What a line of a conversation means."""

import pytest

from agent_core.resources.offers import SlashInvocation
from tiller_server.cli.chat.loop import (
    ChatLine,
    ChatPrompt,
    Shell,
    UnknownChatCommand,
    meaning,
)

OURS, THEIRS = ("model", "quit", "resume"), ("review", "skill:pdf")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", None),
        ("   ", None),
        ("!", None),
        ("!!  ", None),
        ("Hello there", ChatPrompt(text="Hello there")),
        ("  /model is a word here", ChatPrompt(text=" /model is a word here")),
        ("/model", SlashInvocation(name="model", arguments="")),
        ("/model  a/b ", SlashInvocation(name="model", arguments="a/b")),
        ("/review the tests", ChatPrompt(text="/review the tests")),
        ("/skill:pdf x", ChatPrompt(text="/skill:pdf x")),
        ("/modle", UnknownChatCommand(name="modle", nearest="model")),
        ("/xyzzy now", UnknownChatCommand(name="xyzzy", nearest=None)),
        ("/etc/hosts is wrong", ChatPrompt(text="/etc/hosts is wrong")),
        ("/ alone", ChatPrompt(text="/ alone")),
        ("!ls -l", Shell(command="ls -l", exclude_from_context=False)),
        ("!! ls ", Shell(command="ls", exclude_from_context=True)),
        (" !ls", ChatPrompt(text="!ls")),
    ],
)
def test_a_line_means_words_a_command_or_a_command_for_the_shell(
    line: str, meant: ChatLine | None
) -> None:
    assert meaning(line, ours=OURS, theirs=THEIRS) == meant
