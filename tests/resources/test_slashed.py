"""Only words that begin with a slash and a name mean a command."""

import pytest

from agent_core.resources.offers import SlashInvocation, slashed


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("/fix", "fix", ""),
        ("/fix  this  now \n", "fix", "this  now"),
        ("/skill:pdf-forms a\nb", "skill:pdf-forms", "a\nb"),
        ("/fix\nthis", "fix", "this"),
        ("/usr/bin/env is missing", "usr/bin/env", "is missing"),
    ],
)
def test_a_name_and_what_follows(text: str, name: str, arguments: str) -> None:
    assert slashed(text) == SlashInvocation(name=name, arguments=arguments)


@pytest.mark.parametrize("text", ["", "/", "/ fix", "fix", " /fix", "//", "/\n"])
def test_other_words_are_words(text: str) -> None:
    assert slashed(text) in {None, SlashInvocation(name="/", arguments="")}
