"""What extensions show stands until they take it off, and is bounded."""

from agent_core.events import UiNotify, UiStatus, UiWidget
from agent_core.session.snapshot import MOST_VIEWS, ExtensionViewState


def status(key: str, text: str | None, extension: str = "e") -> UiStatus:
    return UiStatus(extension=extension, view={"key": key, "text": text})


def seen(*events: UiStatus | UiWidget | UiNotify) -> ExtensionViewState:
    views = ExtensionViewState()
    for event in events:
        views.apply(event)
    return views


def test_the_last_words_under_a_key_stand() -> None:
    widget = UiWidget(extension="e", view={"key": "a", "view": {"kind": "text", "text": "x"}})
    views = seen(status("a", "one"), widget, status("a", "two"))
    assert views.all == (widget, status("a", "two"))


def test_nothing_under_a_key_takes_it_off_and_what_is_read_once_never_stands() -> None:
    told = UiNotify(extension="e", view={"text": "x", "level": "info"})
    assert seen(status("a", "one"), told, status("a", None)).all == ()


def test_an_extension_that_is_gone_takes_off_its_own() -> None:
    widget = UiWidget(
        extension="e",
        view={"key": "w", "view": {"kind": "text", "text": "x"}, "placement": "aboveEditor"},
    )
    views = seen(status("a", "one"), status("b", "two", "other"), widget)
    off = views.taken_off("e")
    assert off == (
        status("a", None),
        UiWidget(extension="e", view={"key": "w", "view": None, "placement": "aboveEditor"}),
    )
    for event in off:
        views.apply(event)
    assert views.all == (status("b", "two", "other"),)


def test_of_a_flood_of_keys_the_last_ones_stand() -> None:
    views = seen(*(status(str(number), "x") for number in range(MOST_VIEWS + 5)))
    assert len(views.all) == MOST_VIEWS
    assert views.all[0] == status("5", "x")
