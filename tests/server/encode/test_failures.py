"""The core's errors as answers: what is for the model is told apart from what is for people."""

from agent_core.kernel.errors import AccessRefused
from tiller_server.lsp.encode.errors import to_rpc_error


def test_an_answer_has_the_message_without_the_advice_for_the_model() -> None:
    error = to_rpc_error(AccessRefused("a.py was not changed.", advice=" Use another file."))
    assert error.message == "a.py was not changed. Use another file."
    assert error.data == {
        "kind": AccessRefused.kind,
        "retryable": False,
        "happened": "a.py was not changed.",
    }
    plain = to_rpc_error(AccessRefused("a.py was not changed."))
    assert isinstance(plain.data, dict)
    assert "happened" not in plain.data
