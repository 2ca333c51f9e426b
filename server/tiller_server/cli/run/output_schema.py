"""The JSON schema that the final answer of a run has to fit (`--output-schema`)."""

import argparse
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import JsonObject, decode_exact, encode, is_object
from agent_core.kernel.values import Value
from agent_core.messages import Text

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

FENCE: Final = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)
MOST_ERRORS: Final = 10
"""Errors that a correction names; the model finds the others when it has repaired these."""
MESSAGE_CHARS: Final = 300
MOST_CORRECTIONS: Final = 2
INSTALL: Final = "--output-schema needs the package jsonschema, which the extra mcp brings: pip install 'tillerd[mcp]'"
INSTRUCTIONS: Final = """\
Your final answer must be one JSON value that is valid against the following JSON schema, without any other text:

{schema}"""
CORRECTION: Final = """\
Your final answer is not valid against the JSON schema:

{errors}

Answer again with the whole JSON value, without any other text."""


class AnswerUnfit(TillerError):
    """The final answer does not fit the schema, also after the corrections."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__(
            f"the final answer does not fit --output-schema, also after {MOST_CORRECTIONS} corrections: {errors[0]}"
        )


class CheckedAnswer(Value, frozen=True, kw_only=True):
    """Result of a check; either `json` or `errors` is empty."""

    json: str = ""
    """The JSON of the answer as the model wrote it, without a code fence."""
    errors: tuple[str, ...] = ()

    @property
    def correction(self) -> str:
        """Prompt that asks for another answer."""
        return CORRECTION.format(errors="\n".join(f"- {error}" for error in self.errors))


class OutputSchema:
    """A JSON schema for final answers."""

    def __init__(self, schema: JsonObject, validator: "Validator") -> None:
        self._schema = schema
        self._validator = validator

    @property
    def instructions(self) -> tuple[Text]:
        """Content for the model, to follow the prompt."""
        return (Text(text=INSTRUCTIONS.format(schema=encode(self._schema).decode())),)

    def check(self, answer: str) -> CheckedAnswer:
        """Check an answer: JSON alone, or in a code fence that is the whole answer.

        Raises:
            UsageError: The schema refers to another that it does not contain.
        """
        from referencing.exceptions import Unresolvable  # noqa: PLC0415 - loaded with the validator

        text = answer.strip()
        if fenced := FENCE.fullmatch(text):
            text = fenced[1].strip()
        try:
            value = decode_exact(text)
        except ValueError as error:
            return CheckedAnswer(errors=(f"it is not JSON: {error}"[:MESSAGE_CHARS],))
        errors: list[str] = []
        try:
            for error in self._validator.iter_errors(value):
                errors.append(f"{error.json_path}: {error.message}"[:MESSAGE_CHARS])
                if len(errors) == MOST_ERRORS:
                    break
        except Unresolvable as error:
            message = f"--output-schema refers to {error.ref!r}, which the file does not contain"
            raise UsageError(message) from error
        return CheckedAnswer(errors=tuple(errors)) if errors else CheckedAnswer(json=text)

    async def fit(self, answer: str, ask: Callable[[str], Awaitable[str | None]]) -> str | None:
        """Return the JSON of an answer; ask for another answer while it does not fit.

        Args:
            answer: First answer.
            ask: Sends a prompt and returns the answer to it. None: there is none, and neither has this function.

        Raises:
            AnswerUnfit: The answer does not fit after the last correction either.
            UsageError: The schema refers to another that it does not contain.
        """
        corrections = 0
        while (checked := await to_thread.run_sync(self.check, answer)).errors:
            if corrections == MOST_CORRECTIONS:
                raise AnswerUnfit(checked.errors)
            corrections += 1
            another = await ask(checked.correction)
            if another is None:
                return None
            answer = another
        return checked.json


def schema_of(options: argparse.Namespace) -> OutputSchema:
    """Read the schema of the command line. Blocking.

    Raises:
        UsageError: It cannot be used, or there is no prompt.
    """
    if options.approve_plan is not None:
        message = "--output-schema needs a prompt; leave --approve-plan out"
        raise UsageError(message)
    return _read(options.output_schema)


def _read(path: Path) -> OutputSchema:
    """Read a schema from a file. Blocking.

    Raises:
        UsageError: The file cannot be read or is no JSON schema, or the validator is not installed.
    """
    try:
        from jsonschema import SchemaError  # noqa: PLC0415 - 50 ms
        from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415 - as above
        from referencing import Registry  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UsageError(INSTALL) from error
    name = f"--output-schema {str(path)!r}"
    try:
        schema = decode_exact(path.read_bytes())
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        raise UsageError(message) from error
    except ValueError as error:
        message = f"{name} is not JSON: {error}"
        raise UsageError(message) from error
    if not is_object(schema):
        message = f"{name} is no JSON schema: its outermost value must be an object"
        raise UsageError(message)
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(dict(schema))
    except (SchemaError, RecursionError) as error:
        why = error.message if isinstance(error, SchemaError) else "it is nested too deeply"
        message = f"{name} is no JSON schema: {why[:MESSAGE_CHARS]}"
        raise UsageError(message) from error
    # An empty registry: a reference to an address must not be fetched.
    return OutputSchema(schema, kind(schema, registry=Registry()))
