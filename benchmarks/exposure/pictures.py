"""The two pictures of the page: ranks by number of models, and predicted against true levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def pictures(found: Any, folder: Path) -> None:
    """Ranks by budget, one panel a truth; and predicted levels against true ones."""
    import altair as alt

    alt.data_transformers.disable_max_rows()
    styles = (
        ("few models", (2, 4, 8, 16, 32)),
        ("LiRA, own variance", (4, 8, 16, 32, 64)),
        ("LiRA, bayes variance", (4, 8, 16, 32, 64)),
        ("ensemble loss", (2, 4, 8, 16, 32, 64)),
        ("LT-IQR", (2, 4, 8, 16, 32)),
    )
    names = ["few models", *(found.shown(name) for name, _ in styles[1:])]
    colour = alt.Color(
        "predictor:N",
        title=None,
        sort=names,
        scale=alt.Scale(
            domain=names, range=["#1f5aa6", "#e07b1f", "#b0263d", "#2d8a4e", "#7a5aa6"]
        ),
        legend=alt.Legend(orient="top"),
    )
    axis = alt.Axis(values=[2, 4, 8, 16, 32, 64], labelOverlap=True)
    x = alt.X("models:Q", title=None, scale=alt.Scale(type="log", base=2), axis=axis)
    y = alt.Y("rank:Q", title=None, scale=alt.Scale(domain=[-0.1, 1.0]))
    panels = []
    for truth in found.truths:
        points = [
            {"predictor": shown, "models": budget, "rank": found.rank(truth, budget, name)}
            for shown, (name, budgets) in zip(names, styles, strict=True)
            for budget in budgets
        ]
        points = [point for point in points if point["rank"] == point["rank"]]
        lines = alt.Chart(alt.Data(values=points)).mark_line(point=True, strokeWidth=1.5)
        ceiling = [{"rank": found.level(truth, 64, "ceiling")}]
        rule = alt.Chart(alt.Data(values=ceiling)).mark_rule(strokeDash=[3, 3], color="#888")
        title = f"{found.label(truth)}: {found.group(truth)}"
        panels.append(
            alt.layer(rule.encode(y=y), lines.encode(x=x, y=y, color=colour)).properties(
                width=170, height=130, title=alt.Title(title, fontSize=10)
            )
        )
    ranks = alt.concat(*panels, columns=5, title="Rank correlation by models (dashed: ceiling)")
    ranks.save(folder / "exposure_ranks.png", ppi=60)

    values = []
    for budget in (4, 16):
        for truth in found.truths:
            base = {
                "models": f"{budget} models",
                "true": found.level(truth, budget, "tpr_corrected", 0),
            }
            ours = f"few models, {found.group(truth)}"
            told = {ours: "tpr_predicted", "LiRA": "tpr_lira"}
            values += [
                {**base, "what": what, "predicted": found.level(truth, budget, name, 0)}
                for what, name in told.items()
            ]
    kinds = [*(f"few models, {words}" for words in ("new", "seen before", "chosen on")), "LiRA"]
    scale = alt.Scale(type="log", domain=[0.008, 1.0], nice=False)
    dots = (
        alt.Chart()
        .mark_point(filled=True, size=45, clip=True)
        .encode(
            x=alt.X("true:Q", title="true mean TPR at 1% FPR", scale=scale),
            y=alt.Y("predicted:Q", title="predicted mean TPR", scale=scale),
            color=alt.Color(
                "what:N",
                title=None,
                sort=kinds,
                scale=alt.Scale(domain=kinds, range=["#1f5aa6", "#7a5aa6", "#999999", "#e07b1f"]),
            ),
        )
    )
    ends = alt.Data(values=[{"true": v, "predicted": v} for v in (0.008, 1.0)])
    line = (
        alt.Chart(ends).mark_line(color="#888", strokeWidth=1).encode(x="true:Q", y="predicted:Q")
    )
    charts = [
        alt.layer(
            line, dots.properties(data=alt.Data(values=[v for v in values if v["models"] == words]))
        ).properties(width=330, height=300, title=words)
        for words in ("4 models", "16 models")
    ]
    alt.hconcat(*charts).save(folder / "exposure_levels.png", ppi=60)
