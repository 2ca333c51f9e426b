"""The system's keyring is the last place where a key is looked for, and need not be there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

keyring = pytest.importorskip("keyring", reason="the extra `secrets` is not installed")

from keyring.backend import KeyringBackend  # noqa: E402 - see above
from keyring.backends.fail import Keyring as NoKeyring  # noqa: E402 - see above
from keyring.errors import PasswordDeleteError  # noqa: E402 - see above

from agent_core.kernel.errors import ProviderError  # noqa: E402 - see above
from agent_core.providers.auth.oauth import InKeyring  # noqa: E402 - see above
from agent_core.providers.auth.store import (  # noqa: E402 - see above
    KeyringMissing,
    drop_from_keyring,
    keep_in_keyring,
    keyring_key,
)
from tests.cli.subcommands.test_auth import run as run_auth  # noqa: E402 - see above
from tests.providers.auth.test_auth import GPT, granted, made, store  # noqa: E402 - see above


class MemoryKeyring(KeyringBackend):
    """A keyring that forgets everything at the end of the test."""

    priority = 1  # pyright: ignore[reportAssignmentType] - keyring's own way of saying it

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    before, ring = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


async def test_a_key_of_the_keyring_is_used_when_nothing_else_opens_the_provider(
    ring: MemoryKeyring, tmp_path: Path
):
    await keep_in_keyring("openai", "sk-ring")
    assert ring.kept == {("tiller", "openai"): "sk-ring"}
    auth = store(tmp_path / "auth.json")
    await auth.put("openai", InKeyring())
    assert made(auth).key_source("openai") == "keyring"
    assert await granted(made(auth), GPT) == ("sk-ring", False)
    env = made(auth, OPENAI_API_KEY="sk-env")
    assert env.key_source("openai") == "environment (OPENAI_API_KEY)"
    assert await granted(env, GPT) == ("sk-env", False)
    await drop_from_keyring("openai")
    await drop_from_keyring("openai")
    with pytest.raises(ProviderError, match="openai cannot be asked: set the environment variable"):
        _ = await granted(made(auth), GPT)


async def test_a_system_without_a_keyring_is_told_and_has_no_keys(ring: MemoryKeyring):
    keyring.set_keyring(NoKeyring())
    assert await keyring_key("openai") is None
    with pytest.raises(KeyringMissing, match="no keyring that can be used"):
        await keep_in_keyring("openai", "k")


def test_the_command_keeps_keys_in_the_keyring_and_takes_them_out_again(
    ring: MemoryKeyring, tmp_path: Path
) -> None:
    assert run_auth(tmp_path, "login", provider="together", keyring=True, stdin="sk-ring") == 0
    assert ring.kept == {("tiller", "together"): "sk-ring"}
    assert "sk-ring" not in (tmp_path / "c" / "auth.json").read_text("utf-8")
    assert run_auth(tmp_path, "logout", provider="together") == 0
    assert ring.kept == {}


def test_the_command_stores_nothing_where_there_is_no_keyring(
    ring: MemoryKeyring, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keyring.set_keyring(NoKeyring())
    assert run_auth(tmp_path, "login", provider="together", keyring=True, stdin="sk-ring") == 1
    assert "this system has no keyring that can be used" in capsys.readouterr().err
    assert not (tmp_path / "c" / "auth.json").exists()
