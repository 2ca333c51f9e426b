"""Attack in steps: what the user has, what contained commands do, and what the oracle says of it."""

from tests.security.red_team.containment import Commands, Ran
from tests.security.red_team.oracle import Snapshot, breaches, snapshot
from tests.security.red_team.scripts import PAYLOADS
from tests.security.red_team.world import World


class Attack:
    """Runs the commands of an attack and asks the oracle."""

    def __init__(self, machine: World, commands: Commands) -> None:
        self.world = machine
        self.commands = commands
        self.before: Snapshot | None = None
        self.ran: list[Ran] = []

    def given(self, script: str) -> None:
        """Set up what the user has."""
        _ = self.world.as_user(f"{PAYLOADS}\n{script}")

    def run(self, script: str) -> Ran:
        """Run a contained command."""
        if self.before is None:
            self.before = snapshot(self.world)
        ran = self.commands.run(f"{self.world.names}\n{PAYLOADS}\n{script}")
        self.ran.append(ran)
        return ran

    def breaches(self) -> list[str]:
        """Return what the commands achieved."""
        assert self.before is not None
        assert all((ran.refused, ran.failed) == (None, None) for ran in self.ran), self.ran
        return breaches(self.world, self.before)
