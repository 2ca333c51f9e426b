"""Files of text and PDF in prompts: stored once, named by entries and events, and sent to models that take them."""

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from agent_core.events import MessageEnded, Notice
from agent_core.kernel.errors import AttachmentRefused, AttachmentTooLarge, FilesUnsupported
from agent_core.messages import File, Image, Text
from tests.session.test_attachments import Place, sent
from tests.support.provider.images import PNG, PNG_BASE64
from tests.support.session.scripted_model import SCRIPTED_FACTS, ScriptedModel, say
from tests.support.session.sessions import bench

PDF = b"%PDF-1.7\n%%EOF\n"
NOTES = b"Look at the corner.\n"
READS = replace(SCRIPTED_FACTS, pdf=True, api="anthropic-messages")


def inline(data: bytes, *, name: str = "plan.pdf", mime: str = "application/pdf") -> File:
    """Return a file with its bytes."""
    return File(name=name, mime=mime, data=b64encode(data).decode())


def stored(data: bytes, *, name: str = "plan.pdf", mime: str = "application/pdf") -> File:
    """Return a file as entries name it."""
    return File(name=name, mime=mime, blob=sha256(data).hexdigest(), size=len(data))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a folder without sessions."""
    return Place(tmp_path)


async def test_a_pdf_is_named_by_entries_and_events_and_sent_with_its_bytes(place: Place) -> None:
    model = ScriptedModel([say("one"), say("two")], facts=READS)
    async with place.session(model) as one:
        await one.session.prompt([Text(text="read"), inline(PDF, name="some folder/plan.pdf")])
        events = await one.idle()
    said = [event.content for event in events if isinstance(event, MessageEnded)]
    assert said[0] == (Text(text="read"), stored(PDF))
    assert sent(model) == [Text(text="read"), inline(PDF)]
    assert b64encode(PDF).decode() not in place.text
    async with place.session(model) as one:
        await one.session.prompt("again")
        await one.idle()
    assert sent(model) == [Text(text="read"), inline(PDF), Text(text="again")]


async def test_a_stored_file_is_named_by_its_hash_and_its_type_is_that_of_its_bytes(
    place: Place,
) -> None:
    model = ScriptedModel([say("one"), say("two")], facts=replace(READS, images=True))
    async with place.session(model) as one:
        await one.session.prompt([inline(NOTES, name="notes.md", mime="application/pdf")])
        await one.idle()
        blob = sha256(NOTES).hexdigest()
        other = File(name="other.md", mime="text/html", blob=blob)
        await one.session.prompt([other, inline(PNG, name="dot.pdf")])
        await one.idle()
    notes = inline(NOTES, name="notes.md", mime="text/plain")
    picture = Image(mime="image/png", data=PNG_BASE64)
    assert sent(model) == [notes, replace(notes, name="other.md"), picture]


async def test_a_pdf_for_a_model_without_pdf_is_refused_before_it_is_sent(place: Place) -> None:
    model = ScriptedModel([say("one")], facts=replace(SCRIPTED_FACTS, images=True))
    async with place.session(model) as one:
        with pytest.raises(FilesUnsupported) as refused:
            await one.session.prompt([Text(text="read"), inline(PDF)])
        assert str(refused.value) == (
            "PDF files are not sent to scripted/model-1: it takes none. Remove the files, or choose a model that "
            'takes them, or give it "input": ["text", "image", "pdf"] in models.json.'
        )
        assert one.session.info.entries == ()
        await one.session.prompt([inline(NOTES, name="notes.md", mime="text/plain")])
        await one.idle()
    assert sent(model) == [inline(NOTES, name="notes.md", mime="text/plain")]


async def test_a_file_that_is_too_large_or_of_no_known_type_is_refused(place: Place) -> None:
    model = ScriptedModel([], facts=READS)
    async with place.session(model) as one:
        with pytest.raises(AttachmentTooLarge, match=r"^long\.txt has 5\.0MB, and a prompt takes"):
            await one.session.prompt([inline(b"a" * (5 << 20), name="long.txt")])
        with pytest.raises(AttachmentTooLarge, match=r"^plan\.pdf has 21\.0MB"):
            await one.session.prompt([inline(PDF + bytes(21 << 20))])
        with pytest.raises(
            AttachmentRefused, match="is no PNG, JPEG, GIF, WebP, PDF or UTF-8 text"
        ):
            await one.session.prompt([inline(b"PK\x03\x04\xff\x00", name="a.zip")])
        with pytest.raises(AttachmentRefused, match=r"^plan\.pdf is not sent as base64"):
            await one.session.prompt([File(name="plan.pdf", mime="application/pdf", data="%%%%")])
    assert place.text == ""
    assert place.stored == []


async def test_a_session_in_memory_keeps_the_bytes_of_a_file() -> None:
    model = ScriptedModel([say("one")], facts=READS)
    async with bench(model) as one:
        await one.session.prompt([inline(PDF, mime="application/octet-stream")])
        await one.idle()
        with pytest.raises(AttachmentRefused, match=r"send the bytes of plan\.pdf"):
            await one.session.prompt([stored(PDF)])
    assert sent(model) == [inline(PDF)]


async def test_a_missing_file_is_a_text_for_the_model(place: Place) -> None:
    model = ScriptedModel([say("one"), say("two")], facts=READS)
    async with place.session(model) as one:
        await one.session.prompt([inline(PDF)])
        await one.idle()
    place.stored[0].unlink()
    async with place.session(model) as one:
        await one.session.prompt("and now?")
        events = await one.idle()
    gone = f"[File plan.pdf omitted: the attached file (application/pdf, {len(PDF)}B) is no longer stored.]"
    assert sent(model) == [Text(text=gone), Text(text="and now?")]
    assert not [event for event in events if isinstance(event, Notice)]
