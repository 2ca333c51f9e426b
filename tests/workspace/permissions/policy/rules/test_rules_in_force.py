"""How rules change what becomes of a subject: strictest first, and never looser than the mode."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.workspace.permissions.call_permission import PolicyMode, SandboxLevel
from agent_core.workspace.permissions.policy import (
    Allow,
    Ask,
    Deny,
    FileOperation,
    Rule,
    RuleSet,
    RuleVerdict,
    ToolAccess,
    decide,
    named,
)
from tests.support.harness.sizes import at_size
from tests.workspace.permissions.policy.test_matrix import SUBJECTS
from tests.workspace.permissions.policy.world import World, command_rule, file_rule, other, verdict

OtherRule = tuple[RuleVerdict, str, str | None, str | None]
STRENGTH = {"run": 0, "ask": 1, "refuse": 2}


def test_deny_goes_before_everything_and_names_the_rule(world: World) -> None:
    deny, allow = command_rule("deny", "ls"), world.allow("ls")
    for mode, containment in ((m, c) for m in get_args(PolicyMode) for c in get_args(SandboxLevel)):
        found = decide(
            world.command("ls -l"), world.situation(allow, deny, mode=mode, containment=containment)
        )
        assert found == Deny(
            reason=f"this command is denied by the user's rule {deny.id!r}.", rule=deny
        )


def test_ask_goes_before_allow_containment_and_yolo_but_not_before_what_is_refused(
    world: World,
) -> None:
    ask, allow = command_rule("ask", "ls"), world.allow("ls")
    found = decide(
        world.command("ls"), world.situation(allow, ask, mode="yolo", containment="full")
    )
    assert isinstance(found, Ask)
    assert (found.rule, found.reason) == (ask, f"the user's rule {ask.id!r} wants to be asked")
    assert [option.kind for option in found.options] == ["allowOnce", "rejectOnce", "rejectAlways"]
    assert verdict(world.command("ls"), world.situation(ask, mode="plan")) == "refuse"


def test_an_allow_rule_runs_what_would_be_asked_and_is_named(world: World) -> None:
    rule = world.allow("npm", "test")
    for mode in ("ask", "auto"):
        found = decide(world.command("npm test -- -u"), world.situation(rule, mode=mode))
        assert found == Allow(reason=f"the user's rule {rule.id!r} allows it", rule=rule)
    for mode in ("plan", "yolo"):
        assert verdict(world.command("npm test"), world.situation(rule, mode=mode)) == (
            "refuse" if mode == "plan" else "run"
        )


def test_two_rules_that_allow_a_line_together_are_both_named(world: World) -> None:
    first, second = world.allow("ls"), world.allow("npm", "test", scope="project")
    found = decide(world.command("ls && npm test && ls"), world.situation(first, second))
    assert found == Allow(
        reason=f"the user's rule {first.id!r} and the project's rule {second.id!r} allows it",
        rule=first,
    )


@pytest.mark.parametrize(
    ("command", "rules", "found"),
    [
        # Full containment: only the network is missing.
        ("npm install", [("host",)], "run"),
        ("x=$(curl y) > z", [("host",)], "run"),
        ("npm install", [("npm install", "*")], "run"),
        ("npm install && curl x", [("npm install", "*")], "ask"),
        ("npm install", [("npm install", None)], "ask"),
        ("npm install", [("npm install", "registry.npmjs.org")], "ask"),
        ("npm install", [], "ask"),
    ],
)  # fmt: skip
def test_in_containment_a_rule_may_give_the_network(
    world: World, command: str, rules: list[tuple[str, ...]], found: str
) -> None:
    made = [
        command_rule("allow", host="*")
        if rule == ("host",)
        else world.allow(*rule[0].split(), host=rule[1])
        for rule in rules
    ]
    situation = world.situation(*made, containment="full")
    assert verdict(world.command(command, "network"), situation) == found
    assert verdict(world.command(command, "network", "gitConfig"), situation) == "ask"
    assert verdict(world.command(command, "network", "sockets"), situation) == "ask"
    assert verdict(world.command(command, "sockets"), situation) == "ask"
    assert verdict(world.command(command), situation) == "run"


@pytest.mark.parametrize("containment", ["none", "partial"])
def test_without_full_containment_a_rule_for_the_network_does_not_allow_the_command(
    world: World, containment: SandboxLevel
) -> None:
    network, npm = command_rule("allow", host="*"), world.allow("npm", "install")
    asked = world.command("npm install", "network")
    assert verdict(asked, world.situation(network, containment=containment)) == "ask"
    assert verdict(asked, world.situation(npm, containment=containment)) == "ask"
    assert verdict(asked, world.situation(npm, network, containment=containment)) == "run"
    both = world.allow("npm", "install", host="*")
    assert verdict(asked, world.situation(both, containment=containment)) == "run"
    assert verdict(world.command("npm install"), world.situation(both)) == "run"


def test_a_rule_may_deny_the_network_alone(world: World) -> None:
    for deny in (command_rule("deny", host="*"), command_rule("deny", "ls", host="*")):
        situation = world.situation(deny, mode="yolo")
        assert verdict(world.command("ls", "network"), situation) == "refuse"
        assert verdict(world.command("ls", "sockets"), situation) == "refuse"
        assert verdict(world.command("ls", "gitConfig"), situation) == "ask"
        assert verdict(world.command("ls"), situation) == "run"
    single = command_rule("deny", "ls", host="a.org")
    assert verdict(world.command("ls", "network"), world.situation(single, mode="yolo")) == "run"


@pytest.mark.parametrize("containment", get_args(SandboxLevel))
def test_no_rule_allows_a_command_in_another_folder(
    world: World, containment: SandboxLevel
) -> None:
    rules = (world.allow("ls"), command_rule("allow", host="*"), world.allow("ls", host="*"))
    situation = world.situation(*rules, containment=containment)
    assert verdict(world.command("ls", cwd=Path("/")), situation) == "ask"
    assert verdict(world.command("ls", "network", cwd=Path("/")), situation) == "ask"
    assert verdict(world.command("ls", "network", cwd=world.root / "src"), situation) == "run"


@pytest.mark.parametrize(
    ("rule", "tool", "path", "found"),
    [
        (("deny", "edit", "src/**"), "edit", "src/a/b.py", "refuse"),
        (("deny", "write", "src/**"), "edit", "src/a", "refuse"),
        (("deny", "edit", "src/**"), "delete", "src/a", "refuse"),
        (("deny", "delete", "src/**"), "edit", "src/a", "refuse"),
        (("deny", "edit", "src"), "edit", "src/a/b", "refuse"),
        (("deny", "edit", "SRC/**"), "edit", "src/a", "refuse"),
        (("deny", "edit", "cafe\u0301"), "edit", "caf\u00e9", "refuse"),
        (("deny", "edit", None), "edit", "a", "refuse"),
        (("deny", "*", None), "read", "a", "refuse"),
        (("deny", "*", "*.pem"), "read", "x/y.pem", "refuse"),
        (("deny", "read", "*.pem"), "read", "x/y.pem", "refuse"),
        (("deny", "grep", "*.pem"), "read", "x/y.pem", "refuse"),
        (("deny", "read", "*.pem"), "edit", "x/y.pem", "run"),
        (("deny", "edit", "*.pem"), "read", "x/y.pem", "run"),
        (("deny", "edit", "src/*"), "edit", "lib/a", "run"),
        (("deny", "bash", None), "edit", "a", "run"),
        (("deny", "mine", None), "edit", "a", "run"),
        (("ask", "edit", "src/**"), "edit", "src/a", "ask"),
        (("ask", "read", "a"), "read", "a", "ask"),
        (("allow", "read", "/usr/include/**"), "read", "/usr/include/a/b.h", "run"),
        (("allow", "read", "/usr/include/*"), "read", "/usr/include/a/b.h", "ask"),
        (("allow", "read", "/usr/include"), "read", "/usr/include/a.h", "ask"),
        (("allow", "read", "/USR/include/**"), "read", "/usr/include/a.h", "ask"),
        (("allow", "read", "**"), "read", "/usr/include/a.h", "ask"),
        (("allow", "read", None), "read", "/usr/a", "ask"),
        (("allow", "*", "/usr/**"), "read", "/usr/a", "ask"),
        (("allow", "read", "/usr/**"), "edit", "/usr/a", "ask"),
        (("allow", "edit", "/usr/**"), "edit", "/usr/a", "run"),
        (("allow", "write", "/usr/**"), "edit", "/usr/a", "run"),
        (("allow", "edit", "/usr/**"), "delete", "/usr/a", "ask"),
        (("allow", "delete", "/usr/**"), "delete", "/usr/a", "run"),
        (("allow", "delete", "/usr/**"), "edit", "/usr/a", "ask"),
    ],
)  # fmt: skip
def test_rules_for_files_deny_widely_and_allow_narrowly(
    lasting: World,
    rule: tuple[RuleVerdict, str, str | None],
    tool: FileOperation,
    path: str,
    found: str,
) -> None:
    made = file_rule(*rule)
    assert verdict(lasting.file(path, tool), lasting.situation(made)) == found


def test_no_rule_allows_what_is_protected(world: World) -> None:
    rules = [
        file_rule("allow", tool, path)
        for tool in ("read", "edit", "delete")
        for path in ("**", "/**")
    ]
    for operation in ("read", "edit", "delete"):
        for mode in ("ask", "auto", "yolo"):
            asked = world.file(".envrc", operation, protected=True)
            assert verdict(asked, world.situation(*rules, mode=mode)) == "ask"


@pytest.mark.parametrize(
    ("rule", "asked", "found"),
    [
        (("allow", "mine", None, None), other("mine"), "run"),
        (("allow", "mine", None, None), other("theirs"), "ask"),
        (("allow", "*", None, None), other("mine"), "ask"),
        (("allow", "mine", None, None), other("mine", host="a.org"), "ask"),
        (("allow", "mine", None, None), other("mine", mcp="s/t"), "ask"),
        (("allow", "mine", "a.org", None), other("mine"), "ask"),
        (("allow", "mine", None, "s/t"), other("mine"), "ask"),
        (("allow", "fetch", "a.org", None), other("fetch", host="a.org"), "run"),
        (("allow", "fetch", "a.org", None), other("fetch", host="b.org"), "ask"),
        (("allow", "fetch", "a.org", None), other("fetch", host="A.org."), "run"),
        (("allow", "fetch", "*", None), other("fetch", host="b.org"), "run"),
        (("allow", "fetch", "*", None), other("fetch", host="b.org\0.a.org"), "ask"),
        (("allow", "m", None, "s/t"), other("m", mcp="s/t"), "run"),
        (("allow", "m", None, "s/t"), other("m", mcp="S/t"), "ask"),
        (("allow", "m", None, "s/*"), other("m", mcp="s/u"), "run"),
        (("allow", "m", None, "s/*"), other("m", mcp="st/u"), "ask"),
        (("allow", "m", "a.org", "s/*"), other("m", mcp="s/u", host="a.org"), "run"),
        (("allow", "m", "a.org", "s/*"), other("m", mcp="x/u", host="a.org"), "ask"),
        (("deny", "*", None, None), other("mine"), "refuse"),
        (("deny", "mine", None, None), other("mine", host="a.org", mcp="s/t"), "refuse"),
        (("deny", "mine", None, None), other("theirs"), "run"),
        (("deny", "*", "a.org", None), other("fetch", host="A.ORG"), "refuse"),
        (("deny", "*", "a.org", None), other("fetch", host="b.org"), "run"),
        (("deny", "*", "a.org", None), other("fetch", host="b.org\0"), "refuse"),
        (("deny", "*", "a.org", None), other("mine"), "run"),
        (("deny", "*", None, "s/*"), other("m", mcp="S/t"), "refuse"),
        (("deny", "*", None, "s/t"), other("m", mcp="s/u"), "run"),
        (("deny", "*", None, "s/t"), other("mine"), "run"),
        (("ask", "mine", None, None), other("mine"), "ask"),
        (("ask", "look", None, None), other("look", "read"), "ask"),
    ],
)  # fmt: skip
def test_rules_for_other_tools_name_all_that_a_call_names(
    lasting: World, rule: OtherRule, asked: ToolAccess, found: str
) -> None:
    said, tool, host, mcp = rule
    made = named(Rule(id="", tool=tool, verdict=said, scope="user", host=host, mcp=mcp))
    mode: PolicyMode = "ask" if said == "allow" else "yolo"
    assert verdict(asked, lasting.situation(made, mode=mode)) == found


def test_a_rule_for_files_is_not_about_commands_and_the_other_way_round(world: World) -> None:
    about_files = replace(file_rule("deny", "*", "**"))
    assert verdict(world.command("ls"), world.situation(about_files, mode="yolo")) == "run"
    assert verdict(other("mine"), world.situation(about_files, mode="yolo")) == "run"
    about_commands = replace(command_rule("deny", "ls"), tool="*")
    assert verdict(world.command("ls"), world.situation(about_commands, mode="yolo")) == "refuse"
    assert verdict(world.file("ls"), world.situation(about_commands)) == "run"
    assert verdict(other("mine"), world.situation(about_commands, mode="yolo")) == "run"
    about_hosts = named(Rule(id="", tool="*", verdict="deny", scope="user", host="*"))
    assert verdict(world.file("a"), world.situation(about_hosts)) == "run"
    assert (
        verdict(world.command("ls", "network"), world.situation(about_hosts, mode="yolo"))
        == "refuse"
    )
    about_servers = named(Rule(id="", tool="*", verdict="deny", scope="user", mcp="s/*"))
    assert verdict(world.command("ls"), world.situation(about_servers, mode="yolo")) == "run"
    assert verdict(world.file("a"), world.situation(about_servers)) == "run"
    for tool in ("edit", "mine"):
        elsewhere = replace(command_rule("deny", "ls"), tool=tool)
        assert verdict(world.command("ls"), world.situation(elsewhere, mode="yolo")) == "run"
    outside = file_rule("allow", "read", "/etc/**")
    for odd in (
        replace(outside, mcp="s/t"),
        replace(outside, host="*"),
        replace(outside, argv_prefix=("ls",)),
    ):
        assert verdict(world.file("/etc/a", "read"), world.situation(odd)) == "ask"
    mixed = replace(world.allow("ls"), path="**")
    assert verdict(world.command("ls"), world.situation(mixed)) == "ask"
    assert (
        verdict(world.command("ls"), world.situation(replace(world.allow("ls"), mcp="s/t")))
        == "ask"
    )
    assert (
        verdict(world.command("ls"), world.situation(replace(world.allow("ls"), tool="mine")))
        == "ask"
    )


WORDS = st.sampled_from(["ls", "git", "npm", "test", "status", "-f", "rm"])
RULES = st.builds(
    Rule,
    id=st.sampled_from("abc"),
    tool=st.sampled_from(["bash", "read", "edit", "delete", "mine", "look", "fetch", "mcp", "*"]),
    verdict=st.just("allow"),
    scope=st.just("user"),
    argv_prefix=st.one_of(st.just(()), st.lists(WORDS, min_size=1, max_size=2).map(tuple)),
    path=st.sampled_from([None, None, "**", "/**", "a", ".git/*", "/etc/*"]),
    host=st.sampled_from([None, None, "*", "example.org"]),
    mcp=st.sampled_from([None, None, "s/t", "s/*"]),
)
SITUATIONS = st.tuples(
    st.sampled_from(get_args(PolicyMode)), st.booleans(), st.sampled_from(get_args(SandboxLevel))
)


@settings(max_examples=at_size(ci=50, campaign=5000), deadline=None)
@given(
    name=st.sampled_from(sorted(SUBJECTS)),
    rules=st.lists(RULES, max_size=4),
    extra=st.builds(replace, RULES, id=st.just("x"), verdict=st.sampled_from(["deny", "ask"])),
    at=SITUATIONS,
)
def test_a_rule_more_that_denies_or_asks_never_loosens(
    lasting: World, name: str, rules: list[Rule], extra: Rule, at
) -> None:
    mode, trusted, containment = at
    pinned = [_pinned(rule, lasting) for rule in rules]
    before = lasting.situation(*pinned, mode=mode, trusted=trusted, containment=containment)
    after = replace(before, rules=before.rules.with_rule(extra))
    subject = SUBJECTS[name](lasting)
    assert STRENGTH[verdict(subject, after)] >= STRENGTH[verdict(subject, before)]


@settings(max_examples=at_size(ci=50, campaign=5000), deadline=None)
@given(name=st.sampled_from(sorted(SUBJECTS)), rules=st.lists(RULES, max_size=6), at=SITUATIONS)
def test_no_number_of_allow_rules_runs_what_is_refused_or_protected(
    lasting: World, name: str, rules: list[Rule], at
) -> None:
    mode, trusted, containment = at
    bare = lasting.situation(mode=mode, trusted=trusted, containment=containment)
    subject = SUBJECTS[name](lasting)
    before = verdict(subject, bare)
    pinned = tuple(_pinned(rule, lasting) for rule in rules)
    after = verdict(subject, replace(bare, rules=RuleSet(rules=pinned)))
    if before == "refuse" or "protected" in name or "secret" in name or "configuration" in name:
        assert after == before


def _pinned(rule: Rule, world: World) -> Rule:
    return replace(rule, program=world.program(rule.argv_prefix[0])) if rule.argv_prefix else rule


def test_a_set_of_rules_is_changed_by_making_another() -> None:
    one, two = command_rule("allow", "ls"), command_rule("deny", "rm")
    both = RuleSet(rules=(one,)).with_rule(two)
    assert both.rules == (one, two)
    assert both.with_rule(one).rules == (two, one)
    assert both.with_rule(replace(one, scope="run")).rules == (one, two, replace(one, scope="run"))
    assert both.with_rule(replace(one, scope="run")).without_scope("run") == both
    assert both.without(one.id).rules == (two,)
    assert both.without("unknown") == both
    assert (list(both.of("deny")), list(both.of("allow")), list(both.of("ask"))) == (
        [two],
        [one],
        [],
    )


def test_the_id_of_a_rule_follows_from_what_it_says() -> None:
    rule = command_rule("allow", "ls", program="/bin/ls")
    assert named(replace(rule, id="", scope="run", match=("ls",))).id == rule.id
    others = [
        command_rule("deny", "ls", program="/bin/ls"), command_rule("allow", "lt", program="/bin/ls"),
        command_rule("allow", "ls", program="/x"), command_rule("allow", "ls", program="/bin/ls", host="*"),
        named(replace(rule, tool="x")), named(replace(rule, path="x")), named(replace(rule, mcp="x")),
    ]  # fmt: skip
    assert len({rule.id, *(one.id for one in others)}) == len(others) + 1
    assert rule.id.startswith("allow-")
    assert len(rule.id) == len("allow-") + 12
