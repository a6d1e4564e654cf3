"""What makes an estimator, before scikit-learn is loaded and after.

Groupings are scikit-learn clusterers and maskers its estimators, but scikit-learn takes a second to
load, longer than masking a small table. So the bases here have what masking itself needs of an
estimator: parameters and copies. As soon as somebody imports `sklearn.base`, its `BaseEstimator`
and `ClusterMixin` join them as bases (`_join`). Their methods then come first, so an estimator does
not depend on which of the two libraries was imported first. Nobody can ask for an instance of
`ClusterMixin` before `sklearn.base` is loaded.
"""

from __future__ import annotations

import inspect
import sys
from copy import deepcopy
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any, Self, TypeVar

BASE = "sklearn.base"


class Parameters:
    """Parameters of an estimator: the arguments of its constructor, which keeps them as they are.

    What scikit-learn alone can do loads it, and is done by its method of the same name.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep` those of estimators among them, too."""
        out: dict[str, Any] = {}
        declared = inspect.signature(type(self)).parameters.values()
        for name in sorted(one.name for one in declared if one.kind != one.VAR_KEYWORD):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                out |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
            out[name] = value
        return out

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of an estimator among them as `<parameter>__<its parameter>`."""
        if not params.keys() <= self.get_params(deep=False).keys():
            return _joined(self).set_params(**params)  # type: ignore[no-any-return]
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return repr(_joined(self))

    def __sklearn_tags__(self) -> Any:
        return _joined(self).__sklearn_tags__()

    def _repr_mimebundle_(self, **wanted: Any) -> Any:
        return _joined(self)._repr_mimebundle_(**wanted)


class Estimator(Parameters):
    """Base of all estimators: a `sklearn.base.BaseEstimator`."""


class Clusterer(Estimator):
    """Base of all clusterers: a `sklearn.base.ClusterMixin`."""

    labels_: Any

    def fit_predict(self, X: Any, y: object = None, **options: Any) -> Any:
        """Fit, with the options of `fit`, and return the group of each record."""
        self.fit(X, y, **options)  # type: ignore[attr-defined]
        return self.labels_


Copied = TypeVar("Copied")


def clone(estimator: Copied) -> Copied:
    """Return an unfitted estimator with copies of the same parameters."""
    if not isinstance(estimator, Parameters):
        from sklearn.base import clone as clone_of_scikit_learn

        return clone_of_scikit_learn(estimator)  # type: ignore[no-any-return]
    given = estimator.get_params(deep=False)
    copies = {
        name: (
            clone(value)
            if hasattr(value, "get_params") and not isinstance(value, type)
            else deepcopy(value)
        )
        for name, value in given.items()
    }
    return type(estimator)(**copies)


def refuse_unfitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's error where an estimator lacks what `fit` sets."""
    if not hasattr(estimator, attribute):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, attribute)


def _join() -> None:
    """Make the bases of scikit-learn ours; what it derives when a class is made is made up for."""
    from sklearn.base import BaseEstimator, ClusterMixin

    if Estimator.__bases__[0] is BaseEstimator:
        return
    Estimator.__bases__ = (BaseEstimator, Parameters)
    Clusterer.__bases__ = (ClusterMixin, Estimator)
    todo: list[type] = [Estimator]
    while todo:
        made = todo.pop()
        BaseEstimator.__init_subclass__.__func__(made)
        todo += made.__subclasses__()


def _joined(estimator: Any) -> Any:
    _join()  # nothing is left to do, unless somebody has loaded scikit-learn in an unusual way
    return estimator


class _Joining(MetaPathFinder):
    """Joins when `sklearn.base` is loaded, wherever it is imported.

    It stays: an import may be interrupted, or only be asked for, and be made later or again.
    """

    def find_spec(self, name: str, *where: Any) -> ModuleSpec | None:
        """Find what others find, and let the loader of that one module join when it is loaded."""
        if name != BASE:
            return None
        others = (one for one in sys.meta_path if one is not self)
        spec = next(filter(None, (one.find_spec(name, *where) for one in others)), None)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_join(module: Any) -> None:
            load(module)
            if module.__name__ == BASE:  # some loaders load more than one module
                _join()

        spec.loader.exec_module = load_and_join  # type: ignore[method-assign]
        return spec


if BASE in sys.modules:
    _join()
else:
    sys.meta_path.insert(0, _Joining())
