"""Compile the kernels ahead of time: `python build_kernels.py [--first] [MODULE ...]`.

Without names all modules are compiled, with --first those that `tessella demo` uses. numba compiles
what `signatures.txt` lists into an extension module for each module of kernels; a C compiler
compiles the few functions of numba's own that these need, and links. Modules whose machine code is
there already are left alone. `src/tessella/kernels/ahead.py` loads the result.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "src"
NO_COMPILER = 3  # how the command ends where numba compiles on first use, and nothing is wrong
MIXIN = "tessella_kernels"  # the name under which numba's own functions initialise a module
FIRST = (
    "balance", "candidates", "gower", "groups", "neighbours", "polyhedron", "random_moves",
    "text", "tree", "windows",
)  # fmt: skip
TARGETS = {"v3": "x86-64-v3", "": ""}  # numba's names of processors, by `ahead.level`


def import_ahead() -> Any:
    """Import what loads the machine code, from this tree and not from an installation."""
    if sys.path[0] != str(SOURCE):
        sys.path.insert(0, str(SOURCE))
    return import_module("tessella.kernels.ahead")


def lengths() -> dict[str, int]:
    """Return the modules of kernels that are compiled ahead, and how much there is to compile."""
    ahead = import_ahead()
    found = {
        path.stem: sum(len(forms) for _, forms in ahead.signatures(path.stem))
        for path in ahead.HERE.glob("*.py")
    }
    return {name: length for name, length in found.items() if length}


def compiled() -> list[Path]:
    """Return the extension modules that are there."""
    places = [import_ahead().place(name) for name in sorted(lengths())]
    return [path for path in places if path.exists()]


def stale() -> list[str]:
    """Return the modules of kernels without machine code, the longest first."""
    there = set(compiled())
    found = [name for name in lengths().items() if import_ahead().place(name[0]) not in there]
    return [name for name, _ in sorted(found, key=lambda one: (-one[1], one[0]))]


def build(modules: Iterable[str], *, note: Callable[[str], object] = print) -> list[Path]:
    """Compile modules of kernels, as many at a time as there are cores; return what was made.

    What is there of older versions of these modules is removed.
    """
    ahead, modules = import_ahead(), list(modules)
    if not modules:
        return []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with tempfile.TemporaryDirectory() as folder:
        made = [ahead.place(module) for module in modules]
        ahead.COMPILED.mkdir(exist_ok=True)
        pool = ProcessPoolExecutor(cores, mp_context=get_context("spawn"))
        try:
            helpers = pool.submit(compile_helpers, folder)
            waiting = [pool.submit(compile_module, module, folder) for module in modules]
            common = helpers.result()  # without a C compiler it ends here, within seconds
            for module, target, one in zip(modules, made, waiting):
                link(Path(folder) / module, [one.result(), *common], target)
                for old in ahead.COMPILED.glob(f"{module}-*{ahead.EXTENSION}"):
                    if old != target:
                        old.unlink(missing_ok=True)
                note(f"{module}: {target.stat().st_size / 1024:,.0f} KiB")
        finally:
            pool.shutdown(cancel_futures=True)
    return made


def _compiler() -> Any:
    """Return numba's compiler of extension modules, without its warning that it may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from numba.pycc import CC
    return CC(MIXIN, source_module="tessella.kernels")


# A module gets those of numba's functions that it calls: 20 of 260 kilobytes.
APART, FEWER = (
    (["-ffunction-sections", "-fdata-sections"], ["-Wl,--gc-sections", "-Wl,-s"])
    if sys.platform.startswith("linux")
    else ([], [])
)


def compile_helpers(folder: str) -> list[str]:
    """Compile the functions of numba's own that machine code calls."""
    import_ahead()
    compiler = _compiler()
    compiler._get_extra_cflags = lambda: APART
    return list(compiler._compile_mixins(folder))


def link(work: Path, objects: list[str], target: Path) -> None:
    """Link an extension module; it appears whole or not at all, also where two builds do it."""
    compiler = _compiler()
    tools = compiler._toolchain
    part = work.with_suffix(target.suffix)
    tools.link_shared(
        str(part), objects, tools.get_python_libraries(), tools.get_python_library_dirs(),
        export_symbols=[f"PyInit__tessella_{work.name}"],
        extra_ldflags=[*compiler._get_extra_ldflags(), *FEWER],
    )  # fmt: skip
    with import_module("tessella._output").whole_or_nothing(target, overwrite=True) as file:
        file.write(part.read_bytes())


@cache
def _prepare() -> None:
    """Let numba compile only what is linked: nothing is called here.

    The kernels that other kernels call need no way in from Python and no machine code of their
    own: they are copied into those that call them, and optimised there. That takes a third off.
    Looking for garbage as often as Python does takes a fifth of the time: it is looked for where
    millions of objects have come, which keeps the memory of a process near one gigabyte.
    """
    gc.set_threshold(3_000_000, 1, 1)
    from numba.core import codegen, cpu, dispatcher

    compiler = dispatcher._FunctionCompiler
    usual = compiler._customize_flags

    def customized(self: Any, flags: Any) -> Any:
        flags = usual(self, flags)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    compiler._customize_flags = customized
    codegen.JITCodeLibrary._optimize_final_module = lambda _: None
    codegen.JITCodeLibrary._finalize_specific = lambda _: None
    # A key, of the only type that is taken.
    cpu.CPUContext.get_executable = lambda *_: [].append


def compile_module(module: str, folder: str) -> str:
    """Compile the kernels of a module into one object file, and return its path."""
    ahead = import_ahead()
    _prepare()
    from numba.core import compiler as numba_compiler
    from numba.core.registry import cpu_target
    from numba.pycc import compiler as extension

    kernels = import_module(f"tessella.kernels.{module}")
    for other in list(sys.modules.values()):
        if getattr(other, "__name__", "").startswith("tessella.kernels."):
            for one in vars(other).values():
                if hasattr(one, "_options"):
                    one._options.pop("cache", None)
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    entries = []
    for number, (name, forms) in enumerate(ahead.signatures(module)):
        function = getattr(kernels, name)
        types = tuple(_type_of(ahead.read_form(text)) for text in ahead.split(forms))
        entries.append((f"{name}_{number}", types, function))

    def compile_one(typing: Any, target: Any, function: Any, args: Any, result: Any, _: Any,
                    **other: Any) -> Any:  # fmt: skip
        # Its own flags are shared by all functions and forget what the decorator asks for.
        flags = numba_compiler.Flags()
        function.targetdescr.options.parse_as_flags(flags, function.targetoptions)
        flags.no_compile = flags.nrt = flags.no_cfunc_wrapper = True
        try:
            return numba_compiler.compile_extra(
                typing, target, function.py_func, args, result, flags, **other
            )
        except Exception as error:
            error.add_note(f"This was {module}.{function.__name__} for {args}.")
            raise

    extension.compile_extra = compile_one
    from numba.core.typing import signature

    whole = extension.ModuleCompiler(
        [extension.ExportEntry(symbol, signature(None, *types), function)
         for symbol, types, function in entries],
        f"_tessella_{module}", use_nrt=True, cpu_name=TARGETS[ahead.level()],
    )  # fmt: skip
    whole.external_init_function = f"pycc_init_{MIXIN}"
    path = str(Path(folder) / f"{module}.o")
    whole.write_native_object(path, wrap=True)
    return path


def _type_of(form: Any) -> Any:
    """Return numba's type of a form."""
    from numba import types
    from numba.np.numpy_support import from_dtype

    if isinstance(form, str):
        return {
            "int": types.int64, "large": types.uint64, "float": types.float64,
            "single": types.float32, "bool": types.boolean, "none": types.none,
        }[form]  # fmt: skip
    if isinstance(form[0], type):
        inner = tuple(map(_type_of, form[1:]))
        if form[0] is not tuple:
            return types.NamedTuple(inner, form[0])
        return types.Tuple(inner)
    cells, axes, layout = form
    return types.Array(from_dtype(cells), axes, layout[0], readonly=layout.endswith("r"))


def main() -> int:
    """Compile what the command line asks for; return NO_COMPILER where that is the reason not to.

    Any other failure is a traceback, and is tried again by the next `make`.
    """
    names = sys.argv[1:]
    if names in ([], ["--first"]):
        names = [name for name in stale() if not names or name in FIRST]
    try:
        build(names)
    except (RuntimeError, ImportError) as error:
        # setuptools finds no C compiler, or numba has dropped its compiler of extension modules.
        missing, about = "compiler", str(error)
        if isinstance(error, ImportError):
            missing, about = "numba.pycc", str(error.name)
        if missing not in about:
            raise
        print(f"There is no compiler of machine code: {error}", file=sys.stderr)
        return NO_COMPILER
    return 0


if __name__ == "__main__":
    sys.exit(main())
