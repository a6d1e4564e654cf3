"""What the site does beside mkdocs: every public name gets its place, formulas can be read.

A page of docs/api says `::: tessella.risk`. That is written out as one entry for each name of the
package's `__all__`, so that no page lags behind. Docstrings have formulas in LaTeX; the site loads
no script to set them, and writes the usual signs instead.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

PACKAGE = re.compile(r"^::: (tessella(?:\.[a-z_]+)*)$", flags=re.MULTILINE)
SIGNS = {
    r"\sum": "Σ", r"\prod": "Π", r"\max": "max", r"\min": "min", r"\log": "log", r"\exp": "exp",
    r"\lVert": "|", r"\rVert": "|", r"\lvert": "|", r"\rvert": "|", r"\|": "|", r"\infty": "∞",
    r"\leq": "≤", r"\le": "≤", r"\geq": "≥", r"\ge": "≥", r"\neq": "≠", r"\in": "∈", r"\cdot": "·",
    r"\times": "×", r"\sqrt": "√", r"\Sigma": "Σ", r"\sigma": "σ", r"\mu": "μ", r"\lambda": "λ",
    r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\theta": "θ", r"\Phi": "Φ", r"\kappa": "κ",
    r"\to": "→", r"\subseteq": "⊆", r"\cup": "∪", r"\cap": "∩", r"\quad": "  ",
    r"\,": " ", r"\;": " ",
    r"\left": "", r"\right": "", r"\!": "", r"\{": "{", r"\}": "}", r"\ldots": "…", r"\dots": "…",
    r"\approx": "≈", r"\sim": "~", r"\mid": "|", r"\pm": "±", r"\varepsilon": "ε", r"\epsilon": "ε",
}  # fmt: skip


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write out the names of a package."""
    return PACKAGE.sub(_entries, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Show formulas and references of docstrings as text."""
    html = re.sub(r"(?:\.\. )?(\[\d+\])_?(?=[\s.,:;)<])", r"\1", html)
    html = re.sub(
        r":math:<code>(.*?)</code>",
        lambda m: f"<code>{_plain(m[1])}</code>",
        html,
        flags=re.DOTALL,
    )
    return re.sub(
        r"<p>\.\. math::\s*(.*?)</p>(\s*<pre>.*?</pre>)?",
        lambda m: f"<pre><code>{_plain(m[1])}</code></pre>{_plain(m[2] or '')}",
        html,
        flags=re.DOTALL,
    )


def _entries(match: re.Match[str]) -> str:
    package = match[1]
    names = getattr(import_module(package), "__all__", None)
    return match[0] if names is None else "\n\n".join(f"::: {package}.{name}" for name in names)


def _plain(formula: str) -> str:
    for command in ("mathrm", "text", "mathbf", "operatorname", "mathcal", "boldsymbol"):
        formula = re.sub(rf"\\{command}\{{([^{{}}]*)\}}", r"\1", formula)
    formula = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1) / (\2)", formula)
    formula = re.sub(r"\\(?:bar|overline)\s*\{?(\w)\}?", "\\1\u0304", formula)
    formula = re.sub(r"\\(?:hat)\s*\{?(\w)\}?", "\\1\u0302", formula)
    for sign in sorted(SIGNS, key=len, reverse=True):
        formula = formula.replace(sign, SIGNS[sign])
    return formula
