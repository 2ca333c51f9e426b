"""A review as SARIF 2.1.0, the way code scanning of GitHub and the viewers of editors read it."""

import json
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.text import readable
from tiller_server.review.findings.result import CATEGORIES, Category, Finding, Review, Suggestion

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT: Final = "%SRCROOT%"
DANGERS: Final[Mapping[Category, str]] = {"security": "7.5", "prompt-injection": "7.0"}
"""Categories that code scanning lists among the security alerts, on its scale from 0 to 10."""
RULES: Final = tuple(CATEGORIES)


def render_sarif(review: Review) -> str:
    """Write a review as a SARIF log with one run; it is marked when the review is partial.

    Code scanning closes every alert that a later upload does not name, and a partial review names fewer than
    there are: an uploader checks `executionSuccessful` first.
    """
    log: JsonObject = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(review)]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _run(review: Review) -> JsonObject:
    header = review.header
    return {
        "tool": {
            "driver": {
                "name": "Tiller",
                "version": header.version,
                "semanticVersion": header.version,
                "rules": [_rule(category) for category in RULES],
            }
        },
        "automationDetails": {
            "id": "tiller/review/",
            "description": {"text": "What Tiller found in a change."},
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The top folder of the repository."}}
        },
        "invocations": [_invocation(review)],
        "results": [_result(finding) for finding in review.findings],
        "properties": {
            "model": header.model,
            "promptHash": header.prompt_hash,
            "base": header.base.sha,
            "head": header.head.sha,
            "mergeBase": header.merge_base,
            "costUsd": header.cost_usd,
            "tokens": header.tokens,
            "turns": header.turns,
            "accepted": review.accepted,
            "suppressed": review.suppressed,
            "partial": review.partial,
        },
    }


def _rule(category: Category) -> JsonObject:
    what = f"{CATEGORIES[category]}."
    properties: dict[str, JsonValue] = {"tags": [category], "precision": "medium"}
    if category in DANGERS:
        properties["tags"] = sorted({"security", category})
        properties["security-severity"] = DANGERS[category]
    return {
        "id": f"tiller/{category}",
        "name": "".join(word.capitalize() for word in category.split("-")),
        "shortDescription": {"text": what},
        "fullDescription": {"text": what},
        "help": {
            "text": f"{what} A language model found it by reading the change: check it before you act.",
            "markdown": f"{what} A language model found it by reading the change: check it before you act.",
        },
        "defaultConfiguration": {"level": "warning"},
        "properties": properties,
    }


def _invocation(review: Review) -> JsonObject:
    return {
        "executionSuccessful": review.partial is None,
        "startTimeUtc": review.header.started_at,
        "endTimeUtc": review.header.ended_at,
        "toolExecutionNotifications": list(_notifications(review)),
    }


def _notifications(review: Review) -> Iterator[JsonObject]:
    if review.partial is not None:
        yield {"level": "error", "message": {"text": review.partial}}
    for left in review.left_out:
        text = f"{readable(left.path)} was not looked at: {left.reason}"
        yield {"level": "note", "message": {"text": text}}
    for dropped in review.dropped:
        text = f"a finding in {readable(dropped.path)} was left out ({dropped.title}): {dropped.reason}"
        yield {"level": "note", "message": {"text": text}}


def _result(finding: Finding) -> JsonObject:
    result: dict[str, JsonValue] = {
        "ruleId": f"tiller/{finding.category}",
        "ruleIndex": RULES.index(finding.category),
        "level": finding.severity,
        "rank": round(100 * finding.confidence, 1),
        "message": {
            "text": f"{finding.title}\n\n{finding.message}",
            "markdown": f"**{finding.title}**\n\n{finding.message}",
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _file(finding.path),
                    "region": {
                        "startLine": finding.line,
                        "endLine": finding.end_line,
                        "snippet": {"text": finding.evidence},
                    },
                }
            }
        ],
        # Code scanning goes by the first name alone, and wants a count behind the hash.
        "partialFingerprints": {
            "primaryLocationLineHash": f"{finding.fingerprint}:1",
            "tillerFinding/v2": finding.fingerprint,
        },
    }
    if finding.suggestion is not None:
        result["fixes"] = [_fix(finding.path, finding.suggestion)]
    return result


def _fix(path: str, suggestion: Suggestion) -> JsonObject:
    # A region that ends in the same line leaves that line's break alone; whole lines go by naming the next one's start.
    region: JsonObject = {"startLine": suggestion.line, "endLine": suggestion.end_line}
    if not suggestion.replacement:
        region = {
            "startLine": suggestion.line,
            "startColumn": 1,
            "endLine": suggestion.end_line + 1,
            "endColumn": 1,
        }
    inserted = suggestion.replacement.removesuffix("\n")
    return {
        "description": {"text": "Replace the lines as suggested."},
        "artifactChanges": [
            {
                "artifactLocation": _file(path),
                "replacements": [{"deletedRegion": region, "insertedContent": {"text": inserted}}],
            }
        ],
    }


def _file(path: str) -> JsonObject:
    return {"uri": quote(path.encode("utf-8", "surrogateescape")), "uriBaseId": ROOT}
