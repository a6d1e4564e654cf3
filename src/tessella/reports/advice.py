"""How to analyse a masked table: what each method keeps, what it changes, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["advise", "limits"]

Part = Mapping[str, Any]


def advise(part: Part) -> list[dict[str, Any]]:
    """List what a user of the table should know, method by method.

    Parameters
    ----------
    part : mapping
        The public part of a summary, as far as it is built.
    """
    told = [{"title": "First of all", "says": list(_general(part))}]
    for step in part["steps"]:
        speak = METHODS.get(step["method"])
        if speak is not None:
            title, says = speak(step["options"], part)
            told.append({"title": title, "says": says})
    return [one for one in told if one["says"]]


def limits(part: Part) -> list[str]:
    """List what the protection does not do, and what the report does not tell."""
    said = []
    if part["k"] is not None:
        within = ", within each block of columns" if len(part["blocks"]) > 1 else ""
        said.append(
            f"Groups of at least {part['k']} hide which record is whose{within}. They do not hide "
            "what all records of a group have in common."
        )
    else:
        said.append("No least number of alike records is promised by these methods.")
    kept = [str(column["name"]) for column in part["columns"] if not column["masked"]]
    if kept:
        said.append(f"Released as they are: {', '.join(kept)}.")
    if part["withheld"]:
        names = ", ".join(map(str, part["withheld"]))
        said.append(
            f"So few cells differ in {names} that figures about them, and overall figures, would "
            "tell single values: they are withheld."
        )
    if part["dominated"]:
        names = ", ".join(map(str, part["dominated"]))
        said.append(
            f"In {names} a single record is most of the variation, or of its change: figures about "
            "it are withheld, and overall figures are about the other columns."
        )
    said.append(
        "Figures of this report are rounded. It tells no figure of disclosure risk and nothing "
        "about single records; both are kept by the data holder."
    )
    return said


def _general(part: Part) -> Iterator[str]:
    weighing = [str(column["name"]) for column in part["columns"] if column["weight"]]
    if weighing:
        yield f"Records are weighted by {weighing[0]}: use it in every estimate."
    coded = [column for column in part["columns"] if column["codes"]]
    if coded:
        named = "; ".join(f"{c['name']}: {', '.join(c['codes'])}" for c in coded)
        yield f"These values stand for missing, and are no values: {named}."
    if part["order"] == "shuffled":
        yield (
            "The order of the records was drawn by chance: it means nothing, and row numbers "
            "cannot be used to join the table with another."
        )
    if part["edited"] is None or part["edited"]:
        count = "A few" if part["edited"] is None else f"{part['edited']:,}"
        yield (
            f"{count} records of the original broke a rule. They are released so that they keep "
            "all rules, and may have moved further than others."
        )
    yield (
        "Standard errors of usual formulas do not count the masking. Where a result matters, "
        "compare it with the information loss of the columns it uses."
    )


def _shrunk(part: Part) -> str:
    share = part["deviation"]
    if share is None:
        return ""
    return (
        f" Here the standard deviations of masked columns are {100 * share:.3g} % of the "
        "original ones on average; the table of columns has each."
    )


def _protect(options: Part, part: Part) -> tuple[str, list[str]]:
    if options.get("method") == "fuzzy":
        return _fuzzy(options, part)
    return "Microaggregation", [
        "Records were put into groups of similar ones, and all records of a group have the same "
        "released values. Means and totals of columns released as means are kept, in strata too; "
        "where rules ask for another point than the mean, they move as the table of columns says.",
        "Variances shrink, since differences within groups are gone; correlations tend to grow "
        f"in size.{_shrunk(part)} To correct a variance, divide the released one by the square "
        "of the column's share.",
        "Regressions are affected little where the explaining and the explained columns were "
        "masked in one block; R squared comes out too large. Counts and quantiles are those of "
        "groups: extreme quantiles are too moderate, and rare combinations are gone.",
    ]


def _ranking(options: Part, part: Part) -> tuple[str, list[str]]:
    return "Individual ranking", [
        f"Each column on its own was put in order, and neighbours in groups of at least "
        f"{options.get('k', 3)} got their mean. Means, quantiles and correlations are nearly "
        f"kept; variances shrink slightly.{_shrunk(part)}"
    ]


def _fuzzy(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    return "Fuzzy microaggregation", [
        "Each record has the values of a centre that was drawn by the record's degrees of "
        f"membership. Means are kept in expectation; variances shrink.{_shrunk(part)}",
        "The draw adds error that is independent between records: averages over many records are "
        "reliable, single records are not.",
    ]


def _noise(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    scale = float(options.get("scale", 0.1))
    says = []
    if options.get("keep_moments"):
        says.append(
            "Random noise was added, and the table was moved so that means, variances and "
            "covariances are those of the original; distributions became more normal."
        )
    else:
        says.append(
            f"Random noise with standard deviation {scale:g} times that of the column was added. "
            f"Means are kept in expectation; a variance is inflated by the factor 1 + {scale:g}² = "
            f"{1 + scale**2:.4g}: divide a released variance by it."
        )
        if options.get("correlated", True):
            says.append(
                "The noise is correlated as the columns are: correlations and slopes of linear "
                "regressions are kept in expectation; covariances are inflated by the same factor."
            )
        else:
            says.append(
                "The noise of different columns is independent: covariances are kept, and "
                f"correlations shrink by the factor {1 / (1 + scale**2):.4g}. A slope on a masked "
                "column is drawn towards zero: use methods for errors in variables, with "
                f"reliability {1 / (1 + scale**2):.4g}."
            )
    return "Noise", says


def _swapping(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    return "Rank swapping", [
        "Values were exchanged between records whose ranks differ by at most "
        f"{options.get('percent', 5):g} % of the records, each column on its own. The distribution "
        "of a column is exactly kept (where no rule moved it): means, variances and quantiles "
        "can be used as they are.",
        "Relations between columns are weakened: correlations and regression slopes are drawn "
        "towards zero, most in small groups of records.",
    ]


def _rounding(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    how = (
        "at random, so that the expected value is the value itself"
        if options.get("random")
        else "to the nearest multiple"
    )
    base = options.get("base")
    return "Rounding", [
        f"Numbers were rounded {how} (base: {_listed(base)}). The error of a value is at most "
        "one base; treat values as intervals where the base is large beside them (Sheppard: the "
        "variance is inflated by about base²/12 when rounding to the nearest)."
    ]


def _coding(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    kept = options.get("replace") == "mean"
    return "Top and bottom coding", [
        "Extreme numbers were replaced by "
        + ("their mean: means and totals are kept, " if kept else "a threshold: means move, ")
        + "variances shrink. Quantiles inside the thresholds are exact. Use methods for censored "
        "data, or robust statistics, for anything about the tails."
    ]


def _pram(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    if options.get("invariant"):
        return "PRAM", [
            "Categories were changed at random, with chances made so that expected frequencies are "
            "those of the original: frequencies of a column can be used as they are. Tables of two "
            "columns are drawn towards independence."
        ]
    matrix = (
        "The chances are given above, from a category to each other; those that are not named "
        "are 0."
        if options.get("matrix")
        else f"The matrix P has the chance {_listed(options.get('p', 0.8))} to stay on its "
        "diagonal; the other categories of the column share the rest evenly."
    )
    return "PRAM", [
        f"Categories were changed at random, independently for each record. {matrix}",
        "Observed frequencies t* are t P in expectation: estimate the original ones by "
        "t = t* P⁻¹. For a table of two masked columns multiply by the inverse matrix of each, on "
        "its side. Its variance is larger than that of the plain table.",
    ]


def _recode(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    return "Coarser categories", [
        f"Values of {options.get('column')} were put together; nothing finer can be found out "
        "from the table. All figures of this report compare with the original coded alike."
    ]


def _suppress(options: Part, part: Part) -> tuple[str, list[str]]:  # noqa: ARG001
    return "Suppressed cells", [
        "Some cells were made missing, because their records could have been recognised by what "
        "they lack. They are not missing at random: compare results with and without the records "
        "that lack a cell."
    ]


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {own}" for name, own in value.items())
    return str(value)


METHODS: dict[str, Any] = {
    "protect": _protect,
    "microaggregation": _protect,
    "individual ranking": _ranking,
    "fuzzy microaggregation": _fuzzy,
    "noise": _noise,
    "rank swapping": _swapping,
    "rounding": _rounding,
    "coding": _coding,
    "pram": _pram,
    "recode": _recode,
    "suppress": _suppress,
}
