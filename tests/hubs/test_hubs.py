"""Tables of hubs become arrays and come back; rows that break a rule are named."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.marks import DATA, requires_data
from xrecal.hubs import check, observations, read, write

LEVELS = [0.1, 0.5, 0.9]


def rows_of(output_type="quantile", labels=LEVELS, values=(1.0, 2.0, 3.0), **columns):
    """One forecast of each of two weeks, two horizons and two places."""
    index = pd.MultiIndex.from_product(
        [["2024-01-06", "2024-01-13"], [0, 1], ["01", "06"]],
        names=["reference_date", "horizon", "location"],
    )
    tasks = index.to_frame(index=False)
    days = pd.to_timedelta(7 * tasks.horizon, "D")
    end = (pd.to_datetime(tasks.reference_date) + days).dt.strftime("%Y-%m-%d")
    tasks = tasks.assign(target="flu", target_end_date=end, output_type=output_type)
    each = pd.DataFrame({"output_type_id": list(labels), "value": list(values)})
    return tasks.merge(each, how="cross").assign(**columns)


def refused(rows, call=check):
    with pytest.raises(ValueError, match=r"^the table breaks the rules of hubs:\n") as caught:
        call(rows)
    return str(caught.value).splitlines()[1:]


# forecasts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixed", [False, True])
def test_an_order_of_categories_that_may_be_wrong_is_told(mixed):
    labels, values = ["above", "below", "near"], [0.5, 0.2, 0.3]
    rows = rows_of("pmf", labels, values)
    if mixed:
        rows = pd.concat([rows.iloc[[2, 1, 0]], rows.iloc[3:]])
    with pytest.warns(UserWarning, match=r"order of the categories is \[.*sel\(category="):
        forecast = read(rows, output_type="pmf")
    ordered = forecast.sel(category=["below", "near", "above"])
    np.testing.assert_array_equal(ordered.values.reshape(-1, 3), [[0.2, 0.3, 0.5]] * 8)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_files_come_back(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    forecast = read(rows_of(value=np.arange(24.0)))
    written = write(forecast, tmp_path / name)
    back = read(tmp_path / name)
    xr.testing.assert_identical(back, forecast)
    assert back.location.values.tolist() == ["01", "06"]
    assert back.sel(location="06", horizon=1)[0].values.tolist() == [9, 10, 11]
    assert written.columns.tolist() == [
        *("reference_date", "target", "horizon", "target_end_date", "location"),
        *("output_type", "output_type_id", "value"),
    ]
    assert "2024-01-06," in write(forecast).to_csv(index=False)


def test_other_files_are_refused():
    with pytest.raises(ValueError, match=r"\.csv, \.csv\.gz or \.parquet, got 'rows\.xlsx'"):
        read("rows.xlsx")


def test_levels_as_text_and_rows_in_any_order():
    rows = rows_of(value=np.arange(24.0))
    text = rows.assign(output_type_id=rows.output_type_id.astype(str)).sample(
        frac=1, random_state=0
    )
    xr.testing.assert_identical(read(text), read(rows))


def test_rows_that_are_missing_are_nan():
    forecast = read(rows_of().iloc[1:])
    assert int(forecast.isnull().sum()) == 1
    assert forecast.isel(reference_date=0, horizon=0, location=0, quantile=0).isnull()


def test_several_models_are_a_dimension_and_one_is_a_coordinate():
    rows = pd.concat([rows_of(model_id="a"), rows_of(model_id="b", value=5.0)])
    forecast = read(rows)
    assert forecast.dims == ("reference_date", "location", "model_id", "horizon", "quantile")
    assert (forecast.sel(model_id="b") == 5).all()
    one = read(rows_of(model_id="a"))
    assert one.model_id.item() == "a"
    assert write(one).model_id.unique().tolist() == ["a"]


def test_samples_keep_their_number_over_horizons():
    rows = rows_of("sample", ["s1", "s2", "s3"], value=np.arange(24.0))
    rows["output_type_id"] = rows.location + rows.output_type_id  # ids of each place
    forecast = read(rows, output_type="sample")
    assert forecast.dims == ("reference_date", "location", "horizon", "member")
    assert forecast.isel(reference_date=0, location=1).values.tolist() == [[3, 4, 5], [9, 10, 11]]
    xr.testing.assert_identical(read(write(forecast), output_type="sample"), forecast)
    quantiles = write(forecast, levels=LEVELS)
    assert quantiles.output_type_id.unique().tolist() == LEVELS


def test_categories_keep_their_order_and_thresholds_are_numbers():
    rows = rows_of("pmf", ["low", "high", "higher"], [0.5, 0.3, 0.2])
    forecast = read(rows, output_type="pmf")
    assert forecast.category.values.tolist() == ["low", "high", "higher"]
    xr.testing.assert_identical(read(write(forecast), output_type="pmf"), forecast)
    rows = rows_of("cdf", ["5", "10", "20"], [0.5, 0.8, 1.0])
    forecast = read(rows, output_type="cdf")
    assert forecast.threshold.values.tolist() == [5, 10, 20]
    xr.testing.assert_identical(read(write(forecast), output_type="cdf"), forecast)


def test_a_target_without_horizon_has_no_leads():
    peak = rows_of(target="peak", horizon=None, target_end_date=None).drop_duplicates(
        ["reference_date", "location", "output_type_id"]
    )
    table = pd.concat([rows_of(), peak])
    check(table)
    forecast = read(table, "peak")
    assert forecast.dims == ("reference_date", "location", "quantile")
    rows = write(forecast)
    assert rows["horizon"].isna().all()
    xr.testing.assert_identical(read(rows, "peak"), forecast)
    assert read(table, "flu").horizon.attrs["units"] == "weeks"


def test_targets_and_output_types_that_are_not_there_are_refused():
    table = pd.concat([rows_of(), rows_of(target="covid")])
    with pytest.raises(ValueError, match=r"targets, \['flu', 'covid'\]; name one: target='flu'"):
        read(table)
    with pytest.raises(ValueError, match=r"no target 'rsv'; it has \['flu', 'covid'\]"):
        read(table, "rsv")
    with pytest.raises(ValueError, match=r"no output_type 'pmf'; it has \['quantile'\]"):
        read(table, output_type="pmf")
    with pytest.raises(ValueError, match=r"must be one of \['quantile', .*, got 'mean'"):
        read(table, output_type="mean")


def test_end_dates_that_follow_from_no_unit_are_coordinates():
    rows = rows_of()
    ends = pd.to_datetime(rows.target_end_date) - pd.Timedelta("2D")
    rows["target_end_date"] = ends.where((rows.index > 2) & (rows.index < 21))
    forecast = read(rows)
    assert "units" not in forecast.horizon.attrs
    expected = [["2024-01-04", "2024-01-11"], ["2024-01-11", "2024-01-18"]]
    assert forecast.target_end_date.dt.strftime("%Y-%m-%d").values.tolist() == expected
    assert write(forecast).target_end_date.unique().size == 3


def test_usual_names_become_those_of_hubs():
    forecast = read(rows_of())
    usual = forecast.rename(reference_date="time", horizon="lead", quantile="percentile")
    usual = usual.assign_coords(percentile=[10, 50, 90])
    pd.testing.assert_frame_equal(write(usual), write(forecast))
    lengths = usual.assign_coords(lead=np.array([0, 7], "timedelta64[D]"))
    with pytest.raises(
        ValueError, match=r"count the leads: forecast\.assign_coords\(lead=\('lead', "
    ):
        write(lengths)


def test_quantiles_get_the_levels_bounds_and_order_that_hubs_ask_for():
    forecast = read(rows_of(values=(-3.0, 2.0, 9.0)))
    crossing = forecast.where(forecast["quantile"] < 0.9, 1.0)
    assert write(crossing, lower=0, upper=8).value[:3].tolist() == [0, 2, 2]
    assert write(forecast, lower=0, upper=8, levels=[0.9, 0.1]).value[:2].tolist() == [0, 8]
    with pytest.raises(ValueError, match=r"no quantiles at the levels \[0\.25\]; issue them"):
        write(forecast, levels=[0.25, 0.5])


def test_forecasts_without_an_output_type_need_levels():
    quantiles = read(rows_of())
    loc = quantiles.isel(quantile=0, drop=True)
    normal = xrecal.gaussian(loc, xr.full_like(loc, 1.0))
    with pytest.raises(ValueError, match=r"form normal distributions, .* give levels="):
        write(normal)
    rows = write(normal, levels=[0.5])
    assert rows.value.unique().tolist() == [1]
    with pytest.raises(ValueError, match=r"several variables, \['a', 'b'\]; write one at a time"):
        write(xr.Dataset({"a": quantiles, "b": quantiles}))


# rules --------------------------------------------------------------------------------------------


def test_tables_that_keep_the_rules_pass():
    many = [
        rows_of(),
        rows_of("sample", [1, 2, 3]),
        rows_of("pmf", ["low", "high"], [0.4, 0.6], target="level"),
        rows_of("cdf", ["2024-01-06", "2024-01-13"], [0.4, 1.0], target="peak"),
        rows_of("median", [None], [2.0]),
    ]
    assert check(pd.concat(many)) is None


def changed(column, row, value, rows=None):
    rows = rows_of() if rows is None else rows
    rows[column] = rows[column].astype(object)
    rows.loc[row, column] = value
    return rows


CELLS = {
    ("reference_date", "soon"): "row 4: reference_date 'soon' is not a date such as 2024-01-06",
    ("reference_date", None): "row 4: reference_date None is not a date such as 2024-01-06",
    ("target_end_date", "soon"): "row 4: target_end_date 'soon' is not a date such as 2024-01-06",
    ("horizon", 1.5): "row 4: horizon 1.5 is not a whole number",
    ("location", None): "row 4: location None is missing",
    ("value", "many"): "row 4: value 'many' is not a finite number",
    ("value", np.inf): "row 4: value inf is not a finite number",
    (
        "output_type",
        "quartile",
    ): "row 4: output_type 'quartile' is not one of quantile, sample, pmf, cdf, mean, median",
    ("output_type_id", 1.0): "row 4: output_type_id 1.0 is not a level between 0 and 1",
    ("output_type_id", "half"): "row 4: output_type_id 'half' is not a level between 0 and 1",
}


@pytest.mark.parametrize(("column", "value"), CELLS)
def test_cells_of_another_kind_are_named(column, value):
    rows = changed(column, 4, value)
    assert refused(rows) == refused(rows, read) == [CELLS[column, value]]


RULES = {
    "row twice": (
        pd.concat([rows_of(), rows_of().iloc[[5]].assign(output_type_id="0.90")]),
        "row 24: has the labels of row 5",
    ),
    "end dates": (
        changed("target_end_date", 2, "2024-01-07"),
        "row 2: target_end_date is 2024-01-07, but 2024-01-06 in an earlier row of the same date "
        "and horizon",
    ),
    "levels": (
        rows_of().drop(index=[4]),
        "row 3: its forecast has no output_type_id 0.5, which other forecasts of its target have",
    ),
    "crossing": (
        changed("value", 4, 7.0),
        "row 5: value 3 at 0.9 is less than value 7 at 0.5 in row 4",
    ),
    "cdf falls": (
        rows_of("cdf", [5, 10], [0.5, 0.8]).pipe(lambda rows: changed("value", 3, 0.2, rows)),
        "row 3: value 0.2 at 10 is less than value 0.5 at 5 in row 2",
    ),
    "sum": (
        rows_of("pmf", ["low", "high"], [0.5, 0.5]).pipe(lambda r: changed("value", 3, 0.4, r)),
        "row 2: probabilities of its forecast sum to 0.9",
    ),
    "probability": (
        rows_of("cdf", [5, 10], [0.5, 0.8]).pipe(lambda rows: changed("value", 3, 1.5, rows)),
        "row 3: value 1.5 is not a probability between 0 and 1",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_rows_that_break_a_rule_are_named(case):
    rows, line = RULES[case]
    assert refused(rows.reset_index(drop=True)) == [line]


def test_all_violations_are_named():
    rows = changed("value", 4, 7.0).drop(index=[7])
    found = refused(rows)
    assert [one.split(":")[0] for one in found] == ["row 6", "row 5"]
    many = refused(rows_of(value="many"))
    assert len(many) == 21
    assert many[-1] == "and 4 more rows like row 19"


def test_columns_that_are_missing_are_named():
    rows = rows_of().drop(columns=["reference_date", "horizon"])
    first, second = refused(rows)
    assert first.startswith(
        "the table has no column reference_date, origin_date or forecast_date; it has "
    )
    assert second.startswith("the table has no column horizon; it has ['location', ")
    older = rows_of().drop(columns="horizon")
    older = older.rename(columns={"output_type": "type", "output_type_id": "quantile"})
    for line in refused(older):
        assert line.endswith("the page on hubs shows how to rename columns of older tables")


def test_names_in_a_table_change_no_terminal():
    assert refused(changed("value", 0, "\x1b[2J")) == [
        r"row 0: value '\x1b[2J' is not a finite number"
    ]


def test_dates_do_not_stand_still_with_the_horizon():
    rows = rows_of().assign(target_end_date="2024-01-13")
    (first, *_) = refused(rows)
    assert first == (
        "row 6: target_end_date is 2024-01-13 at horizon 1, not later than at a shorter horizon"
    )


# observations -------------------------------------------------------------------------------------

VERSIONS = pd.DataFrame(
    {
        "date": ["2024-01-06", "2024-01-13", "2024-01-06", "2024-01-06"],
        "location": ["01", "01", "06", "01"],
        "target": "flu",
        "value": [4.0, 5.0, 6.0, 3.0],
        "as_of": ["2024-01-24", "2024-01-17", "2024-01-10", "2024-01-10"],
    }
)


def test_the_last_version_of_each_observation_counts():
    found = observations(VERSIONS)
    assert found.dims == ("date", "location")
    np.testing.assert_array_equal(found, [[4, 6], [5, np.nan]])
    np.testing.assert_array_equal(observations(VERSIONS, as_of="2024-01-17")[:, 0], [3, 5])
    np.testing.assert_array_equal(observations(VERSIONS, as_of="2024-01-10"), [[3, 6]])
    with pytest.raises(ValueError, match="known on 2024-01-01; the first as_of is 2024-01-10"):
        observations(VERSIONS, as_of="2024-01-01")


def test_observations_without_versions():
    plain = VERSIONS[1:3].drop(columns="as_of").rename(columns={"value": "observation"})
    np.testing.assert_array_equal(observations(plain), [[np.nan, 6], [5, np.nan]])
    with pytest.raises(ValueError, match="as_of needs a column as_of"):
        observations(plain, as_of="2024-01-10")


def test_observations_that_cannot_be_read_are_named():
    with pytest.raises(ValueError, match=r"no column target_end_date or date or target_date; it"):
        observations(VERSIONS.drop(columns="date"))
    with pytest.raises(ValueError, match=r"no column observation or oracle_value or value; it"):
        observations(VERSIONS.drop(columns="value"))
    several = VERSIONS.assign(target=["flu", "covid", "flu", "flu"])
    assert observations(several, "covid").values.tolist() == [[5]]
    with pytest.raises(ValueError, match=r"several targets, \['flu', 'covid'\]; name one"):
        observations(several)
    twice = pd.concat([VERSIONS, VERSIONS[:1]])
    with pytest.raises(ValueError, match="row 4 has the date and location of an earlier row"):
        observations(twice)
    wrong = VERSIONS.assign(value=["many", 5, 6, 3], as_of=["2024-01-24", "x", "2024-01-10", "y"])
    assert refused(wrong, observations) == [
        "row 1: as_of 'x' is not a date such as 2024-01-06",
        "row 3: as_of 'y' is not a date such as 2024-01-06",
        "row 0: value 'many' is not a number",
    ]


# together -----------------------------------------------------------------------------------------


def test_what_is_read_is_fitted_and_what_is_issued_is_written():
    rng = np.random.default_rng(0)
    weeks = pd.date_range("2023-01-07", periods=40, freq="7D")
    truth = pd.DataFrame(
        {"target_end_date": weeks, "location": "06", "observation": rng.random(40)}
    )
    rows = pd.concat(
        rows_of()
        .iloc[:12]
        .assign(
            reference_date=week,
            target_end_date=week + pd.to_timedelta(7 * rows_of().horizon[:12], "D"),
            value=rng.random() + np.tile([0.0, 0.2, 0.4], 4),
        )
        for week in weeks
    )
    forecast = read(rows[rows.location == "06"])
    model = forecast.recal.fit(observations(truth), xrecal.EMOS())
    assert "40 of 40 matched" in repr(model)
    issued = model.quantile(forecast[-1:], LEVELS)
    table = write(issued, lower=0.0)
    assert table.target_end_date.unique().tolist() == [weeks[-1], weeks[-1] + pd.Timedelta("7D")]
    assert table.target.unique().tolist() == ["flu"]
    np.testing.assert_allclose(read(table), issued.clip(0))


@requires_data("flusight_admissions.nc")
def test_the_forecasts_of_a_hub_come_back(tmp_path):
    data = xr.load_dataset(DATA / "flusight_admissions.nc").isel(time=slice(60, None))
    forecast = data.forecast.assign_coords(target="wk inc flu hosp")
    forecast.lead.attrs["units"] = "weeks"
    rows = write(forecast, tmp_path / "rows.csv")
    back = read(tmp_path / "rows.csv", "wk inc flu hosp")
    assert back.sizes == {"reference_date": 25, "location": 52, "horizon": 4, "quantile": 23}
    np.testing.assert_array_equal(back.astype("float32"), forecast)
    pd.testing.assert_frame_equal(write(back.astype("float32")), rows)
    truth = data.observation.isel(lead=0).to_dataframe().reset_index()
    truth = truth.rename(columns={"time": "date"})
    observed = observations(truth.drop(columns=["lead"]))
    found, expected = back.recal.wis(observed), forecast.recal.wis(data.observation)
    np.testing.assert_allclose(found.sel(horizon=0), expected.sel(lead=0), rtol=1e-6)


def test_a_cdf_of_a_hub_is_scored_and_written_again():
    table = rows_of("cdf", [5, 10, 20], [0.5, 0.8, 0.9])
    cdf = read(table, output_type="cdf")
    forecast = xrecal.probabilities(cdf)
    again = forecast.recal.cdf([5.0, 10.0, 20.0])
    np.testing.assert_allclose(write(again).value, write(cdf).value)
    labels = {"date": [np.datetime64("2024-01-13", "ns")], "location": ["01"]}
    truth = xr.DataArray([[7.0]], labels)
    score = (
        forecast.sel(location=["01"], horizon=[1])
        .isel(reference_date=[0])
        .recal.rps(truth, [5.0, 10.0])
    )
    np.testing.assert_allclose(score, 0.5**2 + 0.2**2)
