"""The embedded model: repairs failing Python tests by rules, without a network or a key."""

from agent_core.providers.model import ModelInfo, Prices

EMBEDDED_FACTS = ModelInfo(
    provider="embedded",
    id="repair",
    api="embedded",
    name="Repair (rule-based, not a language model)",
    # It has no window: it reads the whole transcript each time. Compaction would only take its memory away.
    context_window=1_000_000,
    max_tokens=16_384,
    prices=Prices(input=0.0, output=0.0),
)
