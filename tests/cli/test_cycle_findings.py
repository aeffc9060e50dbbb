"""A cycle explains its mornings: alarms and changes, what is missing, scores, and a page."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

import xrecal
from tests.cli.files import run
from xrecal.runs.findings import findings
from xrecal.runs.outcome import stem_of
from xrecal.runs.watching import Watch, watched

from .test_cycle_starts import FITTED, FORECASTS, STARTS, fit, morning, stems

HOURS = np.arange(1, 6) * 24
LEADS = {
    "hours": ("lead", HOURS, {"units": "hours"}),
    "lengths": ("lead", HOURS.astype("m8[h]").astype("m8[ns]")),
}
"""Leads of one to five days, as numbers with a unit and as lengths of time."""

LEARNED = 40


def warming(leads, mornings, first):
    """Forecasts of a station that are too warm by three standard deviations from a morning on."""
    rng = np.random.default_rng(1)
    days = np.datetime64("2020-01-01", "ns") + np.arange(LEARNED + mornings + 6).astype("m8[D]")
    signal = 3 * rng.normal(size=days.size)
    truth = xr.DataArray(
        280 + signal + rng.normal(size=days.size), {"time": days}, ["time"], "t2m", {"units": "K"}
    )
    at = np.arange(LEARNED + mornings)[:, np.newaxis] + HOURS // 24
    members = 280 + signal[at][..., np.newaxis] + rng.normal(size=(*at.shape, 8))
    members[LEARNED + first :] += 3
    coords = {"init": days[:-6], "lead": LEADS[leads]}
    return xr.DataArray(members, coords, ["init", "lead", "member"], "t2m", {"units": "K"}), truth


def mornings(folder, leads, first, ends):
    """Outcomes of runs, each of which makes up for the mornings since the one before."""
    forecasts, truth = warming(leads, ends[-1], first)
    model = forecasts[: LEARNED - 5].recal.fit(truth[:LEARNED], xrecal.EMOS())
    cycle = xrecal.Cycle(folder, model, quantiles=[0.1, 0.5, 0.9], keep=200)
    for begin, end in zip((0, *ends), ends, strict=False):
        given = slice(LEARNED + max(begin - 5, 0), LEARNED + end)
        now = forecasts["init"].to_numpy()[LEARNED + end - 1]
        yield cycle.run(forecasts[given], truth[: LEARNED + end], now)


def check_too_warm(done, first):
    """A finding names the lead, the direction, how much, and since when; the text says so."""
    found = [one for one in done.findings if one["lead"] == "1 day"]
    assert {(one["direction"], one["action"]) for one in found} == {("too warm", "refit")}
    assert {one["kind"] for one in done.findings} <= {"alarm", "change"}
    begun = np.datetime64("2020-01-01") + LEARNED + first
    for one in found:
        assert abs(np.datetime64(one["since"]) - begun) <= np.timedelta64(2, "D")
        assert 1.5 < one["amount"] < 4
        assert (one["units"], one["places"], one["of_places"]) == ("K", 1, 1)
        assert one["evidence"] >= one["limit"]
        assert f"t2m, lead 1 day: too warm by {one['amount']:.2g} K since 2020-" in one["text"]
    for kind, count in (("alarm", done.alarms), ("change", done.changes)):
        assert sum(one["n"] for one in done.findings if one["kind"] == kind) == count


@pytest.mark.slow
@pytest.mark.parametrize("leads", LEADS)
def test_a_bias_is_explained_within_fifteen_mornings(leads, tmp_path):
    *_, quiet, found, last = mornings(tmp_path / "out", leads, 50, (45, 50, 65, 110))
    assert (quiet.alarms, quiet.changes, quiet.notes) == (0, 0, [])
    check_too_warm(found, 50)
    check_too_warm(last, 50)


def test_a_bias_is_explained_in_status_mail_and_page(tmp_path):
    out = tmp_path / "out"
    (done,) = mornings(out, "hours", 8, (20,))
    check_too_warm(done, 8)
    status = json.loads((out / "status.json").read_text())
    assert status["findings"] == done.findings
    assert status["scores"]["t2m"] == done.scores["t2m"]["in_all"]
    lines = (out / "status.txt").read_text().splitlines()
    assert lines[0].startswith("last start issued: 20200229T000000; 20 starts in all")
    assert f"alarms: {done.alarms}, changes of calibration: {done.changes}" in lines
    assert lines[-len(done.notes) :] == done.notes
    page = tmp_path / "page.png"
    told = run("report", out, page, "--days", 10, "--json")
    assert (told.code, told.data["report"]) == (0, str(page))
    assert page.read_bytes().startswith(b"\x89PNG")
    figure = xrecal.Cycle(out).report(days=10)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["Mean score of t2m", "Central intervals", "Monitor: lead 24 hours", "Status"]
    with xr.open_dataset(out / "scores.nc") as scores:
        last = scores.isel(init=slice(-11, None))
        (_, recalibrated), *_ = (ax.lines for ax in figure.axes)
        np.testing.assert_allclose(recalibrated.get_ydata(), last["t2m_crps"].mean("init"))
    (text,) = figure.axes[-1].texts
    assert lines[0] in text.get_text()
    figure.draw_without_rendering()
    below = text.get_window_extent().y0 - figure.texts[-1].get_window_extent().y1
    assert 0 < below / figure.dpi < 0.4  # no empty part of the page
    assert run("report", tmp_path, page).err.endswith("whose forecasts have verified\n")
    assert "path must end in .pdf or .png" in run("report", out, tmp_path / "page.html").err


def test_findings_are_new_in_the_first_run_that_reports_them(tmp_path):
    first, again, later = mornings(tmp_path / "out", "hours", 8, (20, 20, 22))
    assert all(one["new"] and one["text"].startswith("new ") for one in first.findings)
    assert (again.status, again.findings) == ("nothing new", first.findings)

    def counts(findings):
        kinds = ("kind", "lead", "direction")
        return {tuple(one[k] for k in kinds): one["n"] for one in findings}

    known = counts(first.findings)
    assert known.keys() <= counts(later.findings).keys()
    for one in later.findings:
        ((key, n),) = counts([one]).items()
        assert one["new"] == (n > known.get(key, 0)) == one["text"].startswith("new ")
    assert not all(one["new"] for one in later.findings)


# findings -----------------------------------------------------------------------------------------


def found_in(z, units="m", forget_median=False, **coords):
    """Entries of normal scores (case, lead, place) of which only the errors are known."""
    dims = ["init", "lead", "place"]
    labels = {
        "init": STARTS[0] + np.arange(len(z)).astype("m8[D]"),
        "lead": LEADS["hours"],
    } | coords
    labels["lead"] = ("lead", HOURS[: z.shape[1]], {"units": "hours"})
    pit = xr.DataArray(ndtr(z), labels, dims)
    scores = xr.Dataset({"v_pit": pit, "v_crps": pit.assign_attrs(units=units)})
    scores["v_observation"], scores["v_median"] = pit.copy(data=z), 0 * pit
    scores["v_valid_time"] = pit["init"] + xr.DataArray(
        HOURS[: z.shape[1]].astype("m8[h]"), {"lead": labels["lead"]}, ["lead"]
    ).astype("m8[ns]")
    seen = watched(scores, ["v"], "init", Watch(0.01, 3650, None))
    scores = scores.drop_vars("v_median") if forget_median else scores
    return findings(scores, seen, ["v"], "init")


def quiet(places=8, leads=2, n=60):
    return np.random.default_rng(0).normal(size=(n, leads, places))


def test_calibrated_forecasts_have_no_finding():
    assert found_in(quiet()) == []


@pytest.mark.parametrize(
    ("direction", "change", "words"),
    [
        ("too low", lambda z: z + 3, "by "),
        ("too high", lambda z: z - 3, "by "),
        ("too narrow", lambda z: 2 * z, "errors spread"),
        ("too wide", lambda z: 0.3 * z, "errors spread 0."),
    ],
)
def test_places_with_one_fault_are_one_entry(direction, change, words):
    z = quiet(n=100)
    z[30:] = change(z[30:])
    found = found_in(z)
    of_lead = [one for one in found if (one["kind"], one["lead"]) == ("change", "1 day")]
    first = max(of_lead, key=lambda one: one["places"])
    assert (first["direction"], first["action"]) == (direction, "refit")
    assert first["places"] > 4
    at = f"{direction} at {first['places']} of 8 places, worst at {first['place']}: {words}"
    assert at in first["text"]
    joined = " by " if words == "by " else f": {words}"
    alone = [one["text"] for one in found_in(z[..., :1]) if one["direction"] == direction]
    assert alone
    assert all(f"{direction}{joined}" in text for text in alone)


def test_one_place_with_a_fault_at_all_leads_may_have_wrong_observations():
    z = quiet(places=4)
    z[30:, :, 2] += 3
    found = found_in(z, place=["A", "B", "C", "D"])
    assert {(one["place"], one["action"]) for one in found} == {("place C", "check observations")}
    assert all("check the observations there" in one["text"] for one in found)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_missing_cases_leave_findings_as_they_are(share):
    z = quiet()
    z[30:] -= 3
    z[np.random.default_rng(1).uniform(size=z.shape) < share] = np.nan
    z[:, :, 7] = np.nan
    found = found_in(z)
    assert {one["direction"] for one in found} == {"too high"}
    assert max(one["places"] for one in found) == 7


def test_a_fault_that_is_over_asks_for_nothing():
    z = quiet(places=1)
    z[20:30] += 3
    found = found_in(z)
    assert {one["action"] for one in found} == {"nothing"}
    assert all("later cases are calibrated" in one["text"] for one in found)
    change = next(one for one in found if one["kind"] == "change")
    assert change["since"] == str(STARTS[20].astype("M8[s]"))


def test_scores_without_medians_tell_the_amount_in_standard_deviations():
    z = quiet(places=1)
    z[30:] -= 2
    (first, *_) = found_in(z, "K", forget_median=True)
    assert "too warm by" in first["text"]
    assert (first["units"], "standard deviations since" in first["text"]) == (
        "standard deviations", True,
    )  # fmt: skip


# what is missing ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    folder = tmp_path_factory.mktemp("begun")
    (folder / "model.nc").write_bytes(fit(24))
    assert morning(folder, [24, 25, 26], 26).code == 0
    return folder


@pytest.fixture
def folder(begun, tmp_path):
    """A cycle that has issued three starts."""
    return Path(shutil.copytree(begun, tmp_path / "cycle"))


def test_leads_without_a_value_and_missing_members_are_named(folder):
    forecasts = FORECASTS.copy(deep=True)
    forecasts[27, 1], forecasts[28, 0, 2] = np.nan, np.nan
    done = morning(folder, [27, 28], 28, forecasts=forecasts)
    lead, member = stems([27, 28])
    assert done.data["missing"] == {
        lead: "v: lead 2 days has no value", member: "v: 1 of 3 members are missing"
    }  # fmt: skip
    assert f"1 start ({lead}): v: lead 2 days has no value" in done.data["notes"]
    status = json.loads((folder / "out" / "status.json").read_text())
    assert status["missing"] == done.data["missing"]
    assert morning(folder, [27, 28], 28, forecasts=forecasts).code == 11


def test_starts_without_forecasts_are_named(folder):
    done = morning(folder, [28, 29], 29)
    assert done.data["missing_starts"] == stems([27])
    done = morning(folder, [28, 29], 32)
    assert done.data["missing_starts"] == stems([27, 30, 31])
    assert f"no forecast for 3 starts ({stems([27])[0]} the first, " in done.data["notes"][-1]


def test_forecasts_that_ended_long_ago_are_not_counted_as_thirty_starts(folder):
    now = [STARTS[29] + np.timedelta64(days, "D") for days in (10, 100)]
    done = morning(folder, [27, 28, 29], 30, "--now", now[0])
    assert done.data["notes"][-1].startswith("no forecast for 9 starts (")
    done = morning(folder, [27, 28, 29], 30, "--now", now[1])
    latest = stem_of(now[1] - np.timedelta64(1, "D"))
    assert done.data["missing_starts"][-1] == latest
    note = "no forecast for the latest 30 starts ("
    assert done.data["notes"][-1].startswith(note)
    assert done.data["notes"][-1].endswith(
        f"{latest} the last), and perhaps none for earlier starts; "
        "to repeat a past morning, set its time (--now)"
    )


def test_a_disk_without_room_is_refused_before_work(folder, monkeypatch):
    usage = shutil.disk_usage(folder)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    done = morning(folder, [27, 28], 28)
    assert done.code == 3
    assert "out has 0.98 kiB free, and this run needs about" in done.err
    assert "for 2 starts; make room, or hand over fewer starts at a time" in done.err
    assert len(list((folder / "out" / "forecasts").iterdir())) == 3


# scores, going back, issuing anew -----------------------------------------------------------------


def test_scores_of_today_and_of_all(folder):
    done = morning(folder, [25, 26, 27], 27)
    with xr.open_dataset(folder / "out" / "scores.nc") as scores:
        crps = scores["v_crps"].load()
    of_today = float((crps.sel(init=STARTS[26], lead=1) + crps.sel(init=STARTS[25], lead=2)) / 2)
    found = done.data["scores"]["v"]
    assert (found["n"], found["in_all"]["n"]) == (2, int(crps.notnull().sum()))
    assert found["crps"] == pytest.approx(of_today)
    assert found["in_all"]["crps"] == pytest.approx(float(crps.mean()))
    again = morning(folder, [25, 26, 27], 27)
    assert (again.code, again.data["scores"]["v"]["n"]) == (11, 0)
    assert again.data["scores"]["v"]["in_all"] == found["in_all"]


def test_going_back_names_the_models_that_it_removes(folder):
    done = morning(folder, [26, 27], 27, "--model-at", STARTS[24])
    assert done.data["removed"] == [f"{stem}.nc" for stem in stems([25, 26])]


def test_past_starts_are_issued_anew_with_other_quantiles(folder):
    again = (*("--quantiles", "0.2,0.8"), "--reissue")
    (folder / "out" / "models" / f"{stems([24])[0]}.nc").unlink()
    done = morning(folder, [24, 25, 26, 27], 27, *again)
    assert (done.data["issued"], done.data["issued_anew"]) == (stems([27]), stems([25, 26]))
    assert done.data["issued_before"] == 1
    assert "starts not issued again: 1, as --keep 30 has removed the models" in done.err
    sizes = {}
    for path in sorted((folder / "out" / "forecasts").iterdir()):
        with xr.open_dataset(path) as issued:
            sizes[path.stem] = issued.sizes.get("quantile", 1)
    assert sizes == dict(zip(stems([24, 25, 26, 27]), (1, 2, 2, 2), strict=True))
    model = xrecal.open_recalibrator(folder / "out" / "models" / f"{stems([26])[0]}.nc")
    with xr.open_dataset(folder / "out" / "forecasts" / f"{stems([26])[0]}.nc") as issued:
        expected = model.quantile(FORECASTS[[26]], [0.2, 0.8])
        np.testing.assert_array_equal(issued["v"], expected.transpose(*issued["v"].dims))


def test_a_cycle_without_a_model_only_reports(tmp_path):
    with pytest.raises(ValueError, match="the cycle has no model; write"):
        xrecal.Cycle(tmp_path / "out").run(FORECASTS[FITTED:], FORECASTS[:, 0, 0])
