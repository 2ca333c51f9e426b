"""A review as JSON, and back: the form in which CI keeps one. The schema is `review.schema.json` beside this."""

import json
from functools import cache
from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent_core.kernel.json import as_object
from tiller_server.review.errors import ReviewFileInvalid
from tiller_server.review.findings import Review
from tiller_server.review.outputs.encodable import encodable

FORMAT: Final = "tiller-review/1"
"""The first key of the report; the number grows when an old reader would misread it."""


@cache
def _adapter() -> TypeAdapter[Review]:
    return TypeAdapter(Review)


def render_json(review: Review) -> str:
    """Write the whole review, so that `read_json` gives it back but for names of files that are no UTF-8."""
    body = {"format": FORMAT, **_adapter().dump_python(review, mode="json")}
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
    known = dict(as_object(body))
    said = known.pop("format", None)
    if said != FORMAT:
        message = f"{name} is no report of a review: its format is {said!r}, not {FORMAT!r}; make one with --format json"
        raise ReviewFileInvalid(message)
    try:
        return _adapter().validate_json(json.dumps(known))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        message = f"{name} cannot be read as a review: {place}: {first['msg']}; make it anew with --format json"
        raise ReviewFileInvalid(message) from error


def schema_text() -> str:
    """Give the JSON Schema of the report, as `review.schema.json` holds it."""
    schema = _adapter().json_schema(mode="serialization")
    schema["properties"] = {"format": {"const": FORMAT}, **schema["properties"]}
    schema["required"] = ["format", *schema["required"]]
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(schema_text())
