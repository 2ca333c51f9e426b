"""Counts the tokens of the corpus again, with tokenizers that ship in wheels; prints counts.json.

Needs tiktoken and tokenizers, and a folder into which the wheels of litellm and dashscope were unpacked.
"""

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
SPACES = (r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+")
O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + ENDINGS,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + ENDINGS,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        *SPACES,
    )
)
CL100K = "|".join(
    (
        ENDINGS.removesuffix("?"),
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        *SPACES,
    )
)
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
LITELLM = "litellm/litellm_core_utils/tokenizers"
RANKS = {
    "o200k_base": (f"{LITELLM}/fb374d419588a4632f3f557e76b4b70aebbca790", O200K),
    "cl100k_base": (f"{LITELLM}/9b5ad71b2ce5302211f9c61530b329a4922fc6a4", CL100K),
    "qwen": ("dashscope/resources/qwen.tiktoken", QWEN),
}
WHOLE = {
    "deepseek": f"{LITELLM}/deepseek_tokenizer.json",
    "anthropic": f"{LITELLM}/anthropic_tokenizer.json",
}


def counters(folder: Path) -> dict[str, Callable[[str], int]]:
    """Open the tokenizers."""
    # No dependencies of ours: only for who counts again.
    import tiktoken  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - as said above
    import tokenizers  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - as said above

    made: dict[str, Callable[[str], int]] = {}
    for name, (path, pattern) in RANKS.items():
        pairs = (line.split() for line in (folder / path).read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
        encoding = tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
        )
        made[name] = lambda text, encoding=encoding: len(encoding.encode_ordinary(text))
    for name, path in WHOLE.items():
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / path))
        made[name] = lambda text, tokenizer=tokenizer: len(
            tokenizer.encode(text, add_special_tokens=False).ids
        )
    return made


def main(folder: str) -> None:
    """Print the counts of every text."""
    made = counters(Path(folder))
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.txt"))}
    counts = {
        name: {tokenizer: count(text) for tokenizer, count in made.items()}
        for name, text in texts.items()
    }
    print(json.dumps(counts, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
