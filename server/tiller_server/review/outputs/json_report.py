"""A review as JSON, and back: the form in which CI keeps one. The schema is `review.schema.json` beside this."""

import json
from typing import Final

import msgspec

from agent_core.kernel.json import as_object
from agent_core.kernel.values import threadsafe
from tiller_server.review.errors import ReviewFileInvalid
from tiller_server.review.findings.result import Review
from tiller_server.review.outputs.encoding import encodable

FORMAT: Final = "tiller-review/1"
"""The first key of the report; the number grows when an old reader would misread it."""


def render_json(review: Review) -> str:
    """Write the whole review, so that `read_json` gives it back but for names of files that are no UTF-8."""
    body = {"format": FORMAT, **as_object(msgspec.to_builtins(review))}
    return encodable(json.dumps(body, indent=2, ensure_ascii=False)) + "\n"


def read_json(content: bytes, *, name: str) -> Review:
    """Read a report.

    Raises:
        ReviewFileInvalid: It is none; the text says what is wrong with it.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        message = f"{name} is no report of a review ({error}); make one with --format json"
        raise ReviewFileInvalid(message) from error
    fields = dict(as_object(body))
    said = fields.pop("format", None)
    if said != FORMAT:
        message = f"{name} is no report of a review: its format is {said!r}, not {FORMAT!r}; make one with --format json"
        raise ReviewFileInvalid(message)
    try:
        return msgspec.convert(fields, threadsafe(Review))
    except msgspec.ValidationError as error:
        message = f"{name} cannot be read as a review: {error}; make it anew with --format json"
        raise ReviewFileInvalid(message) from error


def schema_text() -> str:
    """Return the JSON Schema of the report, as `review.schema.json` holds it."""
    schema = msgspec.json.schema(Review)
    review = schema["$defs"]["Review"]
    review["properties"] = {"format": {"const": FORMAT}, **review["properties"]}
    for definition in schema["$defs"].values():
        # A report has every field, also those with a default.
        definition["required"] = list(definition["properties"])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(schema_text())
