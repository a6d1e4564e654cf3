"""Machine code compiled ahead of time: for which arguments there is some, and where it lies.

`signatures.txt` lists kernels with the forms of the arguments for which they are compiled ahead.
`build_kernels.py` compiles them with numba and links an extension module for each module of
kernels, which needs neither numba nor a compiler where it runs. Vocabulary: the *form* of an
argument is what decides which machine code fits it: of an array the type of its cells, the number
of its axes, its layout and whether it may be written to.
"""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import product
from pathlib import Path
from platform import machine
from typing import Any

import numpy as np

from ..exceptions import MachineCodeWarning

Form = Any  # a word, or a tuple of what is said above; of a named tuple its class and its forms

HERE = Path(__file__).parent
COMPILED = HERE / "compiled"
SIGNATURES = HERE / "signatures.txt"
EXTENSION = EXTENSION_SUFFIXES[0]
FORMAT = 1  # of the extension modules: those of another number are not loaded
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}  # of numba, for all kernels

# Bits of NumPy's array flags.
C_ORDER, F_ORDER, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
ASKED = C_ORDER | F_ORDER | ALIGNED | WRITEABLE
# numba takes an array in both orders (one axis, one column) for one in C's, and so does this.
LAYOUTS = {
    order | ALIGNED | write: name + ("" if write else "r")
    for order, name in ((C_ORDER, "C"), (C_ORDER | F_ORDER, "C"), (F_ORDER, "F"), (0, "A"))
    for write in (WRITEABLE, 0)
}
WORDS: dict[type, str] = {
    float: "float", bool: "bool", type(None): "none",
    np.int64: "int", np.float64: "float", np.bool_: "bool", np.float32: "single",
}  # fmt: skip
LARGEST = 2**63
BEFORE_NUMPY_2 = np.__version__.startswith("1.")


def form_of(value: Any) -> Form:
    """Return the form of an argument; one that numba would convert has a form of its own."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.ndim, LAYOUTS.get(value.flags.num & ASKED)
    if kind is int:
        return "int" if -LARGEST <= value < LARGEST else "large"
    word = WORDS.get(kind)
    if word is None and isinstance(value, tuple):
        return (kind, *map(form_of, value))
    return word or kind


def write_form(form: Form) -> str:
    """Write a form as it stands in `signatures.txt`, such as `f8.2C` or `Tree(f8.1C, int)`."""
    if isinstance(form, str):
        return form
    if isinstance(form, tuple) and isinstance(form[0], np.dtype) and form[0].isnative and form[2]:
        return f"{form[0].str[1:]}.{form[1]}{form[2]}"
    if isinstance(form, tuple) and form[0] is tuple:
        return f"({', '.join(map(write_form, form[1:]))})"
    if isinstance(form, tuple) and isinstance(form[0], type):
        name = f"{form[0].__module__.rpartition('.')[2]}.{form[0].__name__}"
        return f"{name}({', '.join(map(write_form, form[1:]))})"
    raise ValueError(f"arguments of the form {form} are not compiled ahead")


def split(text: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def read_form(text: str) -> Form:
    """Read what `write_form` writes."""
    if match := re.fullmatch(r"([a-z]\d+)\.(\d)([CFA]r?)", text):
        return np.dtype(match[1]), int(match[2]), match[3]
    if match := re.fullmatch(r"(?:(\w+)\.(\w+))?\((.*)\)", text):
        kind: Any = tuple
        if match[1]:
            kind = getattr(sys.modules[f"{__package__}.{match[1]}"], match[2])
        return (kind, *map(read_form, split(match[3])))
    return text


def signatures(module: str) -> Iterator[tuple[str, str]]:
    """Return the kernels of a module that are compiled ahead, each with forms as text."""
    for line in _all_signatures():
        name, _, forms = line.partition(": ")
        home, _, kernel = name.partition(".")
        if home == module:
            yield kernel, forms


@cache
def _all_signatures() -> list[str]:
    lines = SIGNATURES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@cache
def _source(module: str) -> tuple[bytes, frozenset[str]]:
    """Return a module's text, and the modules of kernels that it imports from.

    A test checks that no module imports another one in a form that is not found here.
    """
    text = (HERE / f"{module}.py").read_bytes()
    found = re.findall(rb"^from \.(\w+) import", text, re.MULTILINE)
    return text, frozenset(name.decode() for name in found)


def digest(module: str) -> str:
    """Return a digest of all that decides what the machine code of a module does.

    These are its text, the texts of the modules that it takes kernels and constants from, its
    signatures and the options of the compiler. Machine code of another digest is not loaded: a
    kernel that was edited is compiled by numba until it is compiled ahead again.
    """
    needed, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += _source(name)[1]
    texts = [(name, _source(name)[0]) for name in sorted(needed)]
    decides = (FORMAT, OPTIONS, list(signatures(module)), texts)
    return hashlib.sha256(repr(decides).encode()).hexdigest()[:16]


def level() -> str:
    """Return the processor's level that machine code is compiled for, empty for any processor.

    On x86-64 it is the third level (AVX2), which all processors since about 2015 have.
    """
    return "v3" if machine() in ("x86_64", "AMD64") else ""


def runs_here() -> bool:
    """Return whether this processor has what `level` asks for."""
    if not level():
        return True
    # NumPy knows, in a place that its second version has renamed. Since 2.4 it knows the level.
    core = "core" if BEFORE_NUMPY_2 else "_core"
    has = import_module(f"numpy.{core}._multiarray_umath").__cpu_features__
    features = ("X86_V3",) if "X86_V3" in has else ("AVX2", "FMA3", "F16C")
    return all(has.get(name, False) for name in features)


def place(module: str) -> Path:
    """Return where the extension module of a module of kernels is, or would be.

    What was compiled beside NumPy 1 does not run with NumPy 2.
    """
    apart = "numpy1" if BEFORE_NUMPY_2 else ""
    return COMPILED / f"{module}-{digest(module)}{level()}{apart}{EXTENSION}"


def all_there() -> bool:
    """Return whether no listed kernel needs a compiler on this machine."""
    modules = {line.partition(".")[0] for line in _all_signatures()}
    return runs_here() and all(place(module).exists() for module in modules)


@cache
def load(module: str) -> dict[str, dict[tuple[Form, ...], Callable[..., Any]]]:
    """Return the machine code of a module's kernels by the forms of arguments; none if stale.

    None, with a warning, where the system refuses the file, such as one of an older system library.
    """
    path = place(module)
    if not path.exists() or not runs_here():
        return {}
    name = f"_tessella_{module}"  # as in the function that initialises it
    loader = ExtensionFileLoader(name, str(path))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    found: dict[str, dict[tuple[Form, ...], Callable[..., Any]]] = {}
    try:
        code = module_from_spec(spec)
        loader.exec_module(code)
    except (ImportError, OSError) as error:
        warnings.warn(MachineCodeWarning(path.name, error), stacklevel=2)
        return found
    for number, (kernel, forms) in enumerate(signatures(module)):
        key = tuple(map(read_form, split(forms)))
        own, function = found.setdefault(kernel, {}), getattr(code, f"{kernel}_{number}")
        for fits in product(*map(_fitting, key)):
            own[fits] = function
    return found


def _fitting(form: Form) -> tuple[Form, ...]:
    """Return a form and those that fit it: what only reads an array may also get a writable one."""
    if isinstance(form, tuple) and isinstance(form[0], np.dtype) and form[2].endswith("r"):
        return form, (*form[:2], form[2].removesuffix("r"))
    return (form,)
