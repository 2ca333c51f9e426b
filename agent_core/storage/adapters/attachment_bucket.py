"""Attachments in a bucket of an S3-compatible store, by the library obstore. Blocking."""

import re
import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from agent_core.kernel import Clock, SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.private_file import locked, replace_text
from agent_core.kernel.values import Value
from agent_core.storage.attachments import IMAGE_TYPES, TEXT, is_blob
from agent_core.storage.port import Attachment, AttachmentBucket

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Config, S3Store

RENEWED_AFTER_S: Final = 86_400.0
"""An object that is older is written again when a session names it: S3 has no other way to renew its time."""
ID_SUFFIX: Final = ".id"
"""Behind the name of the folder of attachments: the file with the id of that folder."""
METADATA_SERVICE: Final = "//169.254.169.254/"
"""Where the library asks for credentials last: machines of AWS have them there."""
_ID: Final = re.compile(r"[0-9a-f]{16}")
_VARIABLES: Final = frozenset(
    {
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME"),
        *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    }
)
_ADDRESS: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3}(?: [A-Za-z ]{1,40})?)")
_KIND: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_REASONS: Final[Mapping[str, str]] = {
    "NoSuchBucket": "the bucket does not exist; create it",
    "AccessDenied": "access is denied; allow s3:GetObject, PutObject, DeleteObject and ListBucket",
    "InvalidAccessKeyId": "the access key does not exist; set AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "the secret key is wrong; set AWS_SECRET_ACCESS_KEY",
    "403 Forbidden": "access is denied; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of the key",
    "Connect": "the store cannot be reached; check attachments.endpoint and the network",
    "Timeout": "the store did not answer in time",
    "Decode": "the answer ended early",
    "Interrupted": "the answer ended early",
}


class BucketTimes(Value, frozen=True, kw_only=True):
    """How long a request to a store may take, in seconds."""

    request_s: float = 60.0
    """One try, with the transfer of the bytes."""
    retry_s: float = 20.0
    """No try begins later than so long after the first."""
    tries: int = 4


def open_bucket(
    bucket: AttachmentBucket,
    folder: Path,
    *,
    clock: Clock | None = None,
    times: BucketTimes | None = None,
) -> "BucketAttachments":
    """Return the store of a bucket; nothing is sent yet.

    Args:
        bucket: The bucket and how it is reached.
        folder: Of attachments; its id, which is made here, begins the names of its objects, so that what another
            data folder has in the same bucket is never removed.
        clock: Time; None: the machine's.
        times: None: those of the product.

    Raises:
        StorageUnavailable: The library is not installed, the URL is none of a bucket, or the id cannot be read or made.
    """
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
        from obstore.store import S3Store  # noqa: PLC0415 - as above
    except ImportError as error:
        message = "attachments.store needs the extra s3; run pip install 'tillerd[s3]', or remove the setting."
        raise StorageUnavailable(message) from error
    times = times or BucketTimes()
    config = _config(bucket)
    endpoint = config.get("aws_endpoint_url_s3") or config.get("aws_endpoint_url", "")
    name, _, prefix = bucket.url.removeprefix("s3://").partition("/")
    try:
        # `from_url` knows no address of S3 alone (obstore 0.12).
        store = S3Store(
            name,
            prefix=prefix.strip("/") or None,
            config=cast(
                "S3Config", cast("object", config)
            ),  # its keys may also be the names of variables
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "timeout": timedelta(seconds=times.request_s),
            },
            retry_config={
                "max_retries": times.tries - 1,
                "retry_timeout": timedelta(seconds=times.retry_s),
            },
            # Stores other than AWS may have neither tags nor the removal of many objects at once.
            disable_tagging=True,
            disable_bulk_delete=True,
        )
    except (BaseError, ValueError) as error:
        message = f"attachments.store is {bucket.url!r}, which cannot be used: {_reason(error)}. Correct it."
        raise StorageUnavailable(message) from error
    return BucketAttachments(
        store, name=bucket.url, owner=_folder_id(folder), clock=clock or SystemClock()
    )


def _config(bucket: AttachmentBucket) -> dict[str, str]:
    """Return the configuration of a bucket by names of variables in lower case; settings come before the environment.

    Raises:
        StorageUnavailable: A value is none that a request can hold, on which the library would panic.
    """
    config = {name: text.strip() for name, text in bucket.env.items() if name in _VARIABLES}
    if bucket.endpoint is not None:
        config["AWS_ENDPOINT_URL_S3"] = bucket.endpoint
    if bucket.region is not None:
        config["AWS_REGION"] = bucket.region
    for name, text in config.items():
        is_address = name.startswith("AWS_ENDPOINT_URL")
        if not (text.isascii() and text.isprintable()) or (
            text and is_address and _ADDRESS.fullmatch(text) is None
        ):
            expected = (
                "an address such as https://s3.example.com" if is_address else "printable ASCII"
            )
            message = f"{name}, which attachments.store needs, is not {expected}. Correct it."
            raise StorageUnavailable(message)
    return {name.lower(): text for name, text in config.items() if text}


class BucketAttachments:
    """Attachments as objects `OWNER/SHA256`; see `AttachmentStore`."""

    def __init__(self, store: "S3Store", *, name: str, owner: str, clock: Clock) -> None:
        """Create it.

        Args:
            store: The bucket with its prefix.
            name: Name of the bucket in messages.
            owner: Id of the folder of attachments.
            clock: Time.
        """
        self._store = store
        self._name = name
        self._owner = owner
        self._clock = clock

    def get(self, blob: str, *, most: int) -> bytes | None:
        """Return the content of an object; one that is larger than `most` is not read to its end."""
        with self._reported("read"):
            try:
                result = self._store.get(self._path(blob))
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None
            data = bytearray()
            for chunk in result.stream():
                data += chunk
                if len(data) >= most:
                    break
            return bytes(data[:most])

    def put(self, attachment: Attachment, file: Path) -> bool:
        """Send a file: always, since an object of the same size may be damaged."""
        with self._reported("stored"):
            is_new = self._stored(attachment) is None
            self._send(attachment, file.read_bytes())
            return is_new

    def renew(self, attachment: Attachment, data: bytes) -> None:
        """Send bytes again if the object is old or missing."""
        with self._reported("stored"):
            stored = self._stored(attachment)
            old_s = self._clock.now_ms() / 1000 - RENEWED_AFTER_S
            if stored is None or stored["last_modified"].timestamp() < old_s:
                self._send(attachment, data)

    def link(self, blob: str, lifetime_s: float, /) -> str | None:
        """Return a presigned address of an object."""
        import obstore  # noqa: PLC0415 - an extra

        with self._reported("read"):
            if self._head(blob) is None:
                return None
            lifetime = timedelta(seconds=lifetime_s)
            return obstore.sign(self._store, "GET", self._path(blob), lifetime)

    def unused_since(self, limit_s: float) -> Iterator[str]:
        """Yield the hashes of objects that are older."""
        with self._reported("listed"):
            pages = self._store.list(f"{self._owner}/")  # pyright: ignore[reportUnknownMemberType] - its Arrow overload is untyped
            for page in pages:
                for item in page:
                    blob = item["path"].rpartition("/")[2]
                    if is_blob(blob) and item["last_modified"].timestamp() < limit_s:
                        yield blob

    def remove(self, blob: str, *, unused_since_s: float) -> bool:
        """Remove an object that is older."""
        with self._reported("removed"):
            stored = self._head(blob)
            if stored is None or stored["last_modified"].timestamp() >= unused_since_s:
                return False
            self._store.delete(self._path(blob))
            return True

    def _stored(self, attachment: Attachment) -> "ObjectMeta | None":
        stored = self._head(attachment.blob)
        return stored if stored is not None and stored["size"] == attachment.size else None

    def _head(self, blob: str) -> "ObjectMeta | None":
        try:
            return self._store.head(self._path(blob))
        except FileNotFoundError:
            return None

    def _send(self, attachment: Attachment, data: bytes) -> None:
        is_shown = attachment.mime in IMAGE_TYPES or attachment.mime == TEXT
        _ = self._store.put(
            self._path(attachment.blob),
            data,
            attributes={
                "Content-Type": attachment.mime,
                "Content-Disposition": "inline" if is_shown else "attachment",
            },
            # In one request: the parts of an upload that is cut off would stay in the bucket, and cost.
            use_multipart=False,
        )

    def _path(self, blob: str) -> str:
        return f"{self._owner}/{blob}"

    def _check_bucket(self, error: FileNotFoundError) -> None:
        if "<Code>NoSuchBucket</Code>" in str(error):
            raise self._unavailable("read", error) from error

    @contextmanager
    def _reported(self, what: str) -> Generator[None]:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            raise self._unavailable(what, error) from error

    def _unavailable(self, what: str, error: Exception) -> StorageUnavailable:
        return StorageUnavailable(
            f"Attachments cannot be {what} in {self._name} (attachments.store): {_reason(error)}. Then try again."
        )


def _reason(error: Exception) -> str:
    """Return why a request failed, in a few words: the library adds the whole answer and its own state."""
    text, _, state = str(error).partition("\n\nDebug source")
    if METADATA_SERVICE in text:
        return "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    code, status = _CODE.search(text), _STATUS.search(text)
    for match in (code, status, _KIND.search(state)):
        if match is not None and match[1] in _REASONS:
            return _REASONS[match[1]]
    if code is not None or status is not None:
        shown = ", ".join(match[1] for match in (status, code) if match is not None)
        return f"the store answers {shown}"
    return " ".join(text.rpartition(" - ")[2].split())[:200]


def _folder_id(folder: Path) -> str:
    path = folder.with_name(folder.name + ID_SUFFIX)
    try:
        if not path.exists():
            with locked(path):
                if not path.exists():
                    replace_text(path, f"{secrets.token_hex(8)}\n")
        text = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        message = f"The id of this data folder cannot be read or written at {str(path)!r}: {error}. Repair it, then try again."
        raise StorageUnavailable(message) from error
    if _ID.fullmatch(text) is None:
        message = f"{str(path)!r} holds {text[:40]!r}, and 16 hexadecimal digits were expected; restore it from a backup, or remove it to begin anew."
        raise StorageUnavailable(message)
    return text
