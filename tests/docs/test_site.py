"""The sources of the site are in order, and so is what is built from them.

The checks are in the package `website` and know nothing of the theme. Each is shown to find what
it looks for, in small pages with one mistake.
"""

from __future__ import annotations

import html as markup
import re
import runpy
from pathlib import Path

import pytest
from website.llms import full_text, index_text
from website.pages import problems_of_site
from website.pictures import DARK, with_both_themes, with_dark_colours
from website.sources import CODE, Page, Sources

from tessella.risk import ATTACKS

ROOT = Path(__file__).parents[2]
OURS = Sources.read(ROOT)


def test_links_anchors_menu_and_api_of_our_pages():
    assert OURS.problems() == []


@pytest.fixture
def small(tmp_path):
    """Two pages and a menu, without a mistake apart from the missing API."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("nav: [index.md, {Two: two.md}]")
    (tmp_path / "docs" / "index.md").write_text("# One\n\nSee [two](two.md#a-b) and [here](#one).")
    (tmp_path / "docs" / "two.md").write_text("# Two\n\n## A, b\n\n`[no](link)`\n")
    return tmp_path


def found(folder):
    return [p for p in Sources.read(folder).problems() if not p.startswith("docs/api/")]


def test_pages_in_order_have_no_problem(small):
    assert found(small) == []


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("[x](three.md)", "no such file"),
        ("![x](picture.svg)", "no such file"),
        ('<source srcset="dark.png">', "no such file"),
        ('<img src="light.png" alt="x">', "no such file"),
        ("[x](two.md#c)", "no such heading"),
        ("[x](#c)", "no such heading"),
        ("[x](/two.md)", "absolute path"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(small, added, problem):
    page = small / "docs" / "index.md"
    page.write_text(f"{page.read_text()}\n\n{added}\n")
    (line,) = found(small)
    assert problem in line
    page.write_text(f"# One\n\n```\n{added}\n```\n\n`{added}`\n")
    assert found(small) == []  # code is not a link


def test_a_page_that_the_menu_lacks_or_has_twice_is_found(small):
    (small / "docs" / "three.md").write_text("# Three\n")
    (small / "mkdocs.yml").write_text("nav: [index.md, index.md, two.md, four.md]")
    assert found(small) == [
        "docs/three.md: not in the nav of mkdocs.yml",
        "mkdocs.yml: the nav lists index.md 2 times",
        "mkdocs.yml: the nav lists four.md, which is not in docs",
    ]


def test_a_picture_that_no_page_shows_is_found(small):
    folder = small / "docs" / "pictures"
    folder.mkdir()
    for name in ("a.svg", "b-light.png", "b-dark.png"):
        (folder / name).touch()
    (folder / "a.py").touch()  # draws a.svg
    assert found(small) == [
        f"docs/pictures/{name}: no page shows it" for name in ("a.svg", "b-dark.png", "b-light.png")
    ]
    with (small / "docs" / "two.md").open("a") as page:
        page.write("\n![a](pictures/a.svg)\n\n")
        page.write(picture("pictures/b-light.png", "pictures/b-dark.png"))
    assert found(small) == []


def picture(light, dark, alt="B"):
    return (
        f'<picture>\n<source srcset="{dark}" media="(prefers-color-scheme: dark)">\n'
        f'<img src="{light}" alt="{alt}">\n</picture>\n'
    )


def test_a_picture_with_a_dark_source_follows_the_toggle_of_the_site():
    """The theme hides one of the two, by the end of its address."""
    assert with_both_themes(f"One.\n\n{picture('l.png', 'd.png')}\nTwo.") == (
        "One.\n\n![B](l.png#only-light)\n![B](d.png#only-dark)\n\nTwo."
    )


def test_each_png_of_our_pages_has_a_light_and_a_dark_one():
    """A bug once met: six of ten pictures of the app were white on the dark page."""
    for page in OURS.pages.values():
        links = {link for link in page.links() if link.endswith(".png")}
        light = {link for link in links if link.endswith("-light.png")}
        assert links == light | {link.replace("-light.png", "-dark.png") for link in light}
        written = with_both_themes(page.text)
        assert "<picture>" not in written, page.path
        assert written.count(".png#only-light)") == written.count(".png#only-dark)") == len(light)


def test_a_drawing_has_a_dark_colour_for_each_of_its_colours():
    """Bugs once met: a white box on a dark page; marks without a fill remained black."""
    for file in (ROOT / "docs" / "pictures").glob("*.svg"):
        svg = file.read_text()
        for what, colour in set(re.findall(r"(fill|stroke): (#\w{6})", svg)):
            rule = f'[style*="{what}: {colour}"] {{ {what}: {DARK[colour.upper()]} !important }}'
            assert rule in with_dark_colours(svg), file.name
        assert "dark) { svg { fill: #e8ebee }" in with_dark_colours(svg)


def test_a_public_name_without_an_entry_is_found(small):
    problems = Sources.read(small).problems()
    assert "docs/api/risk.md: no entry for tessella.risk.assess; add a line ::: tessella.risk" in (
        problems
    )
    assert "docs/api/tessella.md: no line for tessella.protect" in problems


def test_anchors_are_those_of_python_markdown():
    """By another way: the program that makes them."""
    markdown = pytest.importorskip("markdown", reason="the extra docs is not installed")
    for page in OURS.pages.values():
        reader = markdown.Markdown(extensions=["toc", "pymdownx.superfences", "attr_list"])
        made = set(re.findall(r'<h\d id="([^"]*)"', reader.convert(page.text)))
        assert page.anchors() - set(page.api_names()) == made, page.path


def html(body, head=""):
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


@pytest.fixture
def site(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "index.html").write_text(
        html('<a href="api/x.html#tessella.x.f">f</a> <a href="https://example.org">out</a>')
    )
    (tmp_path / "api" / "x.html").write_text(
        html('<h2 id="tessella.x.f">f</h2><a href="../index.html">up</a> <a href="#tessella.x.f">')
    )
    return tmp_path


NAMES = {"tessella.x": ["tessella.x.f"]}


def test_a_site_in_order_has_no_problem(site):
    assert problems_of_site(site, NAMES) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "loads //example.org/a.css"),
        (
            '<img srcset="a.png 1x, https://example.org/b.png 2x">',
            "loads https://example.org/b.png",
        ),
        ("<style>@import 'https://example.org/a.css';</style>", "loads @import 'https://example"),
        ('<p style="background: url(//example.org/a)">', "loads url(//example.org/a"),
        ('<img src="missing.svg">', "loads missing.svg, which does not exist"),
        ('<a href="missing.html">x</a>', "links to missing.html, which is not a file"),
        ('<a href="api/">x</a>', "links to api/, which is not a file"),
        ('<a href="/index.html">x</a>', "links to /index.html, which is not a file"),
        ('<a href="api/x.html#y">x</a>', "links to api/x.html#y, which has no such anchor"),
        ('<a href="#y">x</a>', "links to #y, which has no such anchor"),
    ],
)
def test_a_mistake_in_a_page_is_found(site, body, problem):
    (site / "index.html").write_text(html(f'<a href="api/x.html">x</a>{body}'))
    assert any(line.startswith(f"index.html: {problem}") for line in problems_of_site(site, NAMES))


def test_styles_lost_pages_and_missing_entries_are_found(site):
    (site / "a.css").write_text("@font-face { src: url('https://example.org/font.woff') }")
    (site / "lost.html").write_text(html('<a href="index.html">x</a>'))
    assert problems_of_site(site, {"tessella.x": ["tessella.x.f", "tessella.x.g"]}) == [
        "a.css: loads url('https://example.org/font.woff",
        "lost.html: no page that can be reached from index.html links to it",
        "api/x.html: no entry for tessella.x.g",
    ]


def test_the_index_for_programs_has_every_page_once_with_its_first_sentence():
    text = index_text(OURS)
    for path, page in OURS.pages.items():
        name = path.removesuffix(".md")
        assert text.count(f"]({name}.html)") == 1
        assert page.first_sentence, path
    assert full_text(OURS).count("<!-- ") >= len(OURS.nav()) - 24
    page = Page("a.md", "# A `b`\n\n*Motto.*\n\n| t |\n|---|\n\nFirst [one](x.md). Second one.\n")
    assert (page.title, page.first_sentence) == ("A b", "First one.")


def test_the_index_for_programs_has_one_section_for_pages_without_one():
    """A bug once met: a second and a third heading "Pages", after each section of the menu."""
    sections = re.findall(r"^## (.+)$", index_text(OURS), flags=re.MULTILINE)
    assert sections == ["Pages", "How to", "Methods", "Risk", "API"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Find groups so that\n\n    Σ x\n\nis least. The rest follows.", "The rest follows."),
        ("Find this:\n\n    Σ x\n\nIt is hard.", "Find this."),
        ("No end of a\n\n- list", ""),
    ],
)
def test_the_first_sentence_is_whole(text, sentence):
    assert Page("a.md", f"# A\n\n{text}\n").first_sentence == sentence


def test_each_first_sentence_of_our_pages_is_whole():
    """A bug once met: "into groups of at least k so that", where a formula follows."""
    for path, page in OURS.pages.items():
        assert page.first_sentence.endswith((".", "?")), path


def test_the_glossary_defines_each_term_once_and_briefly():
    text = OURS.pages["glossary.md"].text
    terms = re.findall(r"^### (.+)\n\n((?:.+\n)+)", text, flags=re.MULTILINE)
    assert len(terms) == text.count("\n### ") > 30
    assert len({name.lower() for name, _ in terms}) == len(terms)
    for name, definition in terms:
        assert definition.count("\n") <= 2, name


def test_pages_are_written_in_plain_words():
    """Bugs once met: sentences that a reader of the field had to guess."""
    odd = re.compile(r"\b(told|heard|dear|wish|wishes|mend|mends|mended|who comes from)\b", re.I)
    for page in OURS.pages.values():
        if page.path != "benchmarks.md":  # written by a program
            assert not odd.findall(CODE.sub("", page.prose)), page.path


@pytest.mark.slow
def test_the_site(tmp_path):
    """Built without a warning; every check holds in what was built."""
    pytest.importorskip("zensical", reason="the extra docs is not installed")
    from website.build import build

    build(OURS, tmp_path / "site")
    assert problems_of_site(tmp_path / "site", OURS.public_names()) == []
    assert len(list((tmp_path / "site").rglob("*.html"))) == len(OURS.pages) + 1  # and 404.html
    assert (tmp_path / "site" / "llms.txt").read_text() == index_text(OURS)
    assert not list((tmp_path / "site").glob("sitemap*"))  # a bug once met: it was empty
    risk = (tmp_path / "site" / "api" / "risk.html").read_text()
    assert "_unless" not in risk  # a bug once met: the source code of a registry
    for attack in ATTACKS.values():
        description = markup.escape(attack.description, quote=False)
        assert f"<code>{attack.name}</code>: {description}" in risk
    for page in (tmp_path / "site" / "api").glob("*.html"):
        assert not re.search(r":math:|\.\. math::|\\(?:frac|sum|leq)\b", page.read_text()), page


def test_formulas_become_text():
    pytest.importorskip("griffe", reason="the extra docs is not installed")
    from website.formulas import rewritten

    block = "So [1]_:\n\n    .. math:: \\sum_i x_i\n              \\leq 1,\n\n    done.\n\n.. [1] A"
    assert rewritten(block) == (
        "So [1]:\n\n    ```text\n    Σ_i x_i\n    ≤ 1,\n    ```\n\n    done.\n\n[1] A"
    )
    assert rewritten(r"a :math:`\bar x` b") == "a `x\u0304` b"


@pytest.mark.slow
def test_the_picture_can_be_drawn_again_and_is_small():
    Text = pytest.importorskip("matplotlib.text").Text
    FigureCanvasAgg = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg
    drawing = runpy.run_path(str(ROOT / "docs" / "pictures" / "mosaic.py"))["draw"]()
    said = [axes.get_title(loc="left") for axes in drawing.axes]
    kept = (ROOT / "docs" / "pictures" / "mosaic.svg").read_text()
    assert len(kept) < 60_000
    assert all(title in kept for title in said)
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    titles = [
        drawing.findobj(lambda one, t=title: isinstance(one, Text) and one.get_text() == t)
        for title in said
    ]
    (left, right) = [found[0].get_window_extent(canvas.get_renderer()) for found in titles]
    assert right.x0 - left.x1 > 30  # pixels; a bug once met: they read as one sentence
