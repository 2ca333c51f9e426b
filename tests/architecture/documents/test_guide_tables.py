"""The tables of the guide are those of the code, and the page of symptoms quotes messages that exist."""

import re

from tests.architecture.documents.guide_tables import (
    COMMANDS_PAGE,
    MODES_PAGE,
    commands_page,
    modes_page,
)
from tests.support.harness.shared import ROOT

COMMAND = "run: python -m tests.architecture.documents.guide_tables"
QUOTED = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def test_the_page_of_commands_has_every_argument() -> None:
    assert COMMANDS_PAGE.read_text(encoding="utf-8") == commands_page(), COMMAND


def test_the_table_of_modes_is_that_of_the_policy() -> None:
    assert MODES_PAGE.read_text(encoding="utf-8") == modes_page(), COMMAND


def test_every_quoted_message_exists() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    messages = (ROOT / "tests/data/messages.txt").read_text(encoding="utf-8").splitlines()
    quoted = QUOTED.findall(page)
    assert len(quoted) > 15
    assert [text for text in quoted if f"  {text}" not in messages] == []
