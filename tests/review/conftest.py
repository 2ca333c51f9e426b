"""A repository and a provider for each test that reviews."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider
from tests.support.review.reviewing import Reviewing
from tests.support.workspace.repositories import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return an empty repository."""
    return Repository(tmp_path / "project")


@pytest.fixture
def reviewing(repository: Repository, tiller_dirs: TillerDirs) -> Iterator[Reviewing]:
    """Return a place to review in; the model has nothing to say yet."""
    with LoopbackProvider() as provider:
        given = Reviewing(repository=repository, provider=provider, dirs=tiller_dirs)
        given.configure()
        yield given
