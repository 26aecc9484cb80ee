"""Hooks of mkdocs: pages outside of `docs/` join the site, and what only GitHub reads is written for mkdocs."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {  # of the repository, by their place in the site
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"\[([^]\n]*)\]\(([^)#\s]+)([^)]*)\)")


def _places() -> dict[str, str]:
    """Where in the site each file outside of ``docs/`` is, by its path in the repository."""
    listed = [path for path in sorted((ROOT / "examples").iterdir()) if path.suffix in (".py", ".ipynb")]
    examples = {f"examples/{path.name}": f"examples/{path.stem}.md" for path in listed}
    return {**PAGES, **examples}


def _text(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        return "\n\n".join(map(_cell, json.loads(text)["cells"]))
    return f"# {path}\n\n```python\n{text}```\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    return f"```python\n{source}\n```" if cell["cell_type"] == "code" else source


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are outside of ``docs/``."""
    for path, place in _places().items():
        files.append(File.generated(config, place, content=_text(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to where pages are in the site, and write fences and lists as mkdocs reads them."""
    place = page.file.src_uri
    home = {site: path for path, site in _places().items()}.get(place, f"docs/{place}")
    # Code is left alone; the text between has links and lists.
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(_fence(part) if part.startswith("```") else _prose(part, home, place) for part in parts)


def _fence(block: str) -> str:
    info, _, code = block.partition("\n")
    language, *said = info.removeprefix("```").split() or ["text"]
    if language == "python" and code.startswith(">>> "):
        language = "pycon"
    title = f' title="{" ".join(said)}"' if said else ""
    return f"```{language}{title}\n{code}"


def _prose(text: str, home: str, place: str) -> str:
    text = LINK.sub(lambda found: _led(found, home, place), text)
    return re.sub(r"^(?!\s*[-|]|\s*\d+\. )(\S.*)\n(?=- |1\. )", r"\1\n\n", text, flags=re.MULTILINE)


def _led(found: re.Match[str], home: str, place: str) -> str:
    """A link, to where its page is in the site; of a file that the site does not have, its text alone."""
    text, link, rest = found.groups()
    if "://" in link:
        return found[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(home), link))
    site = target.removeprefix("docs/") if target.startswith("docs/") else _places().get(target)
    if site is None:
        if not (ROOT / target).exists():
            return found[0]  # mkdocs tells of it
        return text
    return f"[{text}]({posixpath.relpath(site, posixpath.dirname(place) or '.')}{rest})"
