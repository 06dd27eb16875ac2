"""`unbag explain`: what each column does to the predictions of a model, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbag._rules import broken, nearest
from unbag.cli._console import print_json, tell
from unbag.cli._evaluate import open_model
from unbag.cli._options import AsJson, check_output

if TYPE_CHECKING:
    from unbag.learners import Effect

PICTURES, MOST_ROWS, MOST_COLUMNS = (".svg", ".png"), 12, 8
UNITS = {"binary": "log odds", "total": "logarithm of the count", "histogram": "class score"}


def explain(
    model: Path,
    column: list[str] | None = None,
    out: Path | None = None,
    as_json: AsJson = False,
    force: bool = False,
) -> None:
    """Show what each column does to the predictions, with 95% intervals, the strongest first.

    The effects are those of the additive part of the model, on the scale of its scores: at 0 a
    value is as likely as the average event, at 0.69 its odds are twice as high.

    Example: unbag explain model.unbag --out effects.svg

    Parameters
    ----------
    column
        only this column, with all its values; repeat
    out
        also draw them: .svg or .png
    """
    check_output(out, force=force, table=False)
    if out is not None and out.suffix.lower() not in PICTURES:
        raise broken(
            f"A picture must be named {', '.join(PICTURES)}",
            f"{out.name} was given",
            "Choose such a name.",
        )
    estimator = open_model(model)
    effects, classes = chosen_effects(effects_of(estimator), column), [""]
    if estimator.kind_ == "histogram":
        classes = [str(name) for name in estimator.classes_]
    if as_json:
        print_json([effect._asdict() for effect in effects])
    else:
        print(in_words(effects, estimator.kind_, classes, whole=bool(column)))
    if out is not None:
        _draw(effects[:MOST_COLUMNS], UNITS[estimator.kind_], classes, out)
        tell(f"picture: {out}")


def effects_of(model: Any) -> list[Effect]:
    """The effects of a model's columns on its score, the strongest first."""
    effects = getattr(model.fitted_, "effects", [])
    if not effects:
        raise broken(
            "Effects must come from a model with an additive part",
            f"this one is {model.method_}",
            "Train another with unbag train --learner additive, or with its default.",
        )
    return effects


def chosen_effects(effects: list[Effect], columns: Sequence[str] | None) -> list[Effect]:
    """Those of some columns; the parts of a date are named after it."""
    names = [effect.name for effect in effects]
    for column in columns or ():
        if not any(_belongs(name, column) for name in names):
            raise broken(
                "A column must be one that the model learned from",
                f"{column!r} is none",
                f"{nearest(column, names)}Its columns are {', '.join(names)}.",
            )
    if not columns:
        return effects
    return [one for one in effects if any(_belongs(one.name, column) for column in columns)]


def _belongs(name: str, column: str) -> bool:
    return name == column or name.startswith(f"{column} ")


def in_words(
    effects: Sequence[Effect], kind: str, classes: Sequence[str], *, whole: bool = False
) -> str:
    """The effects as a table to read; of many values the first few, unless all are asked for."""
    lines = [f"Effects on the {UNITS[kind]}, with 95% intervals; the strongest column first"]
    for effect in effects:
        lines.append(f"\n{effect.name} (standard deviation {effect.strength:.2f})")
        values = list(_values(effect, classes))
        shown, most = values, max(2, MOST_ROWS // len(classes))
        if not whole and len(values) > most:  # from end to end, each with all its classes
            shown = [values[i * (len(values) - 1) // (most - 1)] for i in range(most)]
        lines += [
            f"  {name:<28} {v:+.3f} [{low:+.3f}, {high:+.3f}]"
            for rows in shown
            for name, v, low, high in rows
        ]
        if len(values) > len(shown):
            lines.append(f"  ... and {len(values) - len(shown)} more: --column {effect.name!r}")
    return "\n".join(lines)


def _values(
    effect: Effect, classes: Sequence[str]
) -> Iterator[list[tuple[str, float, float, float]]]:
    """Each value of a column: for each class its effect and interval."""
    import numpy as np

    from unbag.plots import value_text

    values, errors = (a.reshape(len(effect.at), -1) for a in (effect.effect, effect.error))
    for at, value, error in zip(effect.at, values, errors, strict=True):
        each = zip(classes, np.atleast_1d(value), np.atleast_1d(error), strict=True)
        text = value_text(at, days=effect.days)
        yield [(f"{text} {name}".strip(), v, v - 1.96 * e, v + 1.96 * e) for name, v, e in each]


def _draw(effects: Sequence[Effect], unit: str, classes: Sequence[str], out: Path) -> None:
    from unbag._io import whole
    from unbag.plots import effects_figure

    figure = effects_figure(effects, unit=unit, classes=classes)
    with whole(out) as temporary:
        figure.savefig(temporary, format=out.suffix[1:].lower(), dpi=150, facecolor="white")
