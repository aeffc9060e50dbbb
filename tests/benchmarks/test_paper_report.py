"""The report's numbers, from rows written by hand; and the smaller experiments."""

import csv

import numpy as np
import pytest

from benchmarks.paper import report, summary
from benchmarks.paper.comparison import EQUAL, OPPOSITE, SAME, Cell, cause
from benchmarks.paper.experiments import ablations, edk, features, scores
from benchmarks.paper.headlines import headlines
from benchmarks.paper.summary import Ratio
from benchmarks.speed import dense
from xrecal.arrays import weighted_mean

TINY = {  # CRPS, p of SKCE, p of PIT in two splits
    ("naval", "none"): ((2.0, 0.01, 0.20), (4.0, 0.02, 0.01)),
    ("naval", "ckme"): ((1.0, 0.50, 0.30), (3.0, 0.04, 0.20)),
    ("naval", "auto"): ((1.0, 0.50, 0.30), (1.0, 0.60, 0.20)),
    ("naval", "pit"): ((2.0, 0.01, 0.90), (3.0, 0.01, 0.80)),
    ("yacht", "none"): ((1.0, 0.50, 0.50), (1.0, 0.50, 0.50)),
    ("yacht", "ckme"): ((1.5, 0.50, 0.50), (1.1, 0.50, 0.50)),
    ("yacht", "auto"): ((0.8, 0.50, 0.50), (0.9, 0.50, 0.50)),
}


@pytest.fixture
def rows():
    found = []
    for (name, method), values in TINY.items():
        for split, (crps, skce, pit) in enumerate(values):
            row = dict.fromkeys(scores.COLUMNS, "") | {"commit": "abc"}
            row |= {"set": name, "model": "GDN", "split": str(split), "method": method}
            row |= {"crps": str(crps), "skce_p": str(skce), "pit_p": str(pit), "n_test": "31"}
            found.append(row | {"coverage": "0.9", "width": "2", "dcor": "0.1"})
    return found


def write(rows, path):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_ratios_and_shares(rows):
    found = summary.ratios(rows)
    assert found["naval", "GDN", "ckme"] == Ratio(0.625, 0.125, 2)
    assert found["yacht", "GDN", "auto"].mean == pytest.approx(0.85)
    del rows[0]  # the first split of the base model: no ratio there
    assert summary.ratios(rows)["naval", "GDN", "ckme"] == Ratio(0.75, 0.0, 1)
    shares = summary.acceptance(rows, "skce_p")
    assert shares["naval", "GDN", "ckme"] == (0.5, 2)
    assert shares["naval", "GDN", "none"] == (0.0, 1)
    assert summary.means(rows, "crps")["naval", "GDN", "auto"] == 1.0


def test_printed_values():
    found = summary.printed()
    assert len(found) == 4 * 11 * 5
    assert found["naval", "GDN", "ckme"] == Ratio(0.417, 0.105, 20)
    assert found["protein", "DRF", "gpbeta"] == Ratio(1.092, 0.012, 5)
    assert all(found[n, m, "none"].mean == 1 for n, m, _ in found)


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        (Ratio(0.5, 0.1, 5), Ratio(0.55, 0.1, 20), EQUAL),
        (Ratio(0.5, 0.01, 5), Ratio(0.8, 0.01, 20), SAME),
        (Ratio(0.99, 0.001, 5), Ratio(1.3, 0.01, 20), SAME),
        (Ratio(0.9, 0.001, 5), Ratio(1.3, 0.01, 20), OPPOSITE),
    ],
)
def test_verdicts(ours, paper, verdict):
    cell = Cell("GDN", "yacht", "ckme", ours, paper)
    assert cell.verdict == verdict
    assert cause(cell)


def test_headlines_hold_or_do_not(rows):
    skce, _, networks, yacht, auto, *_ = headlines(rows)
    assert "holds. Higher in 1, equal in 0 and lower in 0 of 1 pairs" in skce
    assert "50% against 0% of the splits" in skce
    assert "does not hold (naval 0.625)" in networks  # sinus and protein are missing
    assert "holds (GDN yacht 1.30)" in yacht
    assert "holds; below CKME in 1 of 1 (GDN yacht 0.85)" in auto
    rows = [{**r, "skce_p": "0.9" if r["method"] == "none" else r["skce_p"]} for r in rows]
    assert "does not hold" in headlines(rows)[0]


def test_report(rows, tmp_path):
    write(rows, tmp_path / scores.FILE)
    text = report.write(tmp_path, tmp_path / "REPORT.md")
    assert (tmp_path / "REPORT.md").read_text() == text + "\n"
    first = text.splitlines()[2:13]
    assert [line.split(". ")[0] for line in first] == [*map(str, range(1, 11)), ""]
    assert "| naval | 2 | `abc` |" in text
    assert (
        "| GDN | naval (31) | 2 | - | 0.625 ± 0.125 | - | 0.875 ± 0.125 | 0.375 ± 0.125 |" in text
    )
    assert "1.104 ± 0.449 | 0.417 ± 0.105 | 0.882 ± 0.086 | 0.896 ± 0.090 |" in text
    assert "| GDN | naval (31) | 2 | 0.00 | - | 0.50 | - | 0.00 | 1.00 |" in text
    assert "CRPS relative to `ckme`" in text
    for name in ("crps.png", "skce.png", "pit.png"):
        assert f"results/{name}" in text
        assert 1000 < (tmp_path / name).stat().st_size < 200_000
    with pytest.raises(SystemExit, match=r"run python -m benchmarks\.paper first"):
        report.write(tmp_path / "empty", tmp_path / "none.md")


def test_projections(rng):
    y = rng.normal(size=12)
    signed = rng.normal(size=(5, 12)) / 4
    signed += (1 - signed.sum(axis=1, keepdims=True)) / 12
    pytest.importorskip("clarabel")
    found = {name: project(signed, y) for name, project in ablations.PROJECTIONS.items()}
    apart = np.abs(np.subtract.outer(y, y))
    gram = np.exp(-apart / np.median(apart[np.triu_indices(12, 1)]))
    loss = {
        name: np.einsum("ni,ij,nj->n", w - signed, gram, w - signed) for name, w in found.items()
    }
    for name, weights in found.items():
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        assert (weights >= 0).all()
        assert (loss["laplace program"] <= loss[name] + 1e-6).all()
    np.testing.assert_allclose(
        found["clipped"][0], np.maximum(signed[0], 0) / np.maximum(signed[0], 0).sum()
    )


def test_naive_kernel(rng):
    x = rng.normal(size=(4, 3))
    found = edk.naive_squared_distance(x, 2.0)

    def mean(i, j):
        return np.exp(-(np.subtract.outer(x[i], x[j]) ** 2) / 2.0).mean()

    expected = [[mean(i, i) + mean(j, j) - 2 * mean(i, j) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_losses_of_the_kernel_on_features(rng):
    y = rng.normal(size=60)
    gram = np.exp(-features.squared_distances(y[:, None], y[:, None]))
    found = features.losses(gram, y)
    tried = np.isin(np.round(features.RIDGES, 12), np.round(dense.RIDGES, 12))
    assert features.RIDGES[tried][found[tried].argmin()] == pytest.approx(
        dense.choose_ridge(gram, y)
    )


def test_kernel_on_features_learns(rng):
    from benchmarks.paper.data import Part

    x = rng.uniform(-1, 1, (200, 2))
    y = 3 * x[:, 0] + 0.1 * rng.normal(size=200)
    found, chosen = features.predict(Part(x, y), np.array([[0.5, 0.0], [-0.5, 0.0]]), 0)
    means = weighted_mean(found.forecast["y"].values[None], found.forecast["y_weight"].values)
    np.testing.assert_allclose(means, [1.5, -1.5], atol=0.3)
    assert chosen["n_used"] == 200
