"""`tiller policy` says what rules make of a command, shows them and forgets them."""

import argparse
import json
from pathlib import Path

import pytest

from agent_core.resources.trust.evidence import gather
from agent_core.resources.trust.workspace_trust import TrustStore
from agent_core.workspace.permissions.policy import remembered_file, save_rule
from tests.workspace.permissions.policy.world import World, command_rule, make_world
from tiller_server.cli import command_line
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import policy


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = make_world(tmp_path)
    say_of_trust(world, "always")
    return world


def say_of_trust(world: World, default: str) -> None:
    path = world.base / "c" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"defaultProjectTrust": default}), "utf-8")


def run(world: World, *words: str) -> int:
    parser = argparse.ArgumentParser()
    policy.add_arguments(parser.add_subparsers().add_parser("policy"))
    options = parser.parse_args(["policy", words[0], "--workspace", str(world.root), *words[1:]])
    variables = {
        "TILLER_CONFIG_DIR": str(world.base / "c"),
        "TILLER_DATA_DIR": str(world.base / "d"),
        "TILLER_RUNTIME_DIR": str(world.base / "r"),
        "PATH": str(world.bin),
        "HOME": "/home/me",
    }
    return policy.main(options, Environment(variables))


def user_file(world: World) -> Path:
    return world.base / "c" / "policy.json"


def test_explain_says_what_would_happen_and_why(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(world, "explain", "--containment", "none", "--", "npm", "test", "a b") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:7] == [
        "verdict      ask",
        "why          commands are not contained here, and no rule allows this one",
        "rule         none",
        "mode         ask",
        "containment  none (as given)",
        "command      \"npm test 'a b'\"",
        f"read as      ['npm', 'test', 'a b'] starts {world.program('npm')}",
    ]
    assert lines[7].startswith('would allow  {"id":"allow-')


def test_explain_names_the_rule_and_takes_a_line_as_one_word(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    allow, deny = world.allow("ls"), command_rule("deny", "git", "push", scope="project")
    save_rule(user_file(world), allow)
    save_rule(remembered_file(world.base / "d", world.root), deny)
    assert run(world, "explain", "--containment", "none", "ls -l && git push") == 0
    out = capsys.readouterr().out
    assert "verdict      refuse" in out
    assert f"rule         {deny.id}  (project) deny bash: 'git push'" in out
    assert f"starts {world.program('ls')}, allowed by {allow.id}" in out
    assert run(world, "explain", "--containment", "none", "ls -l") == 0
    assert (
        f"rule         {allow.id}  (user) allow bash: 'ls'  [{world.program('ls')}]"
        in capsys.readouterr().out
    )


def test_explain_as_json_and_as_if(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            world,
            "explain",
            "--json",
            "--containment",
            "full",
            "--needs",
            "network",
            "--mode",
            "auto",
            "ls > $x",
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert {key: told[key] for key in ("verdict", "reason", "rule", "mode", "trusted", "containment", "plain", "parts")} == {
        "verdict": "ask", "reason": "it wants the network: the internet and every service that listens on this machine", "rule": None, "mode": "auto", "trusted": True,
        "containment": "full", "plain": False, "parts": [],
    }  # fmt: skip
    assert told["wouldAllow"]["host"] == "*"
    assert run(world, "explain", "--json", "--untrusted", "--containment", "full", "ls") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["trusted"]) == ("refuse", False)


def test_what_comes_with_the_project_counts_only_with_trust(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = world.root / ".tiller"
    folder.mkdir()
    (folder / "policy.json").write_text(
        '{"rules": [{"id": "r", "tool": "*", "verdict": "deny"}]}', "utf-8"
    )
    assert run(world, "explain", "--containment", "full", "ls") == 0
    assert "verdict      refuse" in capsys.readouterr().out
    assert run(world, "explain", "--containment", "full", "--untrusted", "ls") == 0
    assert "rule         none" in capsys.readouterr().out


def test_whether_it_is_trusted_is_what_the_user_said_of_what_is_there(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    say_of_trust(world, "ask")
    folder = world.root / ".tiller"
    folder.mkdir()
    path = folder / "policy.json"
    path.write_text('{"rules": [{"id": "r", "tool": "*", "verdict": "deny"}]}', "utf-8")

    def told(*words: str) -> tuple[str, str | None]:
        assert run(world, "explain", "--json", "--containment", "full", *words, "ls") == 0
        found = json.loads(capsys.readouterr().out)
        return found["reason"], None if found["rule"] is None else found["rule"]["id"]

    def listed() -> str:
        assert run(world, "list") == 0
        return capsys.readouterr().out

    assert "not trusted" in told()[0]
    assert listed() == "no rules\n"
    assert told("--trust")[1] == "r"
    root = world.root.resolve()
    store = TrustStore(world.base / "d" / "trust.json")
    store.record(root, "trusted", seen=gather(root), at_ms=1)
    assert told()[1] == "r"
    assert listed().startswith("r ")
    path.write_text('{"rules": []}', "utf-8")
    assert "not trusted" in told()[0]


def test_list_shows_rules_and_tells_what_is_wrong(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(world, "list") == 0
    assert capsys.readouterr().out == "no rules\n"
    save_rule(user_file(world), world.allow("npm", "test", host="*"))
    save_rule(user_file(world), command_rule("allow", "sudo", "ls"))
    assert run(world, "list") == 0
    told = capsys.readouterr()
    rule = world.allow("npm", "test", host="*")
    assert (
        told.out == f"{rule.id}  (user) allow bash: 'npm test host *'  [{world.program('npm')}]\n"
    )
    assert "starts or changes other commands" in told.err
    assert run(world, "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["scope"] for one in listed["rules"]] == ["user"]
    assert len(listed["problems"]) == 1


def test_rm_forgets_a_rule_wherever_it_is_kept(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = command_rule("deny", "rm")
    project = remembered_file(world.base / "d", world.root)
    for path in (user_file(world), project):
        save_rule(path, rule)
    assert run(world, "rm", rule.id) == 0
    assert capsys.readouterr().out == f"Removed {rule.id}\n"
    assert all(
        json.loads(path.read_text("utf-8"))["rules"] == [] for path in (user_file(world), project)
    )
    assert run(world, "rm", rule.id) == 1
    assert "not found; see `tiller policy list`" in capsys.readouterr().err
    project.write_text("{", "utf-8")
    assert run(world, "rm", rule.id) == 2
    assert "repair it first" in capsys.readouterr().err


def test_rules_are_added_take_effect_and_are_removed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(world, "allow", "npm", "test", "--watch") == 0
    assert run(world, "allow", "--project", "--", "npm run lint") == 0
    assert run(world, "deny", "rm") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "Allowed in all folders: npm test --watch …"
    assert told[2] == f"Allowed in {world.root}: npm run lint …"
    assert told[4] == "Denied in all folders: rm …"
    for command, verdict in (
        (("npm", "test", "--watch", "src"), "run"),
        (("npm", "test"), "ask"),
        (("npm", "run", "lint", "src"), "run"),
        (("rm", "a"), "refuse"),
    ):
        assert run(world, "explain", "--containment", "none", "--", *command) == 0
        assert capsys.readouterr().out.splitlines()[0] == f"verdict      {verdict}", command
    for line in told[1::2]:
        prefix, _, rule = line.rpartition(" ")
        assert prefix == "Remove it with: tiller policy rm"
        assert run(world, "rm", rule) == 0
    _ = capsys.readouterr()
    assert run(world, "list") == 0
    assert capsys.readouterr().out == "no rules\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("allow",), "name a command"),
        (("allow", "env", "rm"), "starts or changes other commands"),
        (("allow", "no-such-program"), "was not found on the PATH"),
    ],
)
def test_a_rule_that_could_not_hold_is_not_added(
    world: World, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    assert run(world, *words) == 2
    assert reason in capsys.readouterr().err
    assert not user_file(world).exists()


def test_the_command_is_known() -> None:
    assert "policy" in command_line.COMMANDS
