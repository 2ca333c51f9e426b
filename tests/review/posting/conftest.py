"""A pull request on a server of ours; at the end of a test all that was sent must have had a published shape."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.review.code_host import CodeHost, serving
from tests.support.review.github_api import GitHubApi
from tests.support.review.reviews import HEAD


@pytest.fixture
def api() -> GitHubApi:
    return GitHubApi(head=HEAD, lines={"src/cart.py": set(range(5, 50)), "src/pay.py": {1, 2, 3}})


@pytest.fixture
async def host(api: GitHubApi) -> AsyncGenerator[CodeHost]:
    async with serving(api) as served:
        yield served
    assert api.problems == []
