"""Tools of extensions come and go, and stand in the place of others for as long as they are there."""

from agent_core.session.tools.registry import ToolRegistry
from tests.support.workspace.tools import echo

OURS = (echo("read"), echo("bash"))


def test_brought_tools_are_active_when_they_are_chosen() -> None:
    box = ToolRegistry(OURS, active=["read", "todo"], extension_tools=[echo("todo")])
    assert box.active_names == ("read", "todo")


def test_a_new_one_is_active_at_once() -> None:
    box = ToolRegistry(OURS, active=["read"])
    box.set_extension_tools([echo("todo")])
    assert box.active_names == ("read", "todo")
    assert box.all_names == ("read", "bash", "todo")


def test_one_that_goes_is_neither_known_nor_active() -> None:
    box = ToolRegistry(OURS, active=["read", "todo"], extension_tools=[echo("todo")])
    box.set_extension_tools([])
    assert (box.active_names, box.all_names) == (("read",), ("read", "bash"))


def test_one_that_was_switched_off_stays_so_when_it_is_brought_again() -> None:
    box = ToolRegistry(OURS, active=["read", "todo"], extension_tools=[echo("todo")])
    box.activate(["read"])
    box.set_extension_tools([echo("todo")])
    assert box.active_names == ("read",)


def test_one_in_the_place_of_ours_gives_it_back() -> None:
    other = echo("bash")
    box = ToolRegistry(OURS, active=["read", "bash"], extension_tools=[other])
    assert box.active()["bash"] is other
    again = echo("bash")
    box.set_extension_tools([again])
    assert box.active()["bash"] is again
    box.set_extension_tools([])
    assert box.active()["bash"] is OURS[1]
    assert box.active_names == ("read", "bash")


def test_when_the_last_active_one_goes_those_of_the_beginning_are_active() -> None:
    box = ToolRegistry(OURS, active=["read"], extension_tools=[echo("todo")])
    box.activate(["todo"])
    box.set_extension_tools([])
    assert box.active_names == ("read",)
