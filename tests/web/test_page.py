"""The page and its files, as a browser gets them."""

from pathlib import Path

import anyio
import pytest

from tests.support.clients.browsers import served
from tests.support.clients.server import Ground

SCRIPT = "const text = 'the same again and again';\n" * 200


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text('<script nonce="{{nonce}}" src="assets/app.js"></script>')
    (folder / "app.js").write_text(SCRIPT)
    (folder / "icon.svg").write_text("<svg/>")
    return folder


async def test_files_are_sent_compressed_to_browsers_that_can_read_them(
    ground: Ground, built: Path
) -> None:
    async with served(ground, page=built) as site, site.page() as page:
        zipped = await page.get("/assets/app.js")
        plain = await page.get("/assets/app.js", headers={"accept-encoding": "identity"})
        small = await page.get("/assets/icon.svg")
        _ = await anyio.Path(built / "app.js").write_text(f"{SCRIPT}//")
        changed = await page.get("/assets/app.js")
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) < len(SCRIPT) // 10
    assert zipped.text == plain.text == SCRIPT
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in small.headers
    assert changed.text.endswith("//")


async def test_each_page_has_a_nonce_of_its_own(ground: Ground, built: Path) -> None:
    async with served(ground, page=built) as site, site.page() as page:
        one, other = await page.get("/"), await page.get("/")
    for answer in (one, other):
        policy = answer.headers["content-security-policy"]
        nonce = answer.text.partition('nonce="')[2].partition('"')[0]
        assert f"script-src 'nonce-{nonce}'" in policy
    assert one.text != other.text
