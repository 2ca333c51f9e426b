"""Attachments in a bucket of an S3-compatible store, over real HTTP: the same rules, its faults, and what the folder has."""

import sys
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest
from anyio import to_thread
from typing_extensions import override

from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.attachment_bucket import (
    RENEWED_AFTER_S,
    BucketTimes,
    open_bucket,
)
from agent_core.storage.adapters.attachments import (
    KEPT_S,
    Attachments,
    CountedAttachments,
    open_attachments,
)
from agent_core.storage.attachments import AttachmentLimits
from agent_core.storage.port import AttachmentBucket
from tests.storage.attachment_conformance import (
    NOW_S,
    AttachmentConformance,
    AttachmentPlace,
    blob_of,
)
from tests.support.harness.clock import FakeClock
from tests.support.provider.images import PNG
from tests.support.storage.s3_server import Fault, S3Server, s3_server

QUICK = BucketTimes(request_s=0.5, retry_s=5.0, tries=2)


class BucketPlace(AttachmentPlace):
    """A bucket of its own."""

    def __init__(self, server: S3Server, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.name = server.make_bucket()
        self.clock = FakeClock()
        self._store = open_bucket(self.bucket(), folder, clock=self.clock, times=QUICK)

    def bucket(
        self, *, name: str | None = None, env: dict[str, str] | None = None
    ) -> AttachmentBucket:
        """Return how it is reached."""
        url = f"s3://{name or self.name}/some/prefix"
        return AttachmentBucket(url=url, env=self.server.env if env is None else env)

    @override
    def open(self, *, limits: AttachmentLimits | None = None) -> Attachments:
        return Attachments(self.folder, bucket=self._store, limits=limits)

    def opened(self, bucket: AttachmentBucket) -> Attachments:
        """Return the attachments with another bucket."""
        store = open_bucket(bucket, self.folder, clock=self.clock, times=QUICK)
        return Attachments(self.folder, bucket=store)

    @override
    def stored(self) -> list[str]:
        names = [key.rpartition("/")[2] for key in self.server.objects(self.name)]
        return sorted([*names, *(path.name for path in self.folder.rglob("*") if path.is_file())])

    @override
    def damage(self, blob: str, data: bytes) -> None:
        self.server.damage(self.name, self.key(blob), data)

    @override
    def age(self, blob: str, at_s: float) -> None:
        self.server.age(self.name, self.key(blob), at_s)

    def key(self, blob: str) -> str:
        """Return the key of an object."""
        (key,) = [key for key in self.server.objects(self.name) if key.endswith(f"/{blob}")]
        return key


@pytest.fixture(scope="module")
def server() -> Generator[S3Server]:
    """Run a server for the tests of this file."""
    with s3_server() as running:
        yield running


@pytest.fixture
def place(server: S3Server, tmp_path: Path) -> Generator[BucketPlace]:
    """Return a new bucket, on a server without faults."""
    yield BucketPlace(server, tmp_path / "data" / "sessions-attachments")
    server.mend()


class TestBucket(AttachmentConformance):
    @pytest.fixture
    def place(self, place: BucketPlace) -> BucketPlace:
        # Far from the times of objects: what a prompt names is renewed.
        place.clock.advance(NOW_S)
        return place


FAULTS = {
    "403": r"access is denied; (allow s3:GetObject|check AWS_ACCESS_KEY_ID)",
    "503": "the store answers 503 Service Unavailable",
    "slow": "the store did not answer in time",
    "truncated": "the answer ended early",
}


@pytest.mark.parametrize("fault", ["403", "503", "slow"])
def test_a_store_that_fails_refuses_bytes_in_one_sentence_and_keeps_no_part(
    place: BucketPlace, fault: Fault
) -> None:
    store = place.open()
    place.server.is_down = fault
    with pytest.raises(StorageUnavailable) as refused:
        _ = store.put_now(PNG)
    message = str(refused.value)
    assert message.startswith(
        f"Attachments cannot be stored in s3://{place.name}/some/prefix (attachments.store): "
    )
    assert message.endswith(". Then try again.")
    assert "Debug" not in message
    place.server.mend()
    assert place.stored() == []
    _ = store.put_now(PNG)
    assert place.stored() == [blob_of(PNG)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_fails_is_not_taken_for_one_without_the_bytes(
    place: BucketPlace, fault: Fault
) -> None:
    store = place.open()
    _ = store.put_now(PNG)
    place.server.is_down = fault
    with pytest.raises(StorageUnavailable, match=FAULTS[fault]):
        _ = store.read_now(blob_of(PNG))
    with pytest.raises(StorageUnavailable, match=FAULTS[fault]):
        _ = store.collect([], now_s=NOW_S)
    place.server.mend()
    assert store.read_now(blob_of(PNG)) is not None


@pytest.mark.parametrize("fault", ["503", "slow", "truncated"])
def test_one_failure_is_tried_again(place: BucketPlace, fault: Fault) -> None:
    store = place.open()
    place.server.faults.extend((method, fault) for method in ("HEAD", "PUT", "GET"))
    _ = store.put_now(PNG)
    found = store.read_now(blob_of(PNG))
    assert found is not None
    assert found[1] == PNG
    assert place.server.faults == []


def test_a_bucket_that_is_not_there_is_named(place: BucketPlace) -> None:
    gone = place.opened(place.bucket(name="gone-bucket"))
    why = r"s3://gone-bucket/some/prefix .*: the bucket does not exist; create it\."
    with pytest.raises(StorageUnavailable, match=rf"stored in {why}"):
        _ = gone.put_now(PNG)
    with pytest.raises(StorageUnavailable, match=rf"read in {why}"):
        _ = gone.read_now(blob_of(PNG))
    with pytest.raises(StorageUnavailable, match=rf"listed in {why}"):
        _ = gone.collect([], now_s=NOW_S)


def test_a_server_that_is_not_there_is_named(place: BucketPlace) -> None:
    env = {**place.server.env, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}
    store = place.opened(place.bucket(env=env))
    with pytest.raises(StorageUnavailable, match=r"cannot be reached; check attachments\.endpoint"):
        _ = store.put_now(PNG)


def test_the_setting_of_the_address_comes_before_the_environment(place: BucketPlace) -> None:
    env = {**place.server.env, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}
    bucket = AttachmentBucket(url=f"s3://{place.name}", endpoint=place.server.url, env=env)
    stored = place.opened(bucket).put_now(PNG)
    assert place.stored() == [stored.blob]


def test_an_object_has_the_type_of_its_bytes_and_a_page_is_text(place: BucketPlace) -> None:
    store = place.open()
    page, pdf = store.put_now(b"<script>alert(1)</script>"), store.put_now(b"%PDF-1.7\n\0")
    types = {key.rpartition("/")[2]: one for key, one in place.server.types(place.name).items()}
    assert types == {page.blob: "text/plain", pdf.blob: "application/pdf"}


def test_what_the_folder_has_from_before_is_read_there(place: BucketPlace) -> None:
    before = Attachments(place.folder).put_now(PNG)
    store = place.open()
    place.server.requests.clear()
    assert store.read_now(before.blob) == (before, PNG)
    assert place.server.requests == []


async def test_what_the_folder_has_goes_into_the_bucket_when_a_prompt_names_it(
    place: BucketPlace, tmp_path: Path
) -> None:
    before = await to_thread.run_sync(Attachments(place.folder).put_now, PNG)
    store = place.open()
    assert await CountedAttachments(lambda: store, tmp_path / "s").claim(before.blob) == before
    assert [key.rpartition("/")[2] for key in place.server.objects(place.name)] == [before.blob]


def test_unused_attachments_are_removed_in_the_folder_and_in_the_bucket(
    place: BucketPlace,
) -> None:
    _ = Attachments(place.folder).put_now(b"before")
    store = place.open()
    _ = store.put_now(b"after")
    assert store.collect([], now_s=10 * NOW_S) == 2
    assert place.stored() == []


def test_a_bucket_that_two_data_folders_use_keeps_what_the_other_has(
    place: BucketPlace, tmp_path: Path
) -> None:
    theirs = open_attachments(tmp_path / "other" / "sessions-attachments", place.bucket())
    kept, removed = theirs.put_now(b"theirs"), place.open().put_now(b"ours")
    assert place.open().collect([], now_s=10 * NOW_S) == 1
    assert place.stored() == [kept.blob]
    assert theirs.read_now(kept.blob) is not None
    assert theirs.read_now(removed.blob) is None


async def test_what_a_prompt_names_is_written_again_only_after_a_day(
    place: BucketPlace, tmp_path: Path
) -> None:
    store = place.open()
    stored = await to_thread.run_sync(store.put_now, PNG)
    stored_s = place.server.time_of(place.name, place.key(stored.blob))
    place.clock.advance(stored_s + RENEWED_AFTER_S - place.clock.now_ms() / 1000 - 1)
    counted = CountedAttachments(lambda: store, tmp_path / "s")
    place.server.requests.clear()
    _ = await counted.claim(stored.blob)
    assert [method for method, _ in place.server.requests] == ["GET", "HEAD"]
    place.clock.advance(3)
    place.server.requests.clear()
    _ = await counted.claim(stored.blob)
    assert [method for method, _ in place.server.requests] == ["GET", "HEAD", "PUT"]


def test_an_attachment_that_is_stored_again_while_sessions_are_read_is_kept(
    place: BucketPlace, tmp_path: Path
) -> None:
    store = place.open()
    stored = store.put_now(PNG)
    place.age(stored.blob, 0)

    def sessions() -> Generator[Path]:
        _ = store.put_now(PNG)
        yield tmp_path / "none.jsonl"

    assert store.collect(sessions(), now_s=KEPT_S + 1) == 0
    assert place.stored() == [stored.blob]


def test_a_link_is_read_by_anyone_until_it_ends(place: BucketPlace) -> None:
    store = place.open()
    stored = store.put_now(PNG)
    url = store.link(stored.blob, lifetime_s=90)
    assert url is not None
    assert "X-Amz-Expires=90&" in url
    answer = httpx.get(url)
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")
    assert store.link("0" * 64, lifetime_s=90) is None
    assert Attachments(place.folder).link(stored.blob, lifetime_s=90) is None


@pytest.mark.parametrize(
    ("url", "env", "why"),
    [
        ("s3://bucket/a//b", {}, r"attachments\.store is 's3://bucket/a//b', which cannot be used"),
        ("s3://bucket/../b", {}, "which cannot be used"),
        (
            "s3://bucket",
            {"AWS_ENDPOINT_URL": "http:// x"},
            "AWS_ENDPOINT_URL, .* is not an address",
        ),
        ("s3://bucket", {"AWS_ENDPOINT_URL_S3": "minio:9000"}, "_S3, .* is not an address"),
        ("s3://bucket", {"AWS_ACCESS_KEY_ID": "a\nb"}, "AWS_ACCESS_KEY_ID, .* printable ASCII"),
        ("s3://bucket", {"AWS_SESSION_TOKEN": "ü"}, "AWS_SESSION_TOKEN, .* printable ASCII"),
    ],
)
def test_values_that_cannot_be_used_are_refused_by_their_names(
    tmp_path: Path, url: str, env: dict[str, str], why: str
) -> None:
    bucket = AttachmentBucket(url=url, env=env)
    with pytest.raises(StorageUnavailable, match=why):
        _ = open_attachments(tmp_path / "a", bucket).put_now(PNG)


def test_without_credentials_the_variables_are_named(place: BucketPlace) -> None:
    env = {"AWS_ENDPOINT_URL": place.server.url}
    store = place.opened(place.bucket(env=env))
    with pytest.raises(StorageUnavailable, match="no credentials; set AWS_ACCESS_KEY_ID and"):
        _ = store.put_now(PNG)


def test_an_id_of_the_folder_that_cannot_be_used_is_named(place: BucketPlace) -> None:
    file = place.folder.with_name(f"{place.folder.name}.id")
    _ = file.write_text("../../theirs")
    with pytest.raises(StorageUnavailable, match="16 hexadecimal digits were expected"):
        _ = place.opened(place.bucket())
    file.unlink()
    file.mkdir()
    with pytest.raises(StorageUnavailable, match="cannot be read or written"):
        _ = place.opened(place.bucket())


def test_where_the_library_is_not_installed_the_error_says_so(
    place: BucketPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(StorageUnavailable, match=r"run pip install 'tillerd\[s3\]'"):
        open_attachments(place.folder, place.bucket()).put_now(PNG)


def test_the_secret_is_in_no_representation(place: BucketPlace) -> None:
    assert place.server.env["AWS_SECRET_ACCESS_KEY"] not in repr(place.bucket())
