"""The options, one function each: search, price along the way, and say what was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakscope.defences.advice import Option
from leakscope.defences.applied_defence import Defence
from leakscope.defences.dropping import DropPath, drop_exposed
from leakscope.defences.fewer_features import largest_components
from leakscope.defences.kernel_noise import NoiseLevels, NoiseScan, least_kernel_noise
from leakscope.defences.merging import least_merging
from leakscope.defences.option_pricing import Priced, Pricing
from leakscope.defences.output_noise import least_output_noise

# Output noise along its curve, in shares of the standard deviation that is needed.
SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.3, 1.7)


def output_noise_option(pricing: Pricing) -> Option:
    """The least noise on every released answer."""
    variance = least_output_noise(pricing.laws, pricing.target, pricing.reach)

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
            *_elsewhere(pricing),
        ),
    )


def _elsewhere(pricing: Pricing) -> tuple[str, ...]:
    """What noise costs against a question that is not at the record's own point."""
    if pricing.reach is not None or pricing.model.groups is not None:
        return ()
    words = "The noise is for questions at the records' own points; elsewhere one may tell more"
    reach = pricing.model.reach
    if reach is None:
        return (f"{words}, and with this kernel without bound.",)
    sigma = float(np.sqrt(least_output_noise(pricing.laws, pricing.target, reach)))
    return (f"{words}: a standard deviation of {sigma:.4g} does for one question anywhere.",)


def kernel_noise_options(pricing: Pricing) -> list[Option]:
    """The least training noise, and the cheapest pair of training and output noise."""
    levels, s2 = NoiseLevels(pricing.model), pricing.model.noise_variance
    scan = least_kernel_noise(levels, pricing.target, s2)
    top = float(scan.levels[-1]) if scan.least is None else scan.least
    beyond = [] if scan.least is None else [2.0 * top]
    grid = [*np.geomspace(s2, top, pricing.points).tolist(), *beyond]
    alone, together = [], []
    for level in grid:
        laws, defence = levels.laws(level), Defence(level)
        held = pricing.own_held_out if level == s2 else pricing.held_out(defence)
        alone.append(pricing.of_laws({"noise_variance": level}, laws, defence, held))
        variance = least_output_noise(laws, pricing.target, pricing.reach)
        both = replace(defence, output_variance=variance)
        setting = {"noise_variance": level, "output_sd": float(np.sqrt(variance))}
        together.append(pricing.of_laws(setting, laws, both, held))
    found = alone[pricing.points - 1]
    options = [
        pricing.option(
            "kernel noise",
            found,
            f"Train with noise_variance {found.setting['noise_variance']:.4g} instead of {s2:.4g}",
            alone,
            (*_scan_notes(scan), *_cheaper_beyond(pricing, found, alone)),
        )
    ]
    cheapest = min(together, key=lambda priced: priced.released.error)
    pair = cheapest.setting
    if pair["output_sd"] == 0.0 or pair["noise_variance"] == s2:
        # One of the two alone, which stands in the list already.
        return options
    options.append(
        pricing.option(
            "kernel noise + output noise",
            cheapest,
            f"Train with noise_variance {pair['noise_variance']:.4g} instead of {s2:.4g} and "
            f"add noise of standard deviation {pair['output_sd']:.4g} to every answer",
            together,
            (f"The cheapest of {len(grid)} levels, each with the least output noise it needs.",),
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


def _scan_notes(scan: NoiseScan) -> tuple[str, ...]:
    span = f"{len(scan.levels)} levels from {scan.levels[0]:.3g} to {scan.levels[-1]:.3g}"
    if scan.monotone:
        return (f"The worst falls with the noise at all of {span}.",)
    again = "; above the level found it exceeds the target again" if scan.rises_again else ""
    return (f"The worst does not always fall with the noise over {span}{again}.",)


def fewer_features_options(pricing: Pricing) -> list[Option]:
    """The largest number of principal components, and the cheapest with output noise."""
    scan, s2 = largest_components(pricing.model, pricing.target), pricing.model.noise_variance
    chosen = int(scan.counts[np.argmin(scan.worst)]) if scan.largest is None else scan.largest
    rank = scan.directions.shape[1]
    places = np.unique(np.linspace(0, len(scan.counts) - 1, pricing.points).round().astype(int))
    alone: dict[int, Priced] = {}
    together = []
    for count in sorted({*scan.counts[places].tolist(), chosen}):
        laws, defence = scan.at(count), Defence(s2, components=scan.directions[:, :count])
        held = pricing.held_out(defence)
        alone[count] = pricing.of_laws({"features": float(count)}, laws, defence, held)
        variance = least_output_noise(laws, pricing.target, pricing.reach)
        both = replace(defence, output_variance=variance)
        setting = {"features": float(count), "output_sd": float(np.sqrt(variance))}
        together.append(pricing.of_laws(setting, laws, both, held))
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
    cheapest = min(together, key=lambda priced: priced.released.error)
    pair = cheapest.setting
    if pair["output_sd"] == 0.0 or pair["features"] == rank:
        return options
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


def dropping_options(pricing: Pricing, most: float) -> list[Option]:
    """Dropping the most exposed, and the cheapest pair of dropping and output noise."""
    model = pricing.model
    path = drop_exposed(model, pricing.target, most=most)
    places = np.unique(np.linspace(0, len(path.steps) - 1, pricing.points).round().astype(int))
    alone, together = [], []
    for place in places.tolist():
        step = path.steps[place]
        if step.dropped:
            defence = Defence(model.noise_variance, rows=path.rows(model, step.dropped))
            held = pricing.held_out(defence)
        else:
            defence, held = Defence(model.noise_variance), pricing.own_held_out
        setting = {"dropped": float(step.dropped)}
        alone.append(pricing.of_measures(setting, step.worst, step.median, defence, held))
        variance = least_output_noise(step.laws, pricing.target, pricing.reach)
        both = replace(defence, output_variance=variance)
        setting = {"dropped": float(step.dropped), "output_sd": float(np.sqrt(variance))}
        together.append(pricing.of_laws(setting, step.laws, both, held))
    last = _confirmed(pricing, alone[-1], path)
    best = last if path.met else min(alone, key=lambda priced: priced.worst)
    gone, unit = int(best.setting["dropped"]), model.unit
    options = [
        pricing.option(
            "dropping",
            best,
            f"Drop {gone} of {model.units} {unit}s",
            alone,
            _drop_notes(pricing, path, most),
        )
    ]
    cheapest = min(together, key=lambda priced: priced.released.error)
    pair = cheapest.setting
    if pair["output_sd"] == 0.0 or pair["dropped"] == 0.0:
        return options
    options.append(
        pricing.option(
            "dropping + output noise",
            cheapest,
            f"Drop {int(pair['dropped'])} of {model.units} {unit}s and add noise of standard "
            f"deviation {pair['output_sd']:.4g} to every answer",
            together,
            (f"The cheapest of {len(together)} places along the order of dropping.",),
        )
    )
    return options


def _confirmed(pricing: Pricing, last: Priced, path: DropPath) -> Priced:
    """The last step by a factorisation of its own, instead of downdates of the inverse."""
    if not len(path.order):
        return last
    laws = pricing.model.only(np.flatnonzero(path.rows(pricing.model, len(path.order)) >= 0)).laws()
    values = laws.measured(pricing.target)
    return replace(last, worst=float(np.max(values)), median=float(np.median(values)))


def _drop_notes(pricing: Pricing, path: DropPath, most: float) -> tuple[str, ...]:
    unit, gone = pricing.model.unit, len(path.order)
    left = pricing.model.units - gone
    notes = [
        f"Of the {left} {unit}s left, {path.more_exposed} are more exposed than before; of the "
        f"{gone} dropped, {path.newly_exposed} met the target until others were gone."
    ]
    if not path.met:
        notes.append(
            f"Dropping did not converge: with {gone} of {pricing.model.units} {unit}s gone (at "
            f"most {most:.0%} may be), the worst of the rest is at {path.steps[-1].worst:.4g}."
        )
    return tuple(notes)


def merging_option(pricing: Pricing) -> Option:
    """The smallest size of merged groups."""
    model = pricing.model
    scan = least_merging(model, pricing.target)
    curve = []
    for entry in scan.tries:
        defence = Defence(model.noise_variance, rows=entry.rows)
        setting = {"group_size": float(entry.size), "merged": float(entry.merged)}
        curve.append(pricing.of_measures(setting, entry.worst, entry.median, defence))
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
