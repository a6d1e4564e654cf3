"""Formulas of docstrings as text.

Docstrings have formulas in LaTeX. The site loads no script to set them, so they are written with
the usual signs, before the page is made. The docstrings are read by griffe, which calls `Formulas`
for each; the setting is `extensions` of mkdocstrings in mkdocs.yml.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

SIGNS = {
    r"\sum": "Σ", r"\prod": "Π", r"\max": "max", r"\min": "min", r"\log": "log", r"\exp": "exp",
    r"\lVert": "|", r"\rVert": "|", r"\lvert": "|", r"\rvert": "|", r"\|": "|", r"\infty": "∞",
    r"\leq": "≤", r"\le": "≤", r"\geq": "≥", r"\ge": "≥", r"\neq": "≠", r"\in": "∈", r"\cdot": "·",
    r"\times": "×", r"\sqrt": "√", r"\Sigma": "Σ", r"\sigma": "σ", r"\mu": "μ", r"\lambda": "λ",
    r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\theta": "θ", r"\Phi": "Φ", r"\kappa": "κ",
    r"\to": "→", r"\subseteq": "⊆", r"\cup": "∪", r"\cap": "∩", r"\quad": "  ",
    r"\,": " ", r"\;": " ",
    r"\left": "", r"\right": "", r"\!": "", r"\{": "{", r"\}": "}", r"\ldots": "…", r"\dots": "…",
    r"\bigcap": "∩", r"\bigcup": "∪", r"\Bigl": "", r"\Bigr": "", r"\bigl": "", r"\bigr": "",
    r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉", r"\notin": "∉",
    r"\ne": "≠", r"\qquad": "    ", r"\arg": "arg", r"\forall": "∀", r"\delta": "δ",
    r"\approx": "≈", r"\sim": "~", r"\mid": "|", r"\pm": "±", r"\varepsilon": "ε", r"\epsilon": "ε",
}  # fmt: skip

BLOCK = re.compile(r"^( *)\.\. math::[ \n]*(.+(?:\n\1 +\S.*)*)$", flags=re.MULTILINE)


class Formulas(Extension):
    """Rewrites each docstring as it is read."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(docstring: str) -> str:
    r"""Return a docstring with its formulas and references to literature as plain Markdown.

    >>> rewritten(r"The ratio :math:`\frac{a}{b} \leq 1` of [1]_.")
    'The ratio `(a) / (b) ≤ 1` of [1].'
    """
    text = BLOCK.sub(_block, docstring)
    text = re.sub(r":math:`([^`]*)`", lambda m: f"`{_plain(m[1])}`", text)
    text = re.sub(r"^( *)\.\. (\[\d+\])", r"\1\2", text, flags=re.MULTILINE)
    return re.sub(r"(\[\d+\])_(?!\w)", r"\1", text)


def _block(match: re.Match[str]) -> str:
    space, formula = match.groups()
    lines = [f"{space}{line.strip()}" for line in _plain(formula).splitlines()]
    return "\n".join([f"{space}```text", *lines, f"{space}```"])


def _plain(formula: str) -> str:
    for command in ("mathrm", "text", "mathbf", "operatorname", "mathcal", "boldsymbol"):
        formula = re.sub(rf"\\{command}\{{([^{{}}]*)\}}", r"\1", formula)
    formula = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1) / (\2)", formula)
    formula = re.sub(r"\\(?:bar|overline)\s*\{?(\w)\}?", "\\1\u0304", formula)
    formula = re.sub(r"\\(?:hat)\s*\{?(\w)\}?", "\\1\u0302", formula)
    for sign in sorted(SIGNS, key=len, reverse=True):
        formula = formula.replace(sign, SIGNS[sign])
    return formula
