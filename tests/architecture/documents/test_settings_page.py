"""The page of settings has each of them as the schema describes it."""

from tests.architecture.documents.settings_page import PAGE, page


def test_the_page_has_every_setting() -> None:
    command = "run: python -m tests.architecture.documents.settings_page"
    assert PAGE.read_text(encoding="utf-8") == page(), command
