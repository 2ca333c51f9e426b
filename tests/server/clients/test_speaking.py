"""A session works in the environment of whoever speaks, and of nobody who was refused."""

from pathlib import Path

import pytest

from agent_core.kernel.environment import CurrentEnvironment, EnvironmentWithout
from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.sessions.caller_environment import CallerEnvironment

ADA, BOB = {"PATH": "/ada", "KEY": "a"}, {"PATH": "/bob"}


def test_holders_see_the_exchange() -> None:
    environment = CurrentEnvironment(ADA)
    without = EnvironmentWithout(environment, hidden=lambda: {"KEY"})
    assert (dict(environment), dict(without)) == (ADA, {"PATH": "/ada"})
    assert (len(without), "KEY" in without, without.get("KEY")) == (1, False, None)
    environment.use({**BOB, "KEY": "b"})
    assert (environment["KEY"], dict(without)) == ("b", {"PATH": "/bob"})


def test_values_are_not_shown() -> None:
    environment = CurrentEnvironment(ADA)
    assert repr(environment) == "<CurrentEnvironment of 2 variables>"
    assert "/ada" not in repr(ClientEnvironment(env=ADA, cwd=Path("/w"), pid=7))


def test_who_is_refused_changes_nothing() -> None:
    environment = CallerEnvironment(ADA)
    with pytest.raises(ValueError, match="no"), environment.use_for_submission(BOB):
        raise ValueError("no")
    assert dict(environment) == ADA
    with environment.use_for_submission(BOB):
        assert environment["PATH"] == "/bob"
    assert dict(environment) == BOB


def test_words_that_wait_bring_their_environment_when_they_are_taken_up() -> None:
    environment, queue = CallerEnvironment(ADA), ["q1", "q2"]
    environment.follow(lambda: queue)
    environment.use_when_dequeued("q1", BOB)
    environment.use_when_dequeued("q2", {"PATH": "/eve"})
    assert environment["PATH"] == "/ada"
    queue.remove("q1")
    assert environment["PATH"] == "/bob"
    queue.remove("q2")
    assert environment["PATH"] == "/eve"
