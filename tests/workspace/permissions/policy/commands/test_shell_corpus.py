"""The corpus of hostile command lines, judged from the text to the verdict."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy import git_starts_programs
from tests.support.harness.shared import shared_path
from tests.workspace.permissions.policy.world import World, command_rule, make_world, verdict

ALLOWED = (("git", "status"), ("git", "diff"), ("ls",), ("pytest",), ("npm", "test"))
DENIED = (("rm", "-rf"), ("git", "push"))
WORDS = {"run": "allow", "ask": "ask", "refuse": "deny"}
MOST_NEEDLESS = 0.35


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, object], str]]:
    lines = shared_path("data", "hostile", "shell.jsonl").read_text("utf-8").splitlines()
    world: World = make_world(Path(tmp_path_factory.mktemp("corpus")))
    rules = [world.allow(*argv) for argv in ALLOWED]
    rules += [command_rule("deny", *argv) for argv in DENIED]
    situation = world.situation(*rules)
    env = {"PATH": os.defpath}
    subprocess.run(["git", "init", "-q"], cwd=world.root, env=env, check=True)
    starts = git_starts_programs(world.root)
    rows = [json.loads(line) for line in lines]
    return [
        (row, WORDS[verdict(world.command(row["cmd"], git_starts_programs=starts), situation)])
        for row in rows
    ]


def test_no_command_is_allowed_that_must_not_be(judged) -> None:
    assert len(judged) >= 200
    assert [
        row["cmd"] for row, word in judged if word == "allow" and "allow" not in row["accept"]
    ] == []


def test_no_verdict_is_wrong_in_another_way(judged) -> None:
    assert [(row["cmd"], word) for row, word in judged if word not in row["accept"]] == []


def test_few_harmless_commands_are_asked_about(judged) -> None:
    harmless = [word for row, word in judged if row["expect"] == "allow"]
    needless = sum(word != "allow" for word in harmless)
    assert needless / len(harmless) <= MOST_NEEDLESS, f"{needless} of {len(harmless)}"
