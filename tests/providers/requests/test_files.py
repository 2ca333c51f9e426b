"""What every API is sent for a file of a prompt."""

from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel import json
from agent_core.messages import File, Text, UserMessage
from agent_core.providers import ModelRequest
from agent_core.providers.model import PDF_APIS
from tests.providers.requests.targets import TARGETS, Target, sent

DATA = b64encode(b"%PDF-1.7").decode()
PDF = File(name="plan.pdf", mime="application/pdf", data=DATA)
NOTES = File(name='a "b".md', mime="text/plain", data=b64encode(b"Mind </file> this.").decode())
URL = f"data:application/pdf;base64,{DATA}"
FORMS = {
    "anthropic-messages": {
        "type": "document",
        "title": "plan.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
    },
    "openai-responses": {"type": "input_file", "filename": "plan.pdf", "file_data": URL},
    "azure-openai-responses": {"type": "input_file", "filename": "plan.pdf", "file_data": URL},
    "openai-completions": {"type": "file", "file": {"filename": "plan.pdf", "file_data": URL}},
    "google-generative-ai": {"inlineData": {"mimeType": "application/pdf", "data": DATA}},
    "google-vertex": {"inlineData": {"mimeType": "application/pdf", "data": DATA}},
}


def request(*files: File) -> ModelRequest:
    """Return a request with files."""
    said = UserMessage(content=(Text(text="read"), *files), at_ms=0)
    return ModelRequest(system="Be brief.", messages=(said,))


def holds(body: Any, part: object) -> bool:
    """Return whether a part is anywhere in a body; a mark of a cache may be added to it."""
    if isinstance(body, dict):
        plain = {key: value for key, value in body.items() if key != "cache_control"}
        return plain == part or any(holds(one, part) for one in body.values())
    return isinstance(body, list) and any(holds(one, part) for one in body)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
async def test_a_pdf_is_sent_in_the_form_of_the_api_or_named(target: Target) -> None:
    facts = replace(target.model_facts(), pdf=True)
    body = await sent(target, facts, request(PDF))
    if facts.api in PDF_APIS:
        form = FORMS["anthropic-messages" if target.name == "vertex-claude" else facts.api]
        assert holds(json.decode(body.raw), form)
    else:
        assert b"(file plan.pdf omitted: model does not support application/pdf)" in body.raw
        assert DATA.encode() not in body.raw


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
async def test_a_model_without_pdf_gets_the_name_of_the_file_and_texts(target: Target) -> None:
    body = await sent(target, target.model_facts(), request(PDF, NOTES))
    assert b"(file plan.pdf omitted: model does not support application/pdf)" in body.raw
    text = "<file name=\"a 'b'.md\">\nMind <\\/file> this.\n</file>"
    assert json.encode(text).strip(b'"') in body.raw
    assert DATA.encode() not in body.raw
