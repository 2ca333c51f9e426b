"""The answers that a person can choose from, and that what they leave behind answers the next time."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy import (
    Allow,
    Ask,
    Option,
    PolicyContext,
    Rule,
    Subject,
    decide,
)
from agent_core.workspace.permissions.policy.rules.proposals import prefix_of
from tests.workspace.permissions.policy.world import World, command_rule, other, verdict

LASTING = ["allowOnce", "allowRun", "allowSession", "allowProject", "rejectOnce", "rejectAlways"]


def ask(subject: Subject, situation: PolicyContext) -> Ask:
    found = decide(subject, situation)
    assert isinstance(found, Ask), found
    return found


def labels(subject: Subject, situation: PolicyContext) -> list[str]:
    return [option.label for option in ask(subject, situation).options]


def test_a_command_can_be_allowed_by_its_beginning(world: World) -> None:
    options = ask(world.command("npm test -- a"), world.situation()).options
    allow = world.allow("npm", "test", scope="project")
    deny = command_rule("deny", "npm", "test", scope="project")
    assert options == (
        Option(id="allowOnce", kind="allowOnce", label="Allow once"),
        Option(id="allowRun", kind="allowRun", label="Allow 'npm test ...' for this run", rule=replace(allow, scope="run")),
        Option(
            id="allowSession", kind="allowSession", label="Allow 'npm test ...' for this session",
            rule=replace(allow, scope="session"),
        ),
        Option(id="allowProject", kind="allowProject", label="Allow 'npm test ...' for this project", rule=allow),
        Option(id="rejectOnce", kind="rejectOnce", label="Reject"),
        Option(
            id="rejectAlways", kind="rejectAlways", label="Always reject 'npm test ...' in this project", rule=deny
        ),
    )  # fmt: skip


def test_the_network_of_contained_commands_is_one_answer(world: World) -> None:
    situation = world.situation(containment="full")
    options = ask(world.command("npm install", "network"), situation).options
    assert [option.label for option in options] == [
        "Allow once",
        "Allow network for this run",
        "Allow network for this session",
        "Allow network for this project",
        "Reject",
        "Always reject 'npm install ...' with network in this project",
    ]
    rule = options[3].rule
    assert rule is not None
    assert rule == command_rule("allow", host="*", scope="project")
    after = replace(situation, rules=situation.rules.with_rule(rule))
    assert isinstance(decide(world.command("curl $x > y", "network"), after), Allow)
    assert options[5].rule == command_rule("deny", "npm", "install", host="*", scope="project")


def test_a_file_and_a_tool_can_be_allowed_as_they_are(world: World) -> None:
    read = ask(world.file("/etc/a[1]", "read"), world.situation()).options
    assert read[3].rule is not None
    assert (read[3].rule.tool, read[3].rule.path) == ("read", "/etc/a[[]1]")
    assert read[3].label == "Allow to read /etc/a[[]1] for this project"
    fetch = ask(other("fetch", host="a.org"), world.situation()).options
    assert fetch[3].label == "Allow fetch a.org for this project"
    mcp = ask(other("m", mcp="s/t"), world.situation()).options
    assert mcp[3].label == "Allow m s/t for this project"
    assert [option.id for option in mcp] == LASTING
    for options in (read, fetch, mcp):
        assert [o.rule.verdict for o in options if o.rule] == ["allow", "allow", "allow", "deny"]


ASKED = {
    "npm test": LASTING,
    "npm test && npm test x": LASTING,
    "ls && npm test": ["allowOnce", "rejectOnce"],
    "ls $x": ["allowOnce", "rejectOnce"],
    "rm x": ["allowOnce", "rejectOnce", "rejectAlways"],
    "curl x": ["allowOnce", "rejectOnce", "rejectAlways"],
    "sudo ls": ["allowOnce", "rejectOnce", "rejectAlways"],
    "python3 x": ["allowOnce", "rejectOnce", "rejectAlways"],
    "nothere x": ["allowOnce", "rejectOnce", "rejectAlways"],
    "ls /etc": LASTING,
    "pytest /etc": ["allowOnce", "rejectOnce", "rejectAlways"],
    "git diff --output=x": ["allowOnce", "rejectOnce", "rejectAlways"],
}


@pytest.mark.parametrize("command", ASKED)
def test_a_lasting_answer_is_offered_only_where_it_would_answer(world: World, command: str) -> None:
    asked = ask(world.command(command), world.situation())
    assert [option.id for option in asked.options] == ASKED[command]


def test_git_is_offered_no_rule_where_it_may_start_something(world: World) -> None:
    asked = world.command("git status", git_starts_programs=True)
    assert [o.id for o in ask(asked, world.situation()).options] == [
        "allowOnce",
        "rejectOnce",
        "rejectAlways",
    ]


def test_the_part_of_a_line_that_has_no_rule_is_offered(world: World) -> None:
    situation = world.situation(world.allow("ls"))
    options = ask(world.command("ls && npm test"), situation).options
    rules = [o.rule for o in options if o.kind == "allowProject"]
    assert rules == [world.allow("npm", "test", scope="project")]


def test_what_is_always_asked_offers_no_lasting_yes(world: World) -> None:
    subjects: list[Subject] = [
        world.file(".envrc", protected=True),
        world.file(".env", "read", protected=True),
        world.command("npm test", "gitConfig"),
        world.command("npm test", "sockets"),
        world.command("npm test", "sockets", "network"),
    ]
    for subject in subjects:
        found = ask(subject, world.situation()).options
        assert [option.id for option in found] == ["allowOnce", "rejectOnce", "rejectAlways"]


SUBJECTS = [
    "npm test", "npm run build x", "cargo test", "pytest -q", "go vet ./...", "tool a b", "ls /etc", "make", "make all",
    "npm test; npm test", "cat 'a b'",
]  # fmt: skip


@pytest.mark.parametrize("command", SUBJECTS)
@pytest.mark.parametrize("needs", [(), ("network",)])
@pytest.mark.parametrize("containment", ["none", "full"])
def test_a_question_that_was_answered_always_is_not_asked_again(
    world: World, command: str, needs, containment
) -> None:
    situation = world.situation(containment=containment)
    subject = world.command(command, *needs)
    if isinstance(decide(subject, situation), Allow):
        return
    for option in ask(subject, situation).options:
        if option.rule is None:
            continue
        after = replace(situation, rules=situation.rules.with_rule(option.rule))
        wanted = "refuse" if option.kind == "rejectAlways" else "run"
        assert verdict(subject, after) == wanted


def test_a_rule_for_a_command_with_network_gives_both(world: World) -> None:
    options = ask(world.command("npm install", "network"), world.situation()).options
    assert options[3].rule == world.allow("npm", "install", host="*", scope="project")
    assert options[3].label == "Allow 'npm install ...' with network for this project"


@pytest.mark.parametrize(
    ("argv", "prefix"),
    [
        ("pytest -q a", "pytest"),
        ("/usr/bin/pytest -q", "/usr/bin/pytest"),
        ("npm test a", "npm test"),
        ("npm run build a", "npm run build"),
        ("npm run", "npm run"),
        ("npm", "npm"),
        ("npm --silent test", "npm --silent test"),
        ("/opt/npm test a", "/opt/npm test"),
        ("tool a b", "tool a b"),
        ("git log -1", "git log"),
    ],
)
def test_a_command_is_known_by_as_much_as_says_what_it_does(argv: str, prefix: str) -> None:
    assert prefix_of(tuple(argv.split())) == tuple(prefix.split())


def test_labels_are_short_plain_and_keep_what_they_mean(world: World) -> None:
    long = "tool " + "x" * 200
    found = labels(world.command(long), world.situation())
    assert [len(label) for label in found if label.startswith("A")] == [10, 60, 60, 60, 60]
    assert found[3].endswith("x… for this project")
    assert found[1].startswith("Allow 'tool xxx")
    just = "tool " + "x" * 26
    assert (
        labels(world.command(just), world.situation())[3] == f"Allow '{just} ...' for this project"
    )
    odd = labels(world.file("/etc/a\u202eb\n\x1b[0m", "read"), world.situation())
    assert odd[3] == "Allow to read /etc/a?b??[[]0m for this project"
    for subject in (
        world.command("npm test"),
        world.file("/x/" + "y" * 99),
        other("m", mcp="s/" + "t" * 99),
    ):
        for label in labels(subject, world.situation()):
            assert len(label) <= 60
            assert label.isprintable()


def test_a_rule_from_the_answer_names_the_program_that_would_have_run(world: World) -> None:
    rule = next(o.rule for o in ask(world.command("npm test"), world.situation()).options if o.rule)
    assert rule.program == world.program("npm")
    elsewhere = Path(world.root) / "node_modules"
    elsewhere.mkdir()
    (elsewhere / "npm").write_text("", "utf-8")
    (elsewhere / "npm").chmod(0o755)
    shadowed = world.command("npm test", path=f"{elsewhere}:{world.bin}")
    kinds = [option.kind for option in ask(shadowed, world.situation()).options]
    assert "allowProject" not in kinds
    situation = world.situation(rule)
    assert verdict(shadowed, situation) == "ask"


def test_a_rule_is_a_value(world: World) -> None:
    assert isinstance(world.allow("ls"), Rule)
