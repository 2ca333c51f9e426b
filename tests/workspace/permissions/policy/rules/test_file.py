"""What is read from a `policy.json`; whatever is wrong with one, nothing gets looser by it."""

import json
import os
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy import (
    Rule,
    RuleSet,
    RulesOrigin,
    load_rules,
    remembered_file,
)
from agent_core.workspace.permissions.policy.rules.rules_file import (
    MOST_BYTES,
    MOST_RULES,
    LoadedRulesFile,
)
from tests.workspace.permissions.policy.world import World, other, verdict


def load(world: World, content: object, *, origin: RulesOrigin = "user") -> LoadedRulesFile:
    path = world.base / "policy.json"
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(world, path, origin=origin)


def read(world: World, path: Path, *, origin: RulesOrigin = "user") -> LoadedRulesFile:
    return load_rules(
        path, origin=origin, roots=(world.root,), env_path=str(world.bin), home=Path("/home/me")
    )


def rules(*entries: object) -> dict[str, object]:
    return {"version": 1, "rules": list(entries)}


ALLOW = {"id": "a", "tool": "bash", "verdict": "allow", "argvPrefix": ["npm", "test"]}
DENY = {"id": "d", "tool": "bash", "verdict": "deny", "argvPrefix": ["git", "push"]}


def test_a_missing_or_empty_file_has_no_rules(world: World) -> None:
    assert read(world, world.base / "gone.json") == LoadedRulesFile(rules=(), problems=())
    assert read(world, world.base / "bin" / "ls" / "x") == LoadedRulesFile(rules=(), problems=())
    for content in ("", " \n", "{}", '{"version": 1}', "\ufeff{}"):
        assert load(world, content) == LoadedRulesFile(rules=(), problems=())


def test_a_rule_is_read_whole_and_an_allowed_program_is_pinned(world: World) -> None:
    whole = {
        "id": "x", "tool": "bash", "verdict": "allow", "argvPrefix": ["npm", "test"], "host": "*",
        "match": ["npm test", "npm test -- a"], "notMatch": ["npm testx", "npm test > x"], "program": "/opt/npm", "note": 1,
    }  # fmt: skip
    found = load(world, rules(whole, ALLOW, {**DENY, "id": None}))
    assert found.problems == ()
    first, second, third = found.rules
    assert first == Rule(
        id="x", tool="bash", verdict="allow", scope="user", argv_prefix=("npm", "test"), host="*",
        match=("npm test", "npm test -- a"), not_match=("npm testx", "npm test > x"), program="/opt/npm",
    )  # fmt: skip
    assert (second.id, second.program) == ("a", world.program("npm"))
    assert third.id.startswith("deny-")
    assert third.program is None
    path = (
        load(world, rules({"tool": "read", "verdict": "deny", "path": "~/.ssh/**"})).rules[0].path
    )
    assert path == "/home/me/.ssh/**"


def test_the_origin_gives_the_scope(world: World) -> None:
    assert [load(world, rules(DENY), origin=one).rules[0].scope for one in ("user", "project", "repository")] == [
        "user", "project", "project",
    ]  # fmt: skip


BROKEN = {
    "no JSON": (
        "{",
        "is not valid JSON at line 1, column 2: Expecting property name enclosed in double quotes",
    ),
    "no JSON below": (
        '{\n "rules": [}\n',
        "is not valid JSON at line 2, column 12: Expecting value",
    ),
    "a list": ("[]", "must hold a JSON object: { … }"),
    "no list": ('{"rules": {}}', 'must hold a list under "rules"'),
    "text": ('{"rules": "x"}', 'must hold a list under "rules"'),
    "another version": ('{"version": 2}', "has version 2; this Tiller knows version 1"),
    "a version that looks like one": (
        '{"version": true}',
        "has version True; this Tiller knows version 1",
    ),
    "a key twice": (
        '{"rules": [{"verdict": "deny", "verdict": "allow"}]}',
        "has the key 'verdict' twice in one object",
    ),
    "not UTF-8": (b"\xff{}", "is not UTF-8 text"),
    "NaN": ('{"x": NaN}', "holds NaN, which is not JSON"),
    "deep": ("[" * 100_000, "is nested too deeply to be read"),
    "many": (json.dumps({"rules": [0] * (MOST_RULES + 1)}), "holds 1001 rules; 1000 are the most"),
    "large": (" " * (MOST_BYTES + 1), f"is larger than {MOST_BYTES} bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("origin", ["user", "project", "repository"])
def test_while_a_file_is_broken_everything_is_asked_about(world: World, name: str, origin) -> None:
    content, words = BROKEN[name]
    found = load(world, content, origin=origin)
    path = world.base / "policy.json"
    assert [str(one) for one in found.problems] == [
        f"{path}: {words}. Until it is repaired everything is asked about"
    ]
    situation = world.situation(world.allow("ls"), *found.rules, mode="yolo", containment="full")
    for subject in (
        world.command("ls"),
        world.file("a"),
        world.file("a", "read"),
        other("look", "read"),
    ):
        assert verdict(subject, situation) == "ask"


def test_the_most_that_a_file_may_be_is_read(world: World) -> None:
    assert load(world, " " * MOST_BYTES) == LoadedRulesFile(rules=(), problems=())
    assert len(load(world, rules(*[DENY] * MOST_RULES)).rules) == MOST_RULES


def test_what_is_no_file_is_told_and_does_not_block(world: World) -> None:
    pipe = world.base / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, world.base):
        found = read(world, path)
        assert [one.text.split(".")[0] for one in found.problems] == ["is no regular file"]
        assert [rule.verdict for rule in found.rules] == ["ask"]
    loop = world.base / "loop"
    loop.symlink_to(loop)
    found = read(world, loop)
    assert "cannot be read (Too many levels of symbolic links)" in str(found.problems[0])
    assert [rule.verdict for rule in found.rules] == ["ask"]


BAD_ALLOWS = {
    "no prefix": ({"tool": "bash"}, 'it allows commands without "argvPrefix"; name which'),
    "every tool": ({"tool": "*"}, "it allows every tool; name one"),
    "one host": ({"tool": "bash", "host": "a.org"}, 'a command cannot be held to one host; write "host": "*" for any'),
    "a wrapper": (
        {"tool": "bash", "argvPrefix": ["sudo", "ls"]},
        "'sudo' starts or changes other commands, so no rule allows it",
    ),
    "no such program": (
        {"tool": "bash", "argvPrefix": ["gone"]},
        "the program 'gone' was not found on the PATH outside of the workspace",
    ),
    "a relative program": (
        {"tool": "bash", "argvPrefix": ["ls"], "program": "bin/ls"}, 'its "program" is not an absolute path',
    ),
    "files without a path": ({"tool": "edit"}, 'it allows files without a "path"; name which'),
    "reading without a path": ({"tool": "read"}, 'it allows files without a "path"; name which'),
    "a path of a command": (
        {"tool": "bash", "argvPrefix": ["ls"], "path": "x"}, "it names what its tool does not have, so it is about nothing",
    ),
    "a prefix of a file": (
        {"tool": "edit", "argvPrefix": ["ls"], "path": "x"}, "it names what its tool does not have, so it is about nothing",
    ),
    "a path of another tool": (
        {"tool": "mine", "path": "x"}, "it names what its tool does not have, so it is about nothing",
    ),
    "a wrong example": (
        {"tool": "bash", "argvPrefix": ["npm", "test"], "match": ["npm test", "npm run x"]},
        "its example 'npm run x' under \"match\" is not covered by it",
    ),
    "a wrong counter-example": (
        {"tool": "bash", "argvPrefix": ["npm", "test"], "notMatch": ["npm test -- a"]},
        "its example 'npm test -- a' under \"notMatch\" is covered by it",
    ),
    "a wrong path": ({"tool": "edit", "path": "src/**", "match": ["lib/a"]}, "its example 'lib/a' under \"match\" is not covered by it"),
    "a wrong spelling of a path": ({"tool": "edit", "path": "src/**", "match": ["SRC/a"]}, "its example 'SRC/a' under \"match\" is not covered by it"),
    "a wrong host": (
        {"tool": "fetch", "host": "a.org", "match": ["b.org"]}, "its example 'b.org' under \"match\" is not covered by it",
    ),
    "a wrong server": (
        {"tool": "m", "mcp": "s/*", "notMatch": ["s/t"]}, "its example 's/t' under \"notMatch\" is covered by it",
    ),
    "no texts": ({"tool": "bash", "argvPrefix": ["ls", 1]}, "must have texts under 'argvPrefix', the first of a command not empty"),
    "an empty word": ({"tool": "bash", "argvPrefix": [""]}, "must have texts under 'argvPrefix', the first of a command not empty"),
    "an empty prefix": ({"tool": "bash", "argvPrefix": []}, "must have texts under 'argvPrefix', the first of a command not empty"),
    "a text for a list": ({"tool": "bash", "argvPrefix": "ls"}, "must have a list of at most 100 texts under 'argvPrefix'"),
    "too many": ({"tool": "bash", "argvPrefix": ["ls"], "match": ["ls"] * 101}, "must have a list of at most 100 texts under 'match'"),
    "a long text": ({"tool": "bash", "argvPrefix": ["x" * 4097]}, "must have texts under 'argvPrefix', the first of a command not empty"),
    "a number": ({"tool": "edit", "path": 7}, "has no usable text under 'path'"),
    "an empty path": ({"tool": "edit", "path": ""}, "has no usable text under 'path'"),
    "a long path": ({"tool": "edit", "path": "x" * 4097}, "has no usable text under 'path'"),
    "a NUL": ({"tool": "edit", "path": "a\0"}, "has no usable text under 'path'"),
    "no tool": ({"path": "x"}, 'names no "tool"'),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ALLOWS)
def test_a_rule_that_allows_is_not_in_force_when_anything_is_wrong_with_it(
    world: World, name: str
) -> None:
    entry, words = BAD_ALLOWS[name]
    found = load(world, rules(ALLOW, {"id": "bad", "verdict": "allow", **entry}))
    assert [rule.id for rule in found.rules] == ["a"]
    path = world.base / "policy.json"
    assert [str(one) for one in found.problems] == [
        f"{path}: rule 'bad': {words}; it is not in force"
    ]


def test_an_unknown_key_of_the_file_or_of_a_refusal_is_told(world: World) -> None:
    refusal = {"id": "n", "tool": "bash", "verdict": "deny", "hosts": "x"}
    document = {"version": 1, "rules": [refusal], "rule": [], "_note": ""}
    found = load(world, json.dumps(document))
    assert [rule.id for rule in found.rules] == ["n"]
    assert [one.text for one in found.problems] == [
        '"rule" is no key of policy.json, so it has no effect; did you mean "rules"?',
        "has the key 'hosts', which no rule has here (did you mean 'host'?); it stays in force",
    ]


@pytest.mark.parametrize("key", ["argv_prefix", "paths", "Host", "cwd", "when", "scope", ""])
def test_a_key_that_nobody_knows_does_not_widen_what_is_allowed(world: World, key: str) -> None:
    network = {"id": "n", "tool": "bash", "verdict": "allow", "host": "*"}
    found = load(world, rules({**network, key: ["npm", "test"]}))
    assert found.rules == ()
    hint = {"Host": " (did you mean 'host'?)", "argv_prefix": " (did you mean 'argvPrefix'?)"}
    hint["paths"] = " (did you mean 'path'?)"
    words = f'which no rule has here{hint.get(key, "")}; what is only for people goes under "note"; it is not in force'
    assert [one.text for one in found.problems] == [f"has the key {key!r}, {words}"]
    stricter = load(world, rules({**DENY, key: ["npm", "test"]}))
    assert [rule.id for rule in stricter.rules] == ["d"]


def test_what_is_written_for_people_is_left_alone(world: World) -> None:
    notes = {"note": "x", "comment": [1], "reason": "", "description": {}, "why": 1, "_x": 1, "$x": 1, "// x": 1}  # fmt: skip
    origins: tuple[RulesOrigin, ...] = ("user", "project")
    for origin in origins:
        found = load(world, rules({**ALLOW, **notes, "scope": origin}), origin=origin)
        assert [rule.id for rule in found.rules] == ["a"]


BAD_DENIES = {
    "an example": ({**DENY, "match": ["git pull"]}, ["d"], "its example 'git pull' under \"match\" is not covered by it; it stays in force"),
    "a counter-example": (
        {**DENY, "notMatch": ["ls; git -C . push"]}, ["d"], "its example 'ls; git -C . push' under \"notMatch\" is covered by it; it stays in force",
    ),
    "about nothing": ({**DENY, "path": "x"}, ["d"], "it names what its tool does not have, so it is about nothing; it stays in force"),
    "about nothing for all": ({**DENY, "tool": "*", "mcp": "x"}, ["d"], "it names what its tool does not have, so it is about nothing; it stays in force"),
    "a broken prefix": ({**DENY, "argvPrefix": "x"}, ["unreadable"], "must have a list of at most 100 texts under 'argvPrefix'; until it is repaired, the tool 'bash' is asked about"),
    "no tool": ({"id": "d", "verdict": "ask"}, ["unreadable"], 'names no "tool"; until it is repaired, everything is asked about'),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DENIES)
def test_a_rule_that_denies_stays_in_force_or_is_asked_about(world: World, name: str) -> None:
    entry, ids, words = BAD_DENIES[name]
    found = load(world, rules(entry))
    assert [rule.id for rule in found.rules] == ids
    assert [str(one) for one in found.problems] == [
        f"{world.base / 'policy.json'}: rule 'd': {words}"
    ]
    tool = "bash" if "bash" in words else "*"
    if ids == ["unreadable"]:
        assert found.rules == (Rule(id="unreadable", tool=tool, verdict="ask", scope="user"),)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "is not an object: { … }"),
        ([], "is not an object: { … }"),
        ({"tool": "bash"}, "has the verdict None; there are \"allow\", \"ask\" and \"deny\""),
        ({"tool": "bash", "verdict": "Allow"}, "has the verdict 'Allow'; there are \"allow\", \"ask\" and \"deny\""),
        ({"tool": "bash", "verdict": ["allow"]}, "has the verdict ['allow']; there are \"allow\", \"ask\" and \"deny\""),
    ],
    ids=["number", "list", "none", "capital", "listed"],
)  # fmt: skip
def test_an_entry_that_is_no_rule_is_asked_about_and_named_by_its_number(
    world: World, entry, words: str
) -> None:
    found = load(world, rules(ALLOW, entry))
    tool = "bash" if isinstance(entry, dict) else "*"
    asked = "the tool 'bash'" if tool == "bash" else "everything"
    assert [(rule.tool, rule.verdict) for rule in found.rules] == [("bash", "allow"), (tool, "ask")]
    assert [str(one) for one in found.problems] == [
        f"{world.base / 'policy.json'}: rule 'number 2': {words}; until it is repaired, {asked} is asked about"
    ]


def test_good_examples_of_every_kind_pass(world: World) -> None:
    entries = [
        {"tool": "edit", "verdict": "allow", "path": "src/**", "match": ["src/a", str(world.root / "src" / "b")], "notMatch": ["lib", "/src/a"]},
        {"tool": "edit", "verdict": "deny", "path": "src/**", "match": ["SRC/a"]},
        {"tool": "fetch", "verdict": "allow", "host": "a.org", "match": ["A.org"], "notMatch": ["b.org", "é.org"]},
        {"tool": "fetch", "verdict": "deny", "host": "a.org", "match": ["A.org", "é.org"], "notMatch": ["b.org"]},
        {"tool": "m", "verdict": "allow", "mcp": "s/t", "match": ["s/t"], "notMatch": ["s/u"]},
        {"tool": "bash", "verdict": "deny", "argvPrefix": ["rm", "-rf"], "match": ["ls; rm -r -f x"], "notMatch": ["rm x", "echo 'rm -rf x'"]},
        {"tool": "bash", "verdict": "deny", "argvPrefix": ["rm"], "host": "*", "match": ["rm x"]},
        {"tool": "bash", "verdict": "ask", "match": ["anything"]},
        {"tool": "bash", "verdict": "allow", "host": "*"},
        {"tool": "*", "verdict": "deny", "path": "*.pem"},
        {"tool": "*", "verdict": "deny", "argvPrefix": ["rm"], "host": "*"},
        {"tool": "*", "verdict": "deny", "mcp": "s/*", "host": "*"},
        {"tool": "mine", "verdict": "allow"},
    ]  # fmt: skip
    found = load(world, rules(*entries))
    assert found.problems == ()
    assert len(found.rules) == len(entries)


def test_a_file_that_comes_with_the_project_only_tightens(world: World) -> None:
    ask = {"id": "q", "tool": "edit", "verdict": "ask", "path": "db/**"}
    found = load(world, rules(ALLOW, DENY, ask), origin="repository")
    assert [rule.id for rule in found.rules] == ["d", "q"]
    assert [one.text for one in found.problems] == [
        "a file that comes with the project can only ask and deny; allow it in your own policy.json; it is not in force"
    ]
    assert [one.rule for one in found.problems] == ["a"]


def test_lasting_answers_lie_in_the_users_folder_one_for_each_workspace() -> None:
    data = Path("/d")
    one, two = (remembered_file(data, Path(path)) for path in ("/a/my project!", "/b/my project!"))
    assert one.name == "policy.json"
    assert one.parent.parent == data / "policy"
    assert one.parent.name.startswith("my-project--")
    assert one != two
    assert one == remembered_file(data, Path("/a/my project!"))
    assert len(remembered_file(data, Path("/" + "x" * 200)).parent.name) == 57
    assert remembered_file(data, Path("/")).parent.name.startswith("-")


def test_loaded_rules_can_be_decided_with(world: World) -> None:
    found = load(world, rules(ALLOW, DENY))
    situation = world.situation(*RuleSet(rules=found.rules).rules)
    assert verdict(world.command("npm test"), situation) == "run"
    assert verdict(world.command("npm test && git push"), situation) == "refuse"


def test_a_fault_in_the_reading_leaves_a_rule_that_asks_about_everything(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> Rule:
        raise ZeroDivisionError

    monkeypatch.setattr("agent_core.workspace.permissions.policy.rules.entries.read_entry", fails)
    found = load(world, rules(DENY))
    assert [(one.tool, one.verdict) for one in found.rules] == [("*", "ask")]
    assert "cannot be understood (ZeroDivisionError)" in found.problems[0].text
