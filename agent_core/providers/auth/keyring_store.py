"""Keys in the system's keyring, where the extra `secrets` is installed and the system has one."""

from importlib.util import find_spec

import anyio.to_thread

SERVICE = "tiller"


class KeyringMissing(Exception):
    """There is no keyring that can be used; the text says why."""


def can_have_keyring() -> bool:
    """Return whether the library is there; costs little and opens nothing."""
    return find_spec("keyring") is not None


async def keyring_key(provider: str) -> str | None:
    """Look a key up; None: there is none, or no keyring that can be used."""
    if not can_have_keyring():
        return None
    return await anyio.to_thread.run_sync(_get, provider)


async def keep_in_keyring(provider: str, key: str) -> None:
    """Store a key.

    Raises:
        KeyringMissing: There is no keyring that takes it.
    """
    if not can_have_keyring():
        raise KeyringMissing("the keyring needs an extra: pip install 'tillerd[secrets]'")
    await anyio.to_thread.run_sync(_set, provider, key)


async def drop_from_keyring(provider: str) -> None:
    """Forget a key, if there is one."""
    if can_have_keyring():
        await anyio.to_thread.run_sync(_delete, provider)


def _get(provider: str) -> str | None:
    import keyring  # noqa: PLC0415 - 60 ms and D-Bus, only when a key is looked for
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        return keyring.get_password(SERVICE, provider)
    except KeyringError:
        return None


def _set(provider: str, key: str) -> None:
    import keyring  # noqa: PLC0415 - see above
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        keyring.set_password(SERVICE, provider, key)
    except KeyringError as error:
        message = f"this system has no keyring that can be used ({type(error).__name__})"
        raise KeyringMissing(message) from None


def _delete(provider: str) -> None:
    import keyring  # noqa: PLC0415 - see above
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        keyring.delete_password(SERVICE, provider)
    except KeyringError:
        return
