"""From untrusted JSON to a shape, or to one sentence that says what is wrong with it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent_core.kernel.unknown_keys import did_you_mean, unknown_keys
from agent_core.kernel.values import Value
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.wire.base import WireModel

__all__ = ["ValidationIssue", "parse", "prepare", "validation_issue"]

ModelT = TypeVar("ModelT", bound=WireModel)
Path = tuple[str | int, ...]

SHOWN_CHARS = 60
SHOWN_DEPTH = 6
SHOWN_BITS = 256
NOTHING = object()
VENDOR = "_"
"""How fields begin that mean something to a vendor; they are passed over."""


class ValidationIssue(Value, frozen=True, kw_only=True):
    """Problem with a value: its field, the expected value, the actual value."""

    field: str
    expected: str
    actual: str

    @property
    def text(self) -> str:
        """The sentence, without the name of what was parsed."""
        subject = self.field or "params"
        return f"{subject} must {self.expected}, got {self.actual}"


def parse(
    model: type[ModelT], params: Mapping[str, object] | None, *, method: str | None = None
) -> ModelT:
    """Read the params of a method, or another message.

    Args:
        model: The shape to read into.
        params: Params as received; None is the same as an empty object.
        method: The method whose params these are: an unknown field is an error unless it begins with `_`, because its
            request would be ignored. None: another message, whose unknown fields are ignored.

    Raises:
        RpcError: -32602 with one sentence about the first problem, and `data` with the field, the expected value
            and the actual value.
    """
    given: Mapping[str, object] = {} if params is None else params
    try:
        made = model.model_validate(given, by_alias=True, by_name=False)
    except ValidationError as error:
        found = validation_issue(error, given)
        raise RpcError(
            INVALID_PARAMS,
            f"{method or model.__name__}: {found.text}",
            {
                "retryable": False,
                "field": found.field,
                "expected": found.expected,
                "actual": found.actual,
            },
        ) from error
    if method is not None:
        _refuse_unknown(made, given, method=method)  # decision 0068
    return made


def _refuse_unknown(made: WireModel, given: Mapping[str, object], *, method: str) -> None:
    for path, field_names in unknown_keys(made, given):
        name = str(path[-1])
        if not name.startswith(VENDOR):
            field = _spell(path)
            hint = did_you_mean(name, field_names)
            message = f"{method}: {field} must be left out, the method has no such field{hint}"
            raise RpcError(INVALID_PARAMS, message, {"retryable": False, "field": field})


def prepare(*models: type[WireModel]) -> None:
    """Build what reads these shapes now, so that the first request does not wait for it."""
    for model in models:
        model.model_rebuild()


def validation_issue(error: ValidationError, given: object) -> ValidationIssue:
    """Choose what to say about a failed validation: the first thing wrong, in words of JSON."""
    details = error.errors(include_url=False, include_context=True)
    placed = [(_path(each, given), each) for each in details]
    path = placed[0][0]
    for other, _ in placed:
        # A union tries every member: the one that got furthest is the one that was meant.
        if len(other) > len(path) and other[: len(path)] == path:
            path = other
    here = [each for place, each in placed if place == path]
    key, expected = _expectation(here)
    actual: object = NOTHING if here[0]["type"] == "missing" else here[0]["input"]
    if key is not None and isinstance(actual, Mapping):
        path = (*path, key)
        actual = actual.get(key, NOTHING)  # pyright: ignore[reportUnknownMemberType] - foreign JSON
    elif key is not None:
        expected = "be an object"
    return ValidationIssue(field=_spell(path), expected=expected, actual=_show(actual))


def _path(detail: ErrorDetails, given: object) -> Path:
    """Keep of pydantic's location what is really in the input; the rest are names of union members."""
    path: list[str | int] = []
    place: object = given
    last = len(detail["loc"]) - 1
    for index, step in enumerate(detail["loc"]):
        below = _step(place, step)
        if below is not NOTHING:
            path.append(step)
            place = below
        elif index == last and detail["type"] in {"missing", "extra_forbidden"}:
            path.append(step)
    return tuple(path)


def _step(place: object, step: str | int) -> object:
    if isinstance(place, Mapping) and step in place:
        return place[step]
    if isinstance(place, list) and isinstance(step, int) and step < len(place):  # pyright: ignore[reportUnknownArgumentType] - foreign JSON
        return place[step]  # pyright: ignore[reportUnknownVariableType] - foreign JSON
    return NOTHING


def _expectation(here: Sequence[ErrorDetails]) -> tuple[str | None, str]:
    """Return what was expected at one place, joining what the members of a union wanted."""
    wanted: list[str] = []
    for detail in here:
        if detail["type"] == "unknown_word":
            key, _, expected = detail["msg"].partition(" must ")
            return key, expected
        wish = _wish(detail)
        # «or a word that begins with _» is true, but of no help to somebody who mistyped.
        if detail["type"] == "string_pattern_mismatch" and wanted:
            continue
        if detail["loc"][-1:] == ("constrained-str",) and wanted:
            continue
        if wish not in wanted:
            wanted.append(wish)
    first, *rest = wanted
    return None, " or ".join((first, *(wish.removeprefix("be ") for wish in rest)))


def _wish(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind in PLAIN:
        return PLAIN[kind]
    context: Mapping[str, object] = detail.get("ctx", {})
    if kind in BOUNDED:
        return BOUNDED[kind](context)
    if kind == "shape":
        return detail["msg"]
    return "be " + detail["msg"].removeprefix("Input should be ")


PLAIN: Mapping[str, str] = {
    "missing": "be given",
    "extra_forbidden": "not be there",
    "string_type": "be a string",
    "string_unicode": "be valid Unicode",
    "int_type": "be a whole number",
    "int_from_float": "be a whole number",
    "int_parsing_size": "be a smaller whole number",
    "float_type": "be a number",
    "finite_number": "be a finite number",
    "bool_type": "be true or false",
    "list_type": "be a list",
    "dict_type": "be an object",
    "model_type": "be an object",
}


def _one_of(context: Mapping[str, object]) -> str:
    options = str(context["expected"]).replace("'", '"').replace(" or ", ", ")
    return f"be one of {options}" if "," in options else f"be {options}"


BOUNDED: Mapping[str, Callable[[Mapping[str, object]], str]] = {
    "literal_error": _one_of,
    "greater_than_equal": lambda context: f"be at least {context['ge']}",
    "less_than_equal": lambda context: f"be at most {context['le']}",
    "too_long": lambda context: f"have at most {context['max_length']} entries",
    "too_short": lambda context: f"have at least {context['min_length']} entry",
    "string_too_short": lambda context: f"have at least {context['min_length']} character",
    "string_pattern_mismatch": lambda context: f"match {context['pattern']}",
}


def _spell(path: Path) -> str:
    shown = path[:SHOWN_DEPTH]
    text = ""
    for step in shown:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            # A name of a client may have a line break; a message is one line.
            name = _clip(step if step.isprintable() else ascii(step)[1:-1])
            text += f".{name}" if text else name
    return text + "…" if len(path) > len(shown) else text


def _show(actual: object) -> str:
    match actual:
        case None | bool():
            return json.dumps(actual)
        case str():
            return json.dumps(_clip(actual), ensure_ascii=not actual.isprintable())
        case int() | float():
            return _clip(repr(actual)) if not _is_huge(actual) else "a very large number"
        case list() | tuple():
            return "a list" if actual else "an empty list"
        case Mapping():
            return "an object" if actual else "an empty object"
        case _:
            return "nothing" if actual is NOTHING else f"a {type(actual).__name__}"


def _is_huge(number: float) -> bool:
    # Python refuses to print integers beyond 4300 digits.
    return isinstance(number, int) and number.bit_length() > SHOWN_BITS


def _clip(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
