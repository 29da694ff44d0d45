"""``--secret``: from a table, a pipeline, an array and the command line to a page and a form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leakscope
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.reporting.audit_page import audit_html
from leakscope.results import Audit
from leakscope.results.reader import read_run
from leakscope.settings import ModelSettings
from leakscope.subjects.fit.secret import secret_column
from leakscope.subjects.fit.subject import Fit
from leakscope.subjects.subject import Asked, Stages

SIZE = 120


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], SIZE)
    age = rng.uniform(20.0, 70.0, SIZE).round(2)
    region = rng.choice(["north", "south", "west"], SIZE)
    height = 165.0 + 12.0 * (sex == "m") + rng.normal(0.0, 6.0, SIZE)
    ill = 0.05 * (age - 45) + 0.8 * (sex == "m") + rng.normal(size=SIZE) > 0.3
    return pd.DataFrame(
        {
            "age": age,
            "height": height.round(1),
            "sex": sex,
            "region": region,
            "ill": np.where(ill, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def audited(people: pd.DataFrame) -> Audit:
    return leakscope.audit_frame(people, target="ill", model="logistic", C=1.0, secret="sex")


def test_three_chances_and_the_difference_of_the_last_two(audited: Audit) -> None:
    found = audited.details.secret_attribute()
    table = audited.to_frame()
    assert found.column == "sex"
    assert found.values == 2
    assert found.prior == "imputed"
    assert np.allclose(table.secret_leak, table.secret_with - table.secret_without)
    assert (table.secret_leak >= 0.0).all()
    assert found.largest_leak == pytest.approx(table.secret_leak.max())
    first = table.loc[table.secret_leak.idxmax(), "record_id"]
    assert found.largest_leak_of == first
    # Height tells the sex to anybody: that is no leak of the model's.
    assert found.named_prior > found.by_shares + 0.1
    assert found.mean_leak < 0.05
    assert sum(one.count for one in found.by_value) == SIZE
    said = next(sentence for sentence in audited.sentences if "Secret column sex" in sentence)
    assert f"(record {first})" in said
    assert "known about the population" in said
    without = " ".join(audited.answer(ids=False))
    assert "Secret column sex" in without
    assert f"(record {first})" not in without


def test_a_pipeline_is_asked_about_the_column_it_was_given(
    people: pd.DataFrame, audited: Audit
) -> None:
    # The same features as leakscope makes of the table: the same model, the same answer.
    columns = make_column_transformer(
        (StandardScaler(), ["age", "height"]), (OneHotEncoder(), ["sex", "region"])
    )
    model = make_pipeline(columns, LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000))
    X, y = people.drop(columns="ill"), people["ill"]
    model.fit(X, y)
    own = leakscope.audit(X, y, model=model, secret="sex").to_frame()
    named = audited.to_frame()
    own, named = own.set_index("record_id"), named.set_index("record_id")
    for name in ("secret_prior", "secret_without", "secret_with", "secret_advantage"):
        assert np.allclose(own[name], named.loc[own.index, name], atol=2e-3), name


def test_a_column_of_numbers_is_named_within_a_tolerance(people: pd.DataFrame) -> None:
    found = leakscope.audit_frame(
        people, target="ill", model="logistic", C=1.0, secret="age",
        secret_within=5.0,
    ).details.secret_attribute()  # fmt: skip
    assert found.values == 5
    assert found.within == 5.0
    assert 0.0 < found.mean_leak < 0.1


def test_a_column_of_numbers_is_named_among_given_values(people: pd.DataFrame) -> None:
    audit = leakscope.audit_frame(
        people, target="ill", model="logistic", C=1.0, secret="age",
        secret_values=[30, 60],
    )  # fmt: skip
    found = audit.details.secret_attribute()
    assert [one.value for one in found.by_value] == ["30", "60"]
    assert found.by_value[0].count == int((people.age < 45.0).sum())
    assert audit.settings["secret_values"] == (30, 60)


@pytest.mark.filterwarnings("ignore:What .* records give away")
def test_an_array_names_a_column_by_its_place(people: pd.DataFrame) -> None:
    X = np.column_stack([people.age, people.sex == "m"]).astype(float)
    y = people.height.to_numpy() - 170.0
    audit = leakscope.audit(
        X, y, model=Ridge(alpha=1.0).fit(X, y), secret="1", secret_prior="shares"
    )
    found = audit.details.secret_attribute()
    # Height goes with sex, so that a model of other people names it well from the label.
    assert found.named_without > found.named_prior + 0.2
    assert found.by_shares == found.named_prior
    assert found.by_other_model == found.named_without
    assert found.mean_leak < 0.02


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"secret": "weight"}, "takes no column 'weight'"),
        ({"secret": "sex", "ignore": ("sex",)}, "its answers do not depend on it"),
        ({"secret": "ill"}, "is the target"),
        ({"secret": "age"}, "different numbers; say how near"),
        ({"secret": "sex", "secret_within": 1.0}, "holds categories"),
        ({"secret": "age", "secret_within": 0.1}, "more than the 50"),
        ({"secret": "age", "secret_within": 1e-300}, "more than the 50"),
        ({"secret": "age", "secret_within": -1.0}, "secret.within"),
        ({"secret": "sex", "secret_prior": "none"}, "secret.prior"),
        ({"secret_within": 5.0}, "belongs to secret"),
        ({"secret": "sex", "answer_noise": 1.0}, "leave out --secret or"),
        ({"secret": "sex", "secret_values": (1.0, 2.0)}, "secret_values is for numbers"),
        ({"secret": "age", "secret_values": (1.0,)}, "2 to 50 numbers"),
        ({"secret": "age", "secret_values": (1, 2), "secret_within": 1.0}, "not both"),
        ({"secret": "sex", "train": LogisticRegression()}, "secret belongs to"),
        ({"secret": "sex", "model": "kernel_ridge", "target": "height"}, "has a kernel instead"),
    ],
)
def test_what_cannot_be_answered_is_said(
    people: pd.DataFrame, options: dict[str, Any], words: str
) -> None:
    told = {"target": "ill", **options}
    with pytest.raises(InputError, match=words):
        leakscope.audit_frame(people, **told)


def test_a_tables_own_types_are_kept(people: pd.DataFrame) -> None:
    X = pd.DataFrame(
        {
            "years": people.age.round().astype(int),
            "region": people.region.astype("category"),
            "male": people.sex == "m",
            "height": people.height,
        }
    )
    columns = make_column_transformer(
        (StandardScaler(), ["years", "height"]), (OneHotEncoder(), ["region", "male"])
    )
    y = (people.ill == "yes").astype(int)
    model = make_pipeline(columns, LogisticRegression(tol=1e-8, max_iter=10_000)).fit(X, y)
    fit = Fit.of(
        Asked(
            X=X, y=y, model=model,
            chosen=ModelSettings.model_construct(secret="years", secret_within=2.25),
        ),
        Stages(),
    )  # fmt: skip
    column = secret_column(fit)
    middles = np.unique([column.put_in(code)["years"].iloc[0] for code in range(3)])
    # A whole number of years would be another person's.
    assert np.allclose(np.diff(middles), 4.5)
    for name, values in (("region", 3), ("male", 2)):
        found = leakscope.audit(X, y, model=model, secret=name).details.secret_attribute()
        assert found.values == values


def test_several_classes_are_asked_together(people: pd.DataFrame) -> None:
    found = leakscope.audit_frame(
        people, target="region", model="logistic", C=1.0, secret="sex"
    ).details.secret_attribute()
    assert 0.0 < found.mean_leak < 0.1
    X, y = people[["age", "height"]], people.region
    with pytest.raises(InputError, match="fits each for itself"):
        leakscope.audit(X, y, model=RidgeClassifier().fit(X, y), secret="age", secret_within=5.0)


def test_a_run_a_report_and_a_decision_show_it(
    audited: Audit, people: pd.DataFrame, tmp_path: Path
) -> None:
    place = audited.write(tmp_path / "run")
    stored = Audit.open(place)
    assert stored == audited
    assert stored.details.secret_attribute() == audited.details.secret_attribute()
    assert json.loads((place / "result.json").read_text())["details"]["secret"]["column"] == "sex"
    run = read_run(place)
    redacted = audit_html(run, stored, redact=True, beside=())
    assert "A secret column: sex" in redacted
    assert "Who gives sex away" not in redacted
    record = leakscope.decide(place, threshold_advantage=0.9)
    row = next(one for one in record.coverage if one.attack.startswith("attribute inference"))
    assert row.ran
    assert "column sex" in row.found


def test_the_command_line_prints_it_and_opens_it_again(
    people: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "people.csv"
    people.to_csv(file, index=False)
    place = tmp_path / "run"
    asked = ["audit", str(file), "--target", "ill", "--model", "logistic", "--set", "C=1"]
    assert main([*asked, "--secret", "sex", "--top", "2", "--run-dir", str(place)]) == 0
    out = capsys.readouterr().out
    assert "Secret column sex" in out
    assert "Who gives sex away" in out
    assert "secret leak" in out
    from leakscope.subjects.subject import opened

    again = opened(Audit.open(place))
    assert again.settings["secret"] == "sex"
