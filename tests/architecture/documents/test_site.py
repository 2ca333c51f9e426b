"""The documentation site builds without a warning, and its pages load nothing from other machines."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT

MKDOCS = ROOT / ".venv/bin/mkdocs"
needs_mkdocs = pytest.mark.skipif(
    not MKDOCS.exists(), reason="MkDocs is not installed; run: make docs-setup"
)
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=[\"']?(?:https?:)?//"
    r"|\bclass=[\"']?mermaid"  # its script would come from a network of other people
)


@needs_mkdocs
@pytest.mark.timeout(120)
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(
    tmp_path: Path, covered_env: dict[str, str]
) -> None:
    built = _build(ROOT / "mkdocs.yml", tmp_path / "site/0.1.0", covered_env)
    assert (built.returncode, "WARNING" in built.stderr) == (0, False), built.stderr
    pages = [*(tmp_path / "site/0.1.0").rglob("*.html")]
    assert len(pages) > 40
    loading = [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))]
    assert loading == []
    assert '"version": "0.1.0"' in (tmp_path / "site/versions.json").read_text(encoding="utf-8")


@needs_mkdocs
@pytest.mark.timeout(60)
@pytest.mark.parametrize("link", ["gone.md", "settings.md#no-such-heading"])
def test_a_broken_link_fails_the_build(
    tmp_path: Path, covered_env: dict[str, str], link: str
) -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text(f"# Start\n\n[a]({link})\n", encoding="utf-8")
    (docs / "settings.md").write_text("# Settings\n", encoding="utf-8")
    # The same rules without the hook, which reads the pages of the repository.
    text = re.sub(
        r"^(hooks|not_in_nav|nav):.*?(?=^\w|\Z)", "", text, flags=re.MULTILINE | re.DOTALL
    )
    (tmp_path / "mkdocs.yml").write_text(text, encoding="utf-8")
    built = _build(tmp_path / "mkdocs.yml", tmp_path / "site", covered_env)
    assert built.returncode == 1
    assert link.partition("#")[0] in built.stdout + built.stderr


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/a.js">',
        '<link href="//fonts.example/a.css" rel="stylesheet">',
        '<pre class="mermaid">',
    ],
)
def test_what_a_page_would_load_is_noticed(text: str) -> None:
    assert LOADED.search(text)


def _build(config: Path, site: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MKDOCS, "build", "--strict", "-f", config, "--site-dir", site],
        cwd=config.parent,
        env=env | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
