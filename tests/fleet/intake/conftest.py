"""An intake for three forges over SQLite."""

from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from tests.support.fleet.webhooks import SECRET
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.intake.routes import FleetIntake, IntakeOptions
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.slots import SlotStore

TOKEN = "fleet-token"


def a_forge(name: str, kind: str) -> Forge:
    return Forge(
        name=name,
        kind=kind,  # pyright: ignore[reportArgumentType] - one of three
        api_url="http://127.0.0.1:9",
        graphql_url="http://127.0.0.1:9/graphql",
        clone_url="file:///nowhere",
        webhook_secret=SECRET,
        repos=("team/*",),
    )


@pytest.fixture
def database(tmp_path: Path) -> FleetDatabase:
    made = FleetDatabase(f"sqlite:///{tmp_path}/fleet.db")
    made.migrate()
    SlotStore(made).make(2)
    return made


@pytest.fixture
def intake(database: FleetDatabase) -> FleetIntake:
    options = IntakeOptions(
        token_sha256=sha256(TOKEN.encode()).hexdigest(), most_body_bytes=20_000, provider="lab"
    )
    kinds = ("github", "gitlab", "gitea")
    return FleetIntake(database, {kind: a_forge(kind, kind) for kind in kinds}, options)


@pytest.fixture
async def client(intake: FleetIntake, database: FleetDatabase) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=intake.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://fleet") as made:
        yield made
    database.close()
