"""Of two extensions with one name for something, the setting says which wins, and the other is told."""

import pytest

from agent_core.extensions.registry import Flag, OwnCommand, Registrations, Shortcut, offers_of
from tests.support.workspace.tools import echo


def registered(extension: str, *names: str) -> Registrations:
    made = Registrations(extension=extension)
    for name in names:
        made.tools[name] = echo(name)
        made.flags[name] = Flag(
            name=name, extension=extension, description="", kind="boolean", default=None
        )
        made.commands[name] = OwnCommand(
            name=name, extension=extension, description="", argument_hint="", run=lambda *_: None
        )
    return made


def test_without_conflicts_all_is_there_and_nothing_is_told() -> None:
    offers = offers_of([registered("a", "x"), registered("b", "y")], conflicts="last")
    assert (list(offers.tools), list(offers.flags), list(offers.commands)) == (["x", "y"],) * 3
    assert offers.problems == []


@pytest.mark.parametrize(
    ("conflicts", "winner", "outcome"),
    [
        pytest.param("last", "b", "that of b is used", id="last"),
        pytest.param("first", "a", "that of b is not used", id="first"),
    ],
)
def test_one_wins(conflicts, winner: str, outcome: str) -> None:
    offers = offers_of([registered("a", "x"), registered("b", "x")], conflicts=conflicts)
    assert offers.flags["x"].extension == winner
    told = [str(problem) for problem in offers.problems]
    assert f"two extensions have a flag 'x'; {outcome}" in told
    assert f"two extensions have a tool 'x'; {outcome}" in told


def test_where_the_last_wins_a_command_is_its() -> None:
    offers = offers_of([registered("a", "x"), registered("b", "x")], conflicts="last")
    assert {name: one.extension for name, one in offers.commands.items()} == {"x": "b"}


def test_where_the_first_wins_later_commands_can_still_be_called() -> None:
    three = [registered(name, "x") for name in "abc"]
    offers = offers_of(three, conflicts="first")
    assert {name: one.extension for name, one in offers.commands.items()} == {
        "x": "a",
        "x:2": "b",
        "x:3": "c",
    }


def test_a_reserved_key_is_not_offered_and_its_extension_is_told() -> None:
    made = Registrations(extension="a")
    for key in ("ctrl+c", "ctrl+t"):
        made.shortcuts[key] = Shortcut(key=key, extension="a", description="", run=lambda _: None)
    offers = offers_of([made], conflicts="last")
    assert list(offers.shortcuts) == ["ctrl+t"]
    (problem,) = map(str, offers.problems)
    assert problem == (
        "the key 'ctrl+c' of extension a is reserved for the terminal and the clients, so it is not used; "
        "choose another one"
    )
