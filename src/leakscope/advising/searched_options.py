"""The options, one function each: search, price along the way, and say what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakscope.advising.applied_defence import Defence
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.dropping import DropPath, DropStep, drop_exposed
from leakscope.advising.fewer_features import largest_components
from leakscope.advising.kernel_noise import NoiseScan, least_kernel_noise
from leakscope.advising.merging import least_merging
from leakscope.advising.option_pricing import Priced, Pricing
from leakscope.advising.output_noise import (
    LARGEST,
    largest_output_noise,
    sought_output_noise,
    unresolved,
)
from leakscope.advising.released_error import HeldOut
from leakscope.lood import Separation
from leakscope.results import AdviceOption

# Output noise along its curve, in shares of the standard deviation that is needed.
SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.3, 1.7)

# On random halves of diabetes kernel ridge gave 0.6 to 0.8 at the penalty that promises a draw 0.2.
ONLY_A_DRAW = (
    "This holds where each answer is a draw from the process's posterior; the same number as the "
    "penalty of a deterministic fit, such as kernel ridge, gives more away."
)

# Enough noise meets every target; where it is not found, that is float64's doing.
NOT_SHOWN = "Was not shown to meet"


def output_noise_option(pricing: Pricing) -> AdviceOption:
    """The least noise on every released answer; the most where none was found."""
    variance, notes = sought_output_noise(pricing.laws, pricing.target, pricing.reach), _elsewhere
    if variance is None:
        variance = largest_output_noise(pricing.laws, pricing.target, pricing.reach)
        notes = _unresolved

    def at(amount: float) -> Priced:
        defence = Defence(pricing.model.noise_variance, output_variance=amount)
        setting = {"output_sd": float(np.sqrt(amount))}
        return pricing.of_laws(setting, pricing.laws, defence, pricing.own_held_out)

    sigma = float(np.sqrt(variance))
    return pricing.option(
        "output noise",
        at(variance),
        f"Add fresh noise of standard deviation {sigma:.4g}, in units of the target as used, to "
        "every released answer",
        [at((share * sigma) ** 2) for share in SHARES],
        (
            "An attacker who may ask m times averages the noise down to a variance of 1/m.",
            *notes(pricing),
        ),
        NOT_SHOWN,
    )


def _unresolved(pricing: Pricing) -> tuple[str, ...]:
    enough = largest_output_noise(pricing.laws, pricing.target, pricing.reach)
    words = unresolved(pricing.target, enough)
    return (f"{words[0].upper()}{words[1:]}",)


def _with_output_noise(
    pricing: Pricing,
    setting: Mapping[str, float],
    laws: Separation,
    defence: Defence,
    held: HeldOut,
) -> list[Priced]:
    """The setting with the least output noise it still needs; none where none was found."""
    variance = sought_output_noise(laws, pricing.target, pricing.reach)
    if variance is None:
        return []
    both = replace(defence, output_variance=variance)
    told = {**setting, "output_sd": float(np.sqrt(variance))}
    return [pricing.of_laws(told, laws, both, held)]


def _cheapest(together: list[Priced]) -> Priced | None:
    """The cheapest pair; None where that is one of the two alone, or where there is no pair."""
    found = min(together, key=lambda priced: priced.released.error, default=None)
    return None if found is None or found.setting["output_sd"] == 0.0 else found


def _elsewhere(pricing: Pricing) -> tuple[str, ...]:
    """What noise costs against a question that is not at the record's own point."""
    if pricing.reach is not None or pricing.model.groups is not None:
        return ()
    words = "The noise is for questions at the records' own points; elsewhere one may tell more"
    reach = pricing.model.reach
    if reach is None:
        return (f"{words}, and with this kernel without bound.",)
    variance = sought_output_noise(pricing.laws, pricing.target, reach)
    if variance is None:
        return (f"{words}.",)
    sigma = float(np.sqrt(variance))
    return (f"{words}: a standard deviation of {sigma:.4g} does for one question anywhere.",)


def kernel_noise_options(pricing: Pricing) -> list[AdviceOption]:
    """The least training noise, and the cheapest pair of training and output noise."""
    s2 = pricing.model.noise_variance
    scan = least_kernel_noise(pricing.model, pricing.target)
    top = float(scan.levels[-1]) if scan.least is None else scan.least
    beyond = [] if scan.least is None else [2.0 * top]
    grid = [*np.geomspace(s2, top, pricing.points).tolist(), *beyond]
    alone: list[Priced] = []
    together: list[Priced] = []
    for level in grid:
        laws, defence = pricing.model.at_noise(level), Defence(level)
        held = pricing.own_held_out if level == s2 else pricing.held_out(defence)
        setting = {"noise_variance": level}
        alone.append(pricing.of_laws(setting, laws, defence, held))
        together += _with_output_noise(pricing, setting, laws, defence, held)
    # Two matrices that no other option needs.
    pricing.model.forget_spectrum()
    found = alone[pricing.points - 1]
    options = [
        pricing.option(
            "kernel noise",
            found,
            f"Train with noise_variance {found.setting['noise_variance']:.4g} instead of {s2:.4g}",
            alone,
            (*_scan_notes(scan, pricing), *_cheaper_beyond(pricing, found, alone), ONLY_A_DRAW),
            NOT_SHOWN,
        )
    ]
    cheapest = _cheapest(together)
    if cheapest is None or cheapest.setting["noise_variance"] == s2:
        # One of the two alone, which stands in the list already.
        return options
    pair = cheapest.setting
    options.append(
        pricing.option(
            "kernel noise + output noise",
            cheapest,
            f"Train with noise_variance {pair['noise_variance']:.4g} instead of {s2:.4g} and "
            f"add noise of standard deviation {pair['output_sd']:.4g} to every answer",
            together,
            (
                f"The cheapest of {len(together)} levels, each with the least output noise it "
                "needs.",
                ONLY_A_DRAW,
            ),
        )
    )
    return options


def _cheaper_beyond(pricing: Pricing, found: Priced, curve: list[Priced]) -> tuple[str, ...]:
    """More noise than is needed may predict better still."""
    best = min(curve, key=lambda priced: priced.released.error)
    if not pricing.target.met(best.worst) or best.released.error >= found.released.error:
        return ()
    level = best.setting["noise_variance"]
    return (f"More is cheaper still: at {level:.4g} the error is {best.released.error:.4g}.",)


def _scan_notes(scan: NoiseScan, pricing: Pricing) -> tuple[str, ...]:
    span = f"{len(scan.levels)} levels from {scan.levels[0]:.3g} to {scan.levels[-1]:.3g}"
    if scan.least is None:
        if scan.levels[-1] >= LARGEST:
            return (f"None of {span} meets it, and the squares of higher ones leave float64.",)
        words = f"Float64 does not resolve {pricing.target.label} so finely at any of {span}"
        return (f"{words}; by a bound (Pinsker) the last is enough.",)
    if scan.monotone:
        return (f"The worst falls with the noise at all of {span}.",)
    again = "; above the level found it exceeds the target again" if scan.rises_again else ""
    return (f"The worst does not always fall with the noise over {span}{again}.",)


def fewer_features_options(pricing: Pricing) -> list[AdviceOption]:
    """The largest number of principal components, and the cheapest with output noise."""
    scan, s2 = largest_components(pricing.model, pricing.target), pricing.model.noise_variance
    chosen = int(scan.counts[np.argmin(scan.worst)]) if scan.largest is None else scan.largest
    rank = scan.directions.shape[1]
    places = np.unique(np.linspace(0, len(scan.counts) - 1, pricing.points).round().astype(int))
    alone: dict[int, Priced] = {}
    together: list[Priced] = []
    for count in sorted({*scan.counts[places].tolist(), chosen}):
        laws, defence = scan.at(count), Defence(s2, components=scan.directions[:, :count])
        held = pricing.held_out(defence)
        setting = {"features": float(count)}
        alone[count] = pricing.of_laws(setting, laws, defence, held)
        together += _with_output_noise(pricing, setting, laws, defence, held)
    words = f"of {rank} principal components of the features"
    fixed = "The components are those of all records and stay fixed when one leaves."
    options = [
        pricing.option(
            "fewer features",
            alone[chosen],
            f"Train on the first {chosen} {words}",
            list(alone.values()),
            (fixed,),
        )
    ]
    cheapest = _cheapest(together)
    if cheapest is None or cheapest.setting["features"] == rank:
        return options
    pair = cheapest.setting
    options.append(
        pricing.option(
            "fewer features + output noise",
            cheapest,
            f"Train on the first {int(pair['features'])} {words} and add noise of standard "
            f"deviation {pair['output_sd']:.4g} to every answer",
            together,
            (fixed, f"The cheapest of {len(together)} numbers of components."),
        )
    )
    return options


def dropping_options(pricing: Pricing, most: float) -> list[AdviceOption]:
    """Dropping the most exposed, and the cheapest pair of dropping and output noise."""
    model = pricing.model
    path = drop_exposed(model, pricing.target, most=most)
    places = np.linspace(0, len(path.steps) - 1, pricing.points).round().astype(int).tolist()
    alone: list[Priced] = []
    together: list[Priced] = []
    along = {path.steps[place].dropped: path.steps[place] for place in places}
    for _, step in sorted({**along, path.best.dropped: path.best}.items()):
        if step.dropped:
            defence = Defence(model.noise_variance, rows=path.rows(model, step.dropped))
            held = pricing.held_out(defence)
        else:
            defence, held = Defence(model.noise_variance), pricing.own_held_out
        setting = {"dropped": float(step.dropped)}
        trusted = bool(step.laws.trusted.all())
        alone.append(
            pricing.of_measures(setting, step.worst, step.median, defence, held, trusted=trusted)
        )
        together += _with_output_noise(pricing, setting, step.laws, defence, held)
    best = next(priced for priced in alone if priced.setting["dropped"] == path.best.dropped)
    best = _confirmed(pricing, best, path.best)
    gone, unit = path.best.dropped, model.unit
    options = [
        pricing.option(
            "dropping",
            best,
            f"Drop {gone} of {model.units} {unit}s",
            alone,
            drop_notes(unit, model.units, pricing.target, path, most),
        )
    ]
    cheapest = _cheapest(together)
    if cheapest is None or cheapest.setting["dropped"] == 0.0:
        return options
    pair = cheapest.setting
    options.append(
        pricing.option(
            "dropping + output noise",
            cheapest,
            f"Drop {int(pair['dropped'])} of {model.units} {unit}s and add noise of standard "
            f"deviation {pair['output_sd']:.4g} to every answer",
            together,
            (f"The cheapest of {len(together)} numbers of {unit}s to drop that were tried.",),
        )
    )
    return options


def _confirmed(pricing: Pricing, found: Priced, step: DropStep[Separation]) -> Priced:
    """A step by a factorisation of its own, instead of downdates of the inverse."""
    if not step.dropped:
        return found
    left = found.defence.kept(len(pricing.model.features))
    laws = pricing.model.only(left).separation()
    values = laws.measured(pricing.target.measured)
    return replace(
        found,
        worst=float(np.max(values)),
        median=float(np.median(values)),
        trusted=bool(laws.trusted.all()),
    )


def drop_notes(
    unit: str, units: int, target: AuditTarget, path: DropPath[Any], most: float
) -> tuple[str, ...]:
    """What dropping did to the others, and whether it came to an end."""
    best, last = path.best, path.steps[-1]
    notes = [
        f"This makes {best.more_exposed} of the {units - best.dropped} other {unit}s more exposed."
    ]
    if best.newly_exposed:
        notes[0] = (
            f"{notes[0][:-1]}; {best.newly_exposed} of the {best.dropped} met the target before "
            "others were dropped."
        )
    if not best.dropped:
        notes = [f"Whichever {unit}s were dropped, the worst of the rest was no less exposed."]
    if not path.met:
        notes.append(
            f"Dropping stopped at {last.dropped} of {units} {unit}s (at most {most:.0%} may go), "
            f"where the worst of the rest is at {target.shown(last.worst)}."
        )
    return tuple(notes)


def merging_option(pricing: Pricing) -> AdviceOption:
    """The smallest size of merged groups."""
    model = pricing.model
    scan = least_merging(model, pricing.target)
    curve = []
    for entry in scan.tries:
        defence = Defence(model.noise_variance, rows=entry.rows)
        setting = {"group_size": float(entry.size), "merged": float(entry.merged)}
        curve.append(
            pricing.of_measures(setting, entry.worst, entry.median, defence, trusted=entry.trusted)
        )
    found = curve[-1] if scan.found is not None else min(curve, key=lambda priced: priced.worst)
    size, merged = int(found.setting["group_size"]), int(found.setting["merged"])
    return pricing.option(
        "merging",
        found,
        f"Replace {merged} of {model.units} records by the means of groups of {size} neighbours, "
        f"{int(found.defence.rows.max()) + 1 if found.defence.rows is not None else 0} rows in all",
        curve,
        (
            "Met against every set of queries to one trained model; which records are merged is "
            "taken as fixed.",
        ),
    )
