"""The last review of a project is stored, and its findings are rejected by their names."""

import argparse
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.kernel.errors import UsageError
from agent_core.kernel.redaction.redactor import Redactor
from tests.support.review.reviews import a_finding, a_review
from tiller_server.cli.environment import Environment
from tiller_server.cli.review.rejections import reject, rejected_findings, store_review
from tiller_server.cli.subcommands import memory

FINDINGS = (a_finding(), a_finding(line=40), a_finding("docs/a.md", 1))


def options(workspace: Path, *names: str) -> argparse.Namespace:
    return argparse.Namespace(workspace=workspace, reject=names, why="it is meant", stored=None)


def switch_on(workspace: Path, environment: Environment) -> None:
    parser = argparse.ArgumentParser()
    memory.add_arguments(parser)
    assert memory.main(parser.parse_args(["on", "-C", str(workspace)]), environment) == 0


async def test_findings_of_the_stored_review_are_rejected_by_place_and_by_prefix(
    child_env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = Environment(child_env)
    await store_review(a_review(*FINDINGS), tmp_path, child_env, Redactor())
    with pytest.raises(UsageError, match="memory is off"):
        await reject(options(tmp_path, "src/cart.py:12"), environment)
    assert await rejected_findings(tmp_path, child_env, Redactor()) == ()
    await to_thread.run_sync(switch_on, tmp_path, environment)
    with pytest.raises(UsageError, match="there is no stored review"):
        await reject(options(tmp_path, "src/cart.py:12"), environment)
    await store_review(a_review(*FINDINGS), tmp_path, child_env, Redactor())
    for name, count in (("src/cart.py:13", "no finding has"), ("", "no finding has")):
        with pytest.raises(UsageError, match=count):
            await reject(options(tmp_path, name), environment)
    names = ("src/cart.py:12", FINDINGS[1].fingerprint[:8])
    assert await reject(options(tmp_path, *names), environment) == 0
    assert "it is meant" in capsys.readouterr().err
    rejected = await rejected_findings(tmp_path, child_env, Redactor())
    assert {one.fingerprint for one in rejected} == {one.fingerprint for one in FINDINGS[:2]}
