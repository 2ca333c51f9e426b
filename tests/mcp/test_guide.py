"""The file and the commands of docs/mcp.md: adding as the page does gives the file that it shows."""

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Final

import jsonschema
import pytest

from agent_core.assembly.config_schemas import shipped
from tests.support.harness.shared import ROOT
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import mcp

PAGE: Final = ROOT / "docs/mcp.md"


def _block(language: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return block


def test_the_file_fits_the_schema() -> None:
    jsonschema.validate(json.loads(_block("json")), json.loads(shipped("mcp")))


def test_the_commands_make_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment = Environment({f"TILLER_{one}_DIR": str(tmp_path) for one in ("CONFIG", "DATA")})
    added = [line for line in _block("bash").splitlines() if line.startswith("tiller mcp add ")]
    for line in added:
        parser = argparse.ArgumentParser(prog="tiller mcp")
        mcp.add_arguments(parser)
        assert mcp.main(parser.parse_args(shlex.split(line)[2:]), environment) == 0
    made = json.loads((tmp_path / "mcp.json").read_text(encoding="utf-8"))
    assert made == json.loads(_block("json"))
