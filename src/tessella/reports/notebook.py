"""Results in a notebook: the reports' look within one class, light and dark, without a script.

A notebook's own style is not changed, for every rule of ours begins with the class of our element;
and the notebook's style of tables is not ours, for that class counts twice (its specificity).
"""

from __future__ import annotations

import re
from functools import cache

from .._notebook import Display
from .rendering import templates

SCOPE = "tessella-output"
REM = 14  # pixels of our type, as notebook.css has it
RULE = re.compile(r"(?P<selectors>[^{}@]+)\{(?P<body>[^{}]*)\}")
WHOLE_PAGE = ("html", "main", "nav", "footer", "a", "h1", "h2")  # of reports only
# Who decides on the theme: the system, unless the notebook does. Jupyter marks its body, VS Code
# its own, nbconvert as Jupyter does. Later rules win over earlier ones that are as specific.
DARK_HOSTS = ('[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast")
LIGHT_HOSTS = ('[data-jp-theme-light="true"]', ".vscode-light", ".vscode-high-contrast-light")


def to_html(shown: Display) -> str:
    """Write what is shown of a result as one HTML element.

    Examples
    --------
    >>> from tessella._notebook import Display
    >>> from tessella.reports.notebook import to_html
    >>> html = to_html(Display(title="Rules on <b>", verdict=["All hold."]))
    >>> html.startswith('<div class="tessella-output">'), "Rules on &lt;b&gt;" in html
    (True, True)
    """
    drawn = shown.picture() if shown.picture else ""
    page = templates().get_template("notebook.html")
    html = page.render(scope=SCOPE, style=style(pictures=bool(drawn)), shown=shown, picture=drawn)
    return re.sub(r"\n\s*\n+", "\n", str(html)).strip()  # Markdown ends HTML at an empty line


@cache
def style(*, pictures: bool = False) -> str:
    """Return the style sheet of the reports and of notebooks, within the class of our element."""
    light, dark = _declarations("style.css")[0], _declarations("dark.css")[0]
    sheets = ["style.css", "notebook.css"]
    if pictures:
        marks = _declarations("drawing.css")
        light, dark = f"{light} {marks[0]}", f"{dark} {marks[1]}"
        sheets.append("drawing.css")
    palettes = [
        f".{SCOPE} {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ .{SCOPE} {{ {dark} }} }}",
        f"{', '.join(f'{host} .{SCOPE}' for host in DARK_HOSTS)} {{ {dark} }}",
        f"{', '.join(f'{host} .{SCOPE}' for host in LIGHT_HOSTS)} {{ {light} }}",
    ]
    return "\n".join([*palettes, *(rule for sheet in sheets for rule in _scoped(sheet))])


def _declarations(name: str) -> list[str]:
    """Return the colours of a style sheet: what each `:root` declares, the light one first."""
    found = re.findall(r":root\s*\{([^}]*)\}", _source(name))
    return [" ".join(declared.split()) for declared in found]


def _scoped(name: str) -> list[str]:
    """Return the rules of a style sheet, each for what is inside of our element only."""
    # Rules for small screens, for print and for pages begin with @, and are the page's.
    text = re.sub(r"@[^{}]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", _source(name))
    return [
        f"{', '.join(within)} {{ {' '.join(rule['body'].split())} }}"
        for rule in RULE.finditer(text)
        if (within := list(filter(None, map(_within, rule["selectors"].split(",")))))
    ]


def _within(selector: str) -> str:
    selector, ours = selector.strip(), f".{SCOPE}.{SCOPE}"
    if selector == ":root" or selector.partition(" ")[0] in WHOLE_PAGE:
        return ""
    return ours if selector in ("body", f".{SCOPE}") else f"{ours} {selector}"


def _source(name: str) -> str:
    text = str(templates().loader.get_source(templates(), name)[0])
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    # A rem is the notebook's, and differs between notebooks.
    return re.sub(r"([\d.]+)rem\b", lambda found: f"{float(found[1]) * REM:g}px", text)
