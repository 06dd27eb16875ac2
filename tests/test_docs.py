"""The pages hang together: nothing is missing from the navigation, links lead somewhere, the site
builds."""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import unbag
from cases.packages import needs

ROOT = Path(__file__).parent.parent
SITE = ROOT / "zensical.toml"
PAGES = sorted(ROOT.glob("docs/**/*.md"))
LINKED = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")

spec = importlib.util.spec_from_file_location("build_docs", ROOT / "docs" / "build.py")
build_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_docs)


def navigation(entries):
    """Every page that the navigation names, in its order."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from [below] if isinstance(below, str) else navigation(below)


NAMED = list(navigation(tomllib.loads(SITE.read_text())["project"]["nav"]))


def prose(page):
    """A page without its code."""
    return re.sub(
        r"```.*?```|`[^`\n]*`|^    .*$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


def headings(page):
    """The anchors of a page, as the site and GitHub make them."""
    titles = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_in_the_navigation_once():
    assert sorted(name for name in NAMED if not name.startswith("reference/")) == [
        path.relative_to(ROOT / "docs").as_posix() for path in PAGES
    ]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_between_pages_and_files_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


def test_the_reference_has_every_public_name():
    texts = {module: build_docs.reference(module) for module in build_docs.modules()}
    assert {f"reference/{module}.md" for module in texts} | {"reference/index.md"} >= {
        name for name in NAMED if name.startswith("reference/")
    }
    names = {name for name in unbag.__all__ if name not in texts}
    found = set(
        re.findall(r"^## (\w+)$", "\n".join([build_docs.contents(), *texts.values()]), re.MULTILINE)
    )
    assert names <= found
    assert "unbag.weights.upm(" in texts["weights"]
    assert "## brier\n\nMulti-class square loss" in texts["losses"]
    assert "```pycon\n>>> upm(" in texts["weights"]


def test_a_signature_is_written_as_in_the_source():
    node = ast.parse("def f(self, a: int, b=2, *rest, c: str = 'x', **more) -> int: ...").body[0]
    assert build_docs.signature(node, "f") == "f(a: int, b=2, *rest, c: str = 'x', **more) -> int"


def test_a_docstring_becomes_markdown():
    parameters = "Parameters\n----------\nx, y : float\n    Two of them.\n*rest : Any\n    More."
    assert build_docs.markdown(f"Say it.\n\n{parameters}\n\n>>> 1 + 1\n2\n\nEnd.") == (
        "Say it.\n\n**Parameters**\n\n- `x, y` (float): Two of them.\n- `*rest` (Any): More.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```\n\nEnd."
    )


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link(tmp_path):
    needs("zensical")
    build_docs.build(tmp_path / "build" / "docs")
    shutil.copy(SITE, tmp_path)
    words = [sys.executable, "-m", "zensical", "build", "--strict"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in NAMED:
        page = (tmp_path / "site" / name).with_suffix(".html").read_text()
        assert "<h1" in page
        assert not re.search(r'(?:src|<link[^>]*href)="https?://', page), (
            name
        )  # nothing is fetched from elsewhere


def test_the_report_of_the_experiments_is_carried_to_the_site(tmp_path, monkeypatch):
    report = tmp_path / "results" / "report"
    report.mkdir(parents=True)
    (report / "report.md").write_text(
        "# Report\n\n![log loss](adult.png) and [claims](claims.md)\n"
    )
    (report / "claims.md").write_text("# Claims\n")
    (report / "adult.png").write_bytes(b"a picture")
    monkeypatch.setattr(build_docs, "REPORT", report)
    site = tmp_path / "pages"
    build_docs.build(site)
    assert (
        "- [claims.md](report/claims.md)\n- [report.md](report/report.md)"
        in (site / "experiments.md").read_text()
    )
    assert (
        site / "report" / "report.md"
    ).read_text() == "# Report\n\n![log loss](adult.png) and [claims](claims.md)\n"
    assert (site / "report" / "adult.png").read_bytes() == b"a picture"


def test_the_numbers_of_the_methods_page_come_from_measured_pages():
    """The page repeats results of others; a new measurement there must be copied here."""
    measured = "".join(
        (ROOT / "docs" / f"{name}.md").read_text() for name in ("training", "choosing", "boosting")
    )
    numbers = re.findall(r"\b0\.\d{4}\b", (ROOT / "docs" / "methods.md").read_text())
    assert len(numbers) > 50
    assert [number for number in numbers if number not in measured] == []


def test_a_default_that_is_a_constant_shows_its_value():
    assert "rows: int = 2 ** 16" in build_docs.reference("datasets")
