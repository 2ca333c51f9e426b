"""Attacks that are composed from a seed achieve nothing: number, depth, links, renames and races together."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.security.red_team.compose import Composition, compose, spread
from tests.security.red_team.containment import run_uncontained
from tests.security.red_team.oracle import breaches, snapshot, victim
from tests.security.red_team.scripts import PAYLOADS
from tests.security.red_team.world import World, world
from tests.support.harness.sizes import at_size, is_campaign

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="full containment is for Linux"),
    pytest.mark.timeout(120),
]
SEEDS = range(2_000) if is_campaign() else spread(60)
HELD = 300
"""From so many protected places on a command may be refused."""
CONTROLS = at_size(ci=12, campaign=200)
WORKS = 0.8
"""Share of the compositions that achieve something without containment; the others need the clean-up, or fail by themselves."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_composed_attack_achieves_nothing(seed: int) -> None:
    attack = compose(seed, large=is_campaign())
    with world() as machine:
        found, told = _contained(machine, attack)
    assert found == [], f"seed {seed}: {attack.title}\n{attack.script()}\n\n{told}"


def test_most_of_them_work_without_containment() -> None:
    """The control: an attack that does nothing anywhere would prove nothing."""
    idle: list[str] = []
    attacks = [one for one in map(compose, range(10 * CONTROLS)) if not one.beside]
    attacks = [one for one in attacks if one.axes["number"] == "1"][:CONTROLS]
    for attack in attacks:
        with world() as machine:
            if not _uncontained(machine, attack):
                idle.append(f"{attack.title}\n{attack.script()}")
    assert len(idle) <= (1 - WORKS) * len(attacks), "\n\n".join(idle)


def _contained(machine: World, attack: Composition) -> tuple[list[str], str]:
    """Run an attack; gives the breaches, and what the commands printed."""
    _ = machine.as_user(_whole(machine, attack.setup))
    before = snapshot(machine)
    during: list[str] = []

    def look() -> None:
        during.extend(f"while it ran: {one}" for one in victim(machine, before=before, locks=False))
        (machine.root / "go").touch()

    with ExitStack() as stack:
        commands = stack.enter_context(machine.session())
        beside = None
        if attack.beside is not None:
            other = stack.enter_context(machine.session())
            beside = (other, _whole(machine, attack.beside))
        watch: Callable[[], None] | None = look if attack.watched else None
        scripts = tuple(_whole(machine, one) for one in attack.commands)
        ran = commands.run_all(scripts, during=watch, beside=beside)
    found = [*during, *breaches(machine, before)]
    # A link to a repository cannot be held where it is.
    is_link = attack.axes["kind"] == "git_symlink" and attack.axes["act"] != "plant"
    needless = int(attack.axes["number"]) < HELD and beside is None and not is_link
    found += [f"refused: {one.refused}" for one in ran[:1] if one.refused and needless]
    found += [f"the clean-up failed: {one.failed}" for one in ran if one.failed]
    return found, "\n".join(str(one) for one in ran)


def _uncontained(machine: World, attack: Composition) -> list[str]:
    _ = machine.as_user(_whole(machine, attack.setup))
    before = snapshot(machine)
    (machine.root / "go").touch()
    for script in attack.commands:
        _ = run_uncontained(_whole(machine, script), root=machine.root, env=machine.env)
    return breaches(machine, before)


def _whole(machine: World, script: str) -> str:
    return f"{machine.names}\n{PAYLOADS}\n{script}"
