"""The one registry of masking methods: all that the package knows of a method is in its entry.

A method is a file of this room that defines a masker and ends with
``METHOD = register(Method(name=..., masker=...))``. From this entry come the step of a study and of
a plan file, the candidates of `explore`, the attack that knows the method, and what reports advise.
The file is named like the step ("rank swapping" is `rank_swapping.py`), so that a method is
imported when somebody asks for it, not before. Methods of others are registered at run time.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

from .._types import Name
from ..exceptions import BadOptionError, UnknownOptionError

Options = Mapping[str, Any]
Text = str | Callable[[Options], str]  # a template of `str.format`, or a function of the options

# What the study knows, and a step does not give.
GIVEN = ("schema", "random_state", "rules", "weights", "constraints", "folder")


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The option that trades loss for risk: `explore` tries `values` first, then between them.

    Attributes
    ----------
    name : str
        The option.
    low, high : float
        The range that is searched.
    values : tuple of float
        What is tried first; for "k", the sizes that the caller of `explore` asks for.
    whole : bool
        Whether only whole numbers fit.
    also : tuple of str
        Options that always have the same value.
    least_records : float
        Values below this number divided by the number of records are not tried.
    """

    name: str
    low: float
    high: float
    values: tuple[float, ...] = ()
    whole: bool = False
    also: tuple[str, ...] = ()
    least_records: float = 0.0

    def between(self, low: float, high: float) -> float | int | None:
        """Return the geometric middle of two values, or None where there is nothing between."""
        middle = math.sqrt(low * high)
        if self.whole:
            near = round(middle)
            return near if low < near < high else None
        value = float(f"{middle:.3g}")
        return value if low * 1.05 < value < high / 1.05 else None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the variants of a method may depend on."""

    n_numbers: int
    has_rules: bool
    effort: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """A masking method: its masker, its step, its candidates, its attack, its advice.

    Parameters
    ----------
    name : str
        The name of the step: "rank swapping".
    masker : class, optional
        Has `fit_transform(table)`; options of the step are the arguments of its constructor.
        None where the study itself knows what to do.
    options : tuple of str
        The options of a step beside those of its masker.
    title : str or callable
        The heading of its advice in reports.
    masks : {"numbers", "categories", "both"}
        Which columns it is for.
    tuned : Tuned, optional
        The option that `explore` turns; without it `explore` does not try the method.
    defaults : mapping
        Options of a candidate that names no others, the tuned one among them.
    variants : callable
        From a `Setting` to the other options that `explore` tries, each with every value of the
        tuned one.
    label, description : str or callable
        A candidate in few words, and in full: templates with the options, or functions of them.
    groups : callable, optional
        From options and columns to the blocks within which k records share their values; without
        it, or where it returns none, no k is promised.
    posterior : bool
        Whether the masker promises, in place of equal records, that nobody is named with a
        probability above 1/k.
    step : mapping
        Options that a step has unless it gives others, where they differ from the masker's.
    attack : str
        The attack of `tessella.risk` that knows the method: a name of its registry.
    attack_options : callable
        From a masker to what its parameters tell the attack.
    advice : callable
        From the options, and facts such as the mean ratio of standard deviations ("deviation"), to
        sentences for analysts.

    Examples
    --------
    >>> from tessella.masking import registry
    >>> registry.find("rank swapping").masker.__name__
    'RankSwapping'
    >>> registry.find("rank swapping").describe({"percent": 5})
    'rank swapping within 5 % of the ranks'
    """

    name: str
    masker: type | None = None
    options: tuple[str, ...] = ()
    title: Text = ""
    masks: Literal["numbers", "categories", "both"] = "numbers"
    tuned: Tuned | None = None
    defaults: Options = field(default_factory=dict)
    variants: Callable[[Setting], Iterable[Options]] = lambda setting: ({},)  # noqa: ARG005
    label: Text = ""
    description: Text = ""
    groups: Callable[[Options, Sequence[Name]], list[list[Name]]] | None = None
    posterior: bool = False
    step: Options = field(default_factory=dict)
    attack: str = ""
    attack_options: Callable[[Any], Options] = lambda masker: {}  # noqa: ARG005
    advice: Callable[[Options, Options], Sequence[str]] = lambda options, facts: ()  # noqa: ARG005

    def __post_init__(self) -> None:
        if self.masker is not None:
            taken = inspect.signature(self.masker).parameters
            own = [name for name in taken if name not in GIVEN]
            object.__setattr__(self, "options", (*own, *self.options))

    @property
    def signature_defaults(self) -> dict[str, Any]:
        """The defaults of the masker's own constructor."""
        if self.masker is None:
            return {}
        taken = inspect.signature(self.masker).parameters.values()
        return {one.name: one.default for one in taken if one.default is not one.empty}

    def title_of(self, options: Options) -> str:
        """Return the heading of the advice for these options."""
        return _fill(self.title or self.name.capitalize(), options)

    def label_of(self, options: Options) -> str:
        """Return these options in few words, without the one that is tuned."""
        return _fill(self.label or self.name, options)

    def describe(self, options: Options) -> str:
        """Return these options in words."""
        named = ", ".join(f"{name} = {value}" for name, value in options.items())
        return _fill(self.description or f"{self.name}, {named}", options)


def _fill(text: Text, options: Options) -> str:
    return text(options) if callable(text) else text.format(**options)


_REGISTERED: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Enter a method, and return it; a name belongs to one masker."""
    known = _REGISTERED.get(method.name)
    if known is not None and _home(known) != _home(method):
        raise BadOptionError("name", method.name, "a name that no other method has")
    _REGISTERED[method.name] = method
    return method


def find(name: Any) -> Method:
    """Return the method of a name, or raise an error that lists all names."""
    if isinstance(name, str):
        if name not in _REGISTERED and (module := f".{name.replace(' ', '_')}") in _built_in():
            import_module(module, __package__)
        if name in _REGISTERED:
            return _REGISTERED[name]
    raise UnknownOptionError("method", name, methods())


def methods() -> dict[str, Method]:
    """Return all methods by name: those of the package in order of their names, then others."""
    for module in _built_in():
        import_module(module, __package__)
    return dict(sorted(_REGISTERED.items(), key=lambda entry: (entry[1] in added(), entry[0])))


def of_masker(masker: Any) -> Method | None:
    """Return the method of a masker; its file is imported, so its entry is there."""
    return next((m for m in _REGISTERED.values() if m.masker is type(masker)), None)


def added() -> list[Method]:
    """Return the methods that others have registered."""
    return [
        m for m in _REGISTERED.values() if not _home(m).startswith(f"{__name__.split('.')[0]}.")
    ]


def _built_in() -> list[str]:
    """Return the modules of this room, of which some end with a method."""
    return [f".{module.name}" for module in iter_modules([str(Path(__file__).parent)])]


def _home(method: Method) -> str:
    if method.masker is None:
        return f"tessella.{method.name}"
    return f"{method.masker.__module__}.{method.masker.__qualname__}"


def shrunk(facts: Options) -> str:
    """Return a sentence about how far standard deviations have shrunk, if that is known."""
    share = facts.get("deviation")
    if share is None:
        return ""
    return (
        f" Here the standard deviations of masked columns are {100 * share:.3g} % of the "
        "original ones on average; the table of columns has each."
    )


def listed(value: Any) -> str:
    """Return a value, or the values of columns, in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {own}" for name, own in value.items())
    return str(value)
