"""What extensions and scripts may import beside `agent_core` itself changes only on purpose."""

from importlib import import_module
from pathlib import Path

import pytest

import agent_core
import agent_core.hooks
from agent_core.hooks.catalogue import POINTS

PACKAGE = Path(agent_core.__file__).parent
EXTENSIONS = (
    "CommandContext",
    "Completion",
    "Context",
    "ContextStale",
    "DeviceFacts",
    "ExecResult",
    "ExtensionApi",
    "ExtensionBroken",
    "ExtensionModelList",
    "ExtensionSession",
    "ListView",
    "LoginFunctions",
    "PkceFacts",
    "Row",
    "StoredTokens",
    "TableView",
    "TextView",
    "ToolArguments",
    "ToolCallContext",
    "ToolInfo",
    "ToolResult",
    "Unsupported",
    "View",
    "error_result",
    "text_result",
)
PROVIDERS = (
    "CacheRetention",
    "Model",
    "ModelInfo",
    "ModelRequest",
    "Prices",
    "StreamEvent",
    "StreamFinished",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolCallStart",
    "ToolDeclaration",
    "UsageUpdate",
    "WireApi",
)


@pytest.mark.parametrize(
    ("room", "names"),
    [
        pytest.param("extensions", EXTENSIONS, id="extensions"),
        pytest.param("providers", PROVIDERS, id="providers"),
    ],
)
def test_a_room_exports_exactly_these_names(room: str, names: tuple[str, ...]) -> None:
    module = import_module(f"agent_core.{room}")
    assert tuple(module.__all__) == names
    assert [name for name in names if not hasattr(module, name)] == []


def test_every_event_and_its_outcomes_can_be_imported_from_one_place() -> None:
    offered = set(agent_core.hooks.__all__)
    wanted = {kind.__name__ for point in POINTS.values() for kind in (point.input, *point.outcomes)}
    assert wanted - offered == set()


def test_the_types_of_the_library_are_for_others_too() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_names_of_the_stubs_are_those_that_are_loaded() -> None:
    stub = (PACKAGE / "__init__.pyi").read_text("utf-8")
    assert [name for name in agent_core.__all__ if f'"{name}"' not in stub] == []


@pytest.mark.parametrize(
    ("room", "old", "new"),
    [
        ("providers", "Answer", "StreamFinished"),
        ("providers", "ModelFacts", "ModelInfo"),
        ("hooks", "Stops", "Veto"),
    ],
)
def test_an_extension_that_uses_an_old_name_still_works(room: str, old: str, new: str) -> None:
    module = import_module(f"agent_core.{room}")
    with pytest.warns(DeprecationWarning, match=f"agent_core.{room}.{old} is called {new}"):
        assert getattr(module, old) is getattr(module, new)
    with pytest.raises(AttributeError, match="has no attribute 'Neither'"):
        _ = module.Neither
