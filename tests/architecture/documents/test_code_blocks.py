"""The code blocks of the documents can be read in their language, and their commands are those of the parser."""

import contextlib
import io
import itertools
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest
import yaml
from jsonschema import Draft202012Validator

from agent_core.assembly.config_schemas import shipped
from scripts.site.pages import paths
from tests.architecture.documents.guide_tables import command_parser
from tests.architecture.documents.test_guide_pages import PAGES as GUIDE
from tests.support.harness.shared import ROOT
from tests.support.programs.page_commands import NOT_RUN, READ_BY, STANDS
from tiller_server.cli.command_line import COMMANDS, SERVERS, expanded
from tiller_server.fleet.config import FleetConfig

BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELLS = {"sh", "bash"}
SCHEMAS = {"mcpServers": "mcp", "providers": "models", "rules": "policy"}
"""Keys of JSON blocks, and the schema of the file that has them; other blocks are settings."""
OF_OTHERS = {"agent_servers", "clients", "languages", "sessionDir"}
"""Keys of files that other programs read."""
PLACEHOLDER = re.compile(r"…|\.\.\.|\$")
"""A line with one of these is an example of a form, or needs a shell to be read."""


def _compiled(text: str) -> object:
    return compile(text, "block", "exec", flags=0x2000)  # with `await` at the top


READERS: Mapping[str, Callable[[str], object]] = {
    "json": json.loads,
    "python": _compiled,
    "toml": tomllib.loads,
    "yaml": lambda text: [*yaml.safe_load_all(text)],
}


def test_every_block_of_data_and_code_can_be_read() -> None:
    faults = [
        f"{page}: {language}: {fault}"
        for page, language, text in _blocks()
        if language in READERS and (fault := _fault(language, text))
    ]
    assert faults == []


def test_every_command_of_a_shell_block_is_one_of_the_parser() -> None:
    lines = [
        (page, line)
        for page, language, text in _blocks()
        if language in SHELLS
        for line in _commands(text)
    ]
    assert len(lines) > 60
    assert [f"{page}: {line}: {why}" for page, line in lines if (why := _refusal(line))] == []


def test_every_page_with_shell_blocks_is_run_or_listed_with_a_reason() -> None:
    pages = {
        page
        for page, language, text in _blocks()
        if language in SHELLS
        or (language in {"", "text"} and re.match(r"tiller |make |podman ", text))
    }
    guide = {f"docs/{name}.md" for name in GUIDE}
    assert pages - guide - {*STANDS, *READ_BY, *NOT_RUN} == set()
    assert {*guide, *STANDS, *READ_BY, *NOT_RUN} - pages == set()
    for page, reader in READ_BY.items():
        assert page.rpartition("/")[2] in (ROOT / reader).read_text(encoding="utf-8")


def test_every_block_of_settings_fits_its_schema() -> None:
    faults = [
        f"{page}: {error.message[:200]}"
        for page, language, text in _blocks()
        if language == "json" and (value := json.loads(text)) and page != "docs/fleet.md"
        if isinstance(value, dict) and not OF_OTHERS & set(value)
        for error in _validator(value).iter_errors(value)
    ]
    assert faults == []


def test_the_blocks_of_the_fleet_are_read_as_its_configuration() -> None:
    blocks = [
        text for page, language, text in _blocks() if (page, language) == ("docs/fleet.md", "json")
    ]
    assert len(blocks) > 1
    for text in blocks:
        _ = msgspec.json.decode(text, type=FleetConfig)


@pytest.mark.parametrize(
    "line", ["tiller sessions lst", "tiller run --permision ask x", "tiller sessions show"]
)
def test_a_wrong_command_is_noticed(line: str) -> None:
    assert _refusal(line)


@pytest.mark.parametrize(("language", "text"), [("json", "{a: 1}"), ("python", "def f(:")])
def test_a_block_that_cannot_be_read_is_noticed(language: str, text: str) -> None:
    assert _fault(language, text)


def _blocks() -> Iterator[tuple[str, str, str]]:
    for path in paths():
        name = path.as_posix()
        is_page = name.startswith("docs/") or name in {"README.md", "SECURITY.md"}
        if path.suffix != ".md" or not is_page:
            continue
        for language, text in BLOCK.findall((ROOT / path).read_text(encoding="utf-8")):
            yield name, language, textwrap.dedent(text)


def _validator(value: Mapping[str, object]) -> Draft202012Validator:
    name = next((SCHEMAS[key] for key in value if key in SCHEMAS), "settings")
    return Draft202012Validator(json.loads(shipped(name)))


def _fault(language: str, text: str) -> str:
    try:
        _ = READERS[language](text)
    except (ValueError, SyntaxError, yaml.YAMLError) as error:
        return str(error)
    return ""


def _commands(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("tiller ") and not PLACEHOLDER.search(line):
            yield line


def _refusal(line: str) -> str:
    """Return why the parser refuses a command; empty if it accepts it."""
    try:
        words = expanded(_first_command(line)[1:], is_terminal=True) or ["--help"]
    except ValueError as error:
        return str(error)
    if words[0] in SERVERS or words[0].startswith("-"):
        return ""
    if words[0] not in COMMANDS:
        return "no such command"
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            _ = command_parser(words[0]).parse_args(words[1:])
        except SystemExit as ended:
            return errors.getvalue() if ended.code else ""
    return ""


def _first_command(line: str) -> list[str]:
    """Return the words of the first command of a line, without redirections and comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return [*itertools.takewhile(lambda word: not set(word) <= set("|&;<>()"), lexer)]
