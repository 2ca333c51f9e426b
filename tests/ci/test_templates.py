"""The files that people copy: valid by the published schemas, with the least of rights, and the same on the pages."""

import argparse
import io
import json
import re
import subprocess
from contextlib import redirect_stdout
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema.validators import validator_for

from tests.support.harness.shared import ROOT
from tests.support.review.action_run import ACTION, GITLAB, SCRIPT, steps_of_action
from tiller_server import VERSION
from tiller_server.cli.subcommands.review import add_arguments

CI = ROOT / "ci"
PAGES = ROOT / "docs" / "ci"
WORKFLOWS = [CI / "github" / "workflow.yml", CI / "github" / "workflow-forks.yml"]
OWN = ROOT / ".github" / "workflows" / "test.yml"
"""What this repository itself is tested by."""
ISSUES = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = [ISSUES / "bug.yml", ISSUES / "feature.yml"]
"""What this repository asks of people who open an issue."""
SCHEMAS = {
    ACTION: "github-actions.json",
    GITLAB: "gitlab-ci.json",
    **dict.fromkeys((*WORKFLOWS, OWN), "github-workflows.json"),
    **dict.fromkeys(FORMS, "github-issue-forms.json"),
    ISSUES / "config.yml": "github-issue-config.json",
}
MAY_WRITE = {"pull-requests", "security-events"}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(path: Path) -> Any:
    # YAML 1.1 takes `on` for true; what GitHub and GitLab read is JSON's kind of it.
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in loaded.items()}


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_file_is_valid_by_the_published_schema(path: Path) -> None:
    vendored = resources.files("check_jsonschema.builtin_schemas") / "vendor" / SCHEMAS[path]
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    found = validator_for(schema)(schema).iter_errors(read(path))
    assert [error.message[:300] for error in found] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_the_least_of_rights(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {}
    (job,) = workflow["jobs"].values()
    written = {name for name, right in job["permissions"].items() if right == "write"}
    assert written <= MAY_WRITE
    assert job["permissions"]["contents"] == "read"
    (checkout,) = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
    assert checkout["with"]["persist-credentials"] is False
    assert checkout["with"]["fetch-depth"] == 0
    assert workflow["concurrency"]["cancel-in-progress"] is True
    assert "pull_request.number" in workflow["concurrency"]["group"]


def test_a_bug_asks_for_what_finds_it_and_sends_weaknesses_elsewhere() -> None:
    bug = read(ISSUES / "bug.yml")
    asked = {one["id"]: one.get("validations", {}) for one in bug["body"] if "id" in one}
    assert {name for name, rule in asked.items() if rule.get("required")} == {
        *("happened", "client", "version", "doctor"),
    }
    assert {"log", "trace"} <= set(asked)
    assert "SECURITY.md" in bug["body"][0]["attributes"]["value"]


def test_a_workflow_with_secrets_never_checks_out_the_proposal() -> None:
    workflow = read(CI / "github" / "workflow-forks.yml")
    assert set(workflow["on"]) == {"pull_request_target"}
    (job,) = workflow["jobs"].values()
    assert [step for step in job["steps"] if "run" in step] == []
    assert [step for step in job["steps"] if "ref" in step.get("with", {})] == []


def test_no_script_has_words_of_an_event_in_it() -> None:
    scripts = [step["run"] for step in steps_of_action() if "run" in step]
    assert scripts
    assert [script for script in scripts if "${{" in script] == []
    assert "${{" not in SCRIPT.read_text(encoding="utf-8")


def test_only_the_steps_that_fetch_and_post_see_the_token() -> None:
    seeing = [
        step["run"].rsplit(" ", 1)[-1]
        for step in steps_of_action()
        if "inputs.token" in str(step.get("env", {}))
    ]
    assert seeing == ["prepare", "tell"]


@pytest.mark.parametrize(
    "path", [ACTION, GITLAB, *sorted(PAGES.glob("*.md"))], ids=lambda p: p.name
)
def test_the_version_that_is_installed_is_this_one(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"tillerd==([\w.]+)", text)) <= {VERSION}
    assert set(re.findall(r"(?:@|ref: )v(\d+\.\d+\.\d+)", text)) <= {VERSION}


@pytest.mark.parametrize(
    "path", [SCRIPT, GITLAB, *sorted(PAGES.glob("*.md"))], ids=lambda p: p.name
)
def test_every_option_that_is_named_exists(path: Path) -> None:
    known = options_of_review()
    text = path.read_text(encoding="utf-8")
    calls = re.findall(r"(?:tiller\"?|bin/tiller) review((?:[^\n]*\\\n)*[^\n]*)", text)
    calls += re.findall(r"`(--[^`\n]+)`", text)
    used = {name for call in calls for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", call)}
    assert used
    assert used - known == set()


def test_the_pages_hold_the_files_as_they_are() -> None:
    page = (PAGES / "github.md").read_text(encoding="utf-8")
    shown = [block for language, block in FENCE.findall(page) if language == "yaml"]
    assert shown == [without_head(path.read_text(encoding="utf-8")) for path in WORKFLOWS]


def test_every_input_is_told_on_the_page() -> None:
    page = (PAGES / "github.md").read_text(encoding="utf-8")
    assert [name for name in read(ACTION)["inputs"] if f"`{name}`" not in page] == []
    assert [name for name in read(ACTION)["outputs"] if f"`{name}`" not in page] == []
    page = (PAGES / "gitlab.md").read_text(encoding="utf-8")
    variables = read(GITLAB)["tiller-review"]["variables"]
    own = [name for name in variables if name.startswith("TILLER_")]
    assert [name for name in own if f"`{name}`" not in page] == []


def test_the_example_for_gitlab_is_valid_with_the_template() -> None:
    page = (PAGES / "gitlab.md").read_text(encoding="utf-8")
    (example,) = (block for language, block in FENCE.findall(page) if language == "yaml")
    vendored = resources.files("check_jsonschema.builtin_schemas") / "vendor" / "gitlab-ci.json"
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    found = validator_for(schema)(schema).iter_errors(yaml.safe_load(example))
    assert [error.message[:300] for error in found] == []


def test_a_merge_request_from_a_fork_waits_for_a_person() -> None:
    first, _ = read(GITLAB)["tiller-review"]["rules"]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID != $CI_MERGE_REQUEST_PROJECT_ID" in first["if"]
    assert first["when"] == "manual"


def shell_texts() -> dict[str, str]:
    texts = {"tiller-ci.sh": SCRIPT.read_text(encoding="utf-8")}
    texts["gitlab"] = read(GITLAB)["tiller-review"]["script"][0]
    plain = (PAGES / "plain-git.md").read_text(encoding="utf-8")
    for number, (_, block) in enumerate(FENCE.findall(plain)):
        texts[f"plain-git-{number}"] = block
    return texts


@pytest.mark.parametrize("name", shell_texts())
def test_every_script_can_be_read_by_its_shell(name: str) -> None:
    shell = "bash" if name == "tiller-ci.sh" else "sh"
    done = subprocess.run(
        [shell, "-n"], input=shell_texts()[name].encode(), capture_output=True, check=False
    )
    assert done.stderr.decode() == ""


def without_head(text: str) -> str:
    lines = text.splitlines(keepends=True)
    while lines[0].startswith("#"):
        del lines[0]
    return "".join(lines)


def options_of_review() -> set[str]:
    parser = argparse.ArgumentParser(prog="tiller")
    add_arguments(parser.add_subparsers().add_parser("review"))
    with redirect_stdout(io.StringIO()) as told, pytest.raises(SystemExit):
        parser.parse_args(["review", "--help"])
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", told.getvalue()))
