"""What people are told about a command: what would happen, and how that was found."""

from agent_core.workspace.permissions.policy.explanation import CommandExplanation, explain
from tests.workspace.permissions.policy.world import World, command_rule


def test_a_plain_line_is_told_command_by_command(world: World) -> None:
    rule = world.allow("ls")
    told = explain(world.command("ls && npm test"), world.situation(rule))
    assert told.verdict == "ask"
    assert told.unclear is None
    assert told.mentions == ()
    assert told.parts == (
        CommandExplanation(
            argv=("ls",), program=world.program("ls"), rule=rule.id, why_no_rule=None
        ),
        CommandExplanation(
            argv=("npm", "test"), program=world.program("npm"), rule=None, why_no_rule=None
        ),
    )
    assert told.proposal == world.allow("npm", "test", scope="project")


def test_what_no_rule_can_allow_says_why(world: World) -> None:
    def why(command: str, *, git: bool = False) -> str | None:
        asked = world.command(command, git_starts_programs=git)
        (part,) = explain(asked, world.situation()).parts
        return part.why_no_rule

    assert why("sudo ls") == "'sudo' starts or changes other commands, so no rule allows it"
    assert (
        why("git status", git=True)
        == "outside of containment git starts what the repository names, so no rule allows it"
    )
    assert (
        why("gone x")
        == "'gone' is not on the PATH outside of the workspace, so no rule can hold on to it"
    )
    assert why("ls /etc") == "a rule must name the argument '/etc' itself: it leads elsewhere"
    assert why("ls x") is None
    covered = explain(world.command("ls /etc"), world.situation(world.allow("ls", "/etc")))
    assert [part.why_no_rule for part in covered.parts] == [None]


def test_a_line_that_is_not_plain_says_why_and_what_it_mentions(world: World) -> None:
    told = explain(world.command("ls > $(rm x)"), world.situation(command_rule("deny", "rm")))
    assert told.parts == ()
    assert told.unclear
    assert told.proposal is None
    assert told.mentions


def test_the_verdict_is_the_one_that_counts(world: World) -> None:
    assert explain(world.command("ls"), world.situation(world.allow("ls"))).verdict == "run"
    assert explain(world.command("ls"), world.situation(mode="plan")).verdict == "refuse"
    assert explain(world.command(""), world.situation()).verdict == "ask"
