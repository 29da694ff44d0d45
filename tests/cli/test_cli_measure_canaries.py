"""``leakscope measure --canaries``: what one training with canaries shows of its epsilon."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope.cli import main
from leakscope.measuring import measure_canaries
from leakscope.results.reader import read_result

RNG = np.random.default_rng(3)
COINS = RNG.random(400) < 0.5
SCORES = RNG.normal(size=400) + 1.8 * COINS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "canaries.csv"
    pd.DataFrame({"score": SCORES, "included": COINS}).to_csv(path, index=False)
    return path


def test_the_command_is_the_function(file: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    command = ["measure", "--canaries", str(file), "--delta", "1e-6", "--json", str(answer)]
    assert main([*command, "--claimed-epsilon", "9"]) == 0
    found = read_result(answer)
    own = measure_canaries(SCORES, COINS, delta=[1e-6], claimed_epsilon=9.0)
    assert found.bounds == own.bounds
    assert 0.0 < own.bound().epsilon < own.bound("gaussian").epsilon
    assert own.bound().epsilon <= own.bound().largest
    assert "Bonferroni" in own.provenance["guesses"]


def test_a_claim_that_is_contradicted_ends_with_its_status(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = measure_canaries(file)
    certain, gaussian = seen.bound().epsilon, seen.bound("gaussian").epsilon
    command = ["measure", "--canaries", str(file), "--claimed-epsilon"]
    assert main([*command, f"{0.9 * certain}"]) == 3
    assert "is contradicted" in capsys.readouterr().err
    assert main([*command, f"{(certain + gaussian) / 2}"]) == 4
    assert "not a Gaussian one" in capsys.readouterr().err
    assert main([*command, f"{1.1 * gaussian}"]) == 0
    assert "does not contradict" in capsys.readouterr().out


def test_fixed_guesses_share_nothing(file: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    command = ["measure", "--canaries", str(file), "--guesses", "40,30", "--json", str(answer)]
    assert main(command) == 0
    found = json.loads(answer.read_text(encoding="utf-8"))
    assert found["choices"] == 1
    assert found["provenance"]["guesses"] == "fixed in advance"
    order = np.argsort(-SCORES)
    right = COINS[order[:40]].sum() + (~COINS[order[-30:]]).sum()
    assert {bound["right"] for bound in found["bounds"]} == {int(right)}


def test_scores_that_know_nothing(file: Path) -> None:
    found = measure_canaries(np.zeros(400), COINS, claimed_epsilon=2.0)
    assert found.bound("gaussian").epsilon == 0.0
    assert "not prove privacy" in found.in_short().sentences[0]


def test_a_reversed_sign_is_asked_about() -> None:
    found = measure_canaries(-SCORES, COINS)
    assert found.bound().epsilon == 0.0
    assert "is the sign reversed?" in found.warnings[0]


@pytest.mark.parametrize("words", [("true", "false"), ("1", "0"), ("Yes", "No")])
def test_coins_in_several_words(tmp_path: Path, words: tuple[str, str]) -> None:
    path = tmp_path / "c.csv"
    pd.DataFrame({"score": SCORES, "included": np.where(COINS, *words)}).to_csv(path, index=False)
    assert measure_canaries(path).included == COINS.sum()


def changed(column: str, row: int, value: object) -> pd.DataFrame:
    table = pd.DataFrame({"score": SCORES.astype(object), "included": COINS.astype(object)})
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pd.DataFrame({"score": SCORES}), "has no column 'included'"),
        (pd.DataFrame({"loss": SCORES, "included": COINS}), "has no column 'score'"),
        (changed("score", 5, "high"), "in row 5"),
        (changed("score", 5, ""), "empty in row 5"),
        (changed("score", 5, "inf"), "row 5"),
        (changed("included", 7, "maybe"), "in row 7"),
        (changed("included", 7, ""), "empty in row 7"),
        (pd.DataFrame({"score": SCORES, "included": True}), "fair coin"),
        (pd.DataFrame({"score": SCORES, "included": np.arange(400) < 300}), "300 of 400"),
    ],
)
def test_bad_files_end_with_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: pd.DataFrame, words: str
) -> None:
    table.to_csv(tmp_path / "c.csv", index=False)
    answer = tmp_path / "answer.json"
    assert main(["measure", "--canaries", str(tmp_path / "c.csv"), "--json", str(answer)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not answer.exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--guesses", "300,200"], "guesses"),
        (["--guesses", "0,0"], "guesses"),
        (["--claimed-epsilon", "0"], "--claimed-epsilon"),
        (["--claimed-epsilon", "-1"], "--claimed-epsilon"),
        (["--fpr", "0.1"], "--fpr"),
        (["--member", "normal:0,1"], "one source"),
        (["--delta", "0"], "--delta"),
    ],
)
def test_options_that_do_not_fit(
    file: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main(["measure", "--canaries", str(file), *more]) == 2
    assert words in capsys.readouterr().err


def test_options_of_canaries_belong_to_them(capsys: pytest.CaptureFixture[str]) -> None:
    pair = ["measure", "--member", "normal:1,1", "--nonmember", "normal:0,1"]
    assert main([*pair, "--claimed-epsilon", "1"]) == 2
    assert "--canaries" in capsys.readouterr().err


def test_sizes_that_differ() -> None:
    with pytest.raises(leakscope.InputError, match="400 scores, and 399"):
        measure_canaries(SCORES, COINS[1:])
    with pytest.raises(leakscope.InputError, match="one column"):
        measure_canaries(SCORES[:, None], COINS)
    with pytest.raises(leakscope.InputError, match="whether it was included"):
        measure_canaries(SCORES)


def test_the_answer_as_a_page(file: Path, tmp_path: Path) -> None:
    answer, page = tmp_path / "answer.json", tmp_path / "page.html"
    assert main(["measure", "--canaries", str(file), "--json", str(answer)]) == 0
    assert main(["report", str(answer), "--output", str(page)]) == 0
    assert "whatever the mechanism" in page.read_text(encoding="utf-8")
