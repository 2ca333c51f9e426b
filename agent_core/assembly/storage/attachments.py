"""The attachments of one user: in the folder beside the sessions, or in the bucket of the user's settings."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.resources.settings.values import AttachmentSettings
from agent_core.storage.adapters.attachments import Attachments, open_attachments
from agent_core.storage.adapters.paths import attachments_folder
from agent_core.storage.port import AttachmentBucket
from agent_core.storage.stored_images import session_files


def bucket_of(settings: AttachmentSettings, env: Mapping[str, str]) -> AttachmentBucket | None:
    """Return the bucket of settings; None: they name none.

    Args:
        settings: The settings in force.
        env: Environment with its credentials.
    """
    if settings.store is None:
        return None
    return AttachmentBucket(
        url=settings.store, endpoint=settings.endpoint, region=settings.region, env=env
    )


class UserAttachments:
    """The attachments of one user for those who have no session. All methods are blocking; any thread may call them."""

    def __init__(self, paths: AppPaths, env: Mapping[str, str]) -> None:
        """Create it; nothing is read yet.

        Args:
            paths: The user's files.
            env: Environment with the credentials of a bucket.
        """
        self._paths = paths
        self._env = env
        self._turn = Lock()
        self._opened: tuple[AttachmentBucket | None, Attachments] | None = None

    def now(self) -> Attachments:
        """Return the attachments as the user's settings have them now: the same object until they change.

        Raises:
            StorageUnavailable: The library for buckets is not installed, or the settings name no bucket.
        """
        bucket = bucket_of(self._settings(), self._env)
        with self._turn:
            if self._opened is None or self._opened[0] != bucket:
                folder = attachments_folder(self._paths.sessions)
                self._opened = bucket, open_attachments(folder, bucket)
            return self._opened[1]

    def link(self, blob: str) -> tuple[str, int] | None:
        """Return an address under which anyone reads an attachment, and for how many seconds.

        Returns:
            None: The settings allow no such address, or the attachment is not in the bucket.

        Raises:
            StorageUnavailable: The bucket cannot be reached, or refuses it.
        """
        lifetime_s = self._settings().link_s
        if lifetime_s is None:
            return None
        url = self.now().link(blob, lifetime_s=lifetime_s)
        return None if url is None else (url, lifetime_s)

    def collect(self, *, now_s: float) -> int:
        """Remove old attachments that no session names; return their number.

        Args:
            now_s: Unix time.

        Raises:
            OSError: A session file cannot be read; nothing was removed.
            StorageUnavailable: The bucket cannot be reached, or refuses it.
        """
        return self.now().collect(self._files(), now_s=now_s)

    def _files(self) -> Iterable[Path]:
        return session_files(self._paths.sessions)

    def _settings(self) -> AttachmentSettings:
        layers = [Layer(name="user", content=self._paths.settings)]
        return load_settings_now(layers).values.attachments
