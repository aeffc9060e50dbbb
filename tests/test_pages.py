"""Every block of code of the pages runs: Python and commands here, cells as pages are built."""

import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.cli.files import run
from tests.gribs import write_grib
from xrecal.cli.commands import xrecal as command

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
MACHINES = {"cupy", "to_device", "SLURMCluster", "distributed"}
"""Names in Python for devices and clusters: not run here, as ``docs/tutorials/cluster.md`` is."""
INSTALLS = re.compile(r"(pip install|make) ")


class Block(NamedTuple):
    page: str
    line: int
    language: str
    above: str
    """The paragraph before."""
    text: str

    @property
    def commands(self):
        return commands_in(self.text)

    @property
    def kind(self):
        """How it is run; empty if nobody runs it."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        if self.language.startswith("{"):
            return "built"
        if self.language == "python":
            return "machines" if MACHINES & {*re.findall(r"\w+", self.text)} else "python"
        if self.language == "text" or re.search("`make demo`", self.above):
            return "output"
        if self.language == "" and self.commands:
            return "commands"
        is_install = self.language == "" and all(INSTALLS.match(line) for line in lines)
        return "install" if is_install else ""


def blocks_of(page):
    """Blocks of a page, with what stands before them."""
    text = (ROOT / page).read_text()
    for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.M):
        before = text[: found.start()]
        above = before.rstrip().rpartition("\n\n")[2]
        yield Block(page, before.count("\n") + 1, found[1].strip(), above, found[2])


IN_SHELLS = {
    '"$(isodatetime "$CYLC_TASK_CYCLE_POINT" --print-format=CCYY-MM-DDThh:mm)"': "2021-10-15T06:00",
    "%INCOMING%": "incoming",
    "%OBSERVED%": "observed.nc",
    "%OUT%": "out",
}
"""What schedulers put in."""


def commands_in(text):
    """Arguments of each command line ``xrecal ...`` of a script, a configuration or a prompt."""
    for name, value in IN_SHELLS.items():
        text = text.replace(name, value)
    lines = text.replace("\\\n", " ").splitlines()
    found = [re.search(r"(?:^\s*|\$ |&& )xrecal (.*)", line) for line in lines]
    return [arguments(one[1]) for one in found if one]


def arguments(line):
    """Arguments up to what a shell takes for itself."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    given = []
    for word in words:
        if set(word) <= {*"();<>|&"} or re.fullmatch(r"\d?>+.*", word):
            break
        given.append(word)
    return given[:-1] if given[-1:] == ["2"] else given


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def of_kind(kind):
    chosen = [block for block in BLOCKS if block.kind == kind]
    assert chosen
    return pytest.mark.parametrize("block", chosen, ids=lambda b: f"{b.page}:{b.line}")


def test_every_block_is_run_or_of_a_kind_that_is_not():
    nobody = [f"{block.page}:{block.line}" for block in BLOCKS if not block.kind]
    assert nobody == [], "mark output with ```text; write commands as they are typed"
    built = {block.page for block in BLOCKS if block.language.startswith("{code-cell}")}
    for page in built:
        assert "format_name: myst" in (ROOT / page).read_text(), f"{page} is not run when built"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("xrecal warm   # once", [["warm"]]),
        ("a b && xrecal apply m f 'q *.nc' >> log 2>> err; mail", [["apply", "m", "f", "q *.nc"]]),
        ("$ xrecal fit h o \\\n  m --json > x", [["fit", "h", "o", "m", "--json"]]),
        ("the xrecal way", []),
    ],
)
def test_commands_are_found(line, expected):
    assert commands_in(line) == expected


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_in_sentences_exist(page):
    text = re.sub(r"^```(.*\n)*?```$", "", (ROOT / page).read_text(), flags=re.M)
    every = {o for one in command.commands.values() for p in one.params for o in p.opts}
    for span in re.findall(r"`([^`]+)`", text):
        if span.startswith("xrecal "):
            name, *rest = span.removeprefix("xrecal ").split()
            options = {o for p in command.commands[name].params for o in p.opts} | {"--help"}
            assert {word for word in rest if word.startswith("--")} <= options, span
        elif re.match(r"--[a-z]", span):
            assert span.split()[0].partition("=")[0] in every, span


# commands -----------------------------------------------------------------------------------------

N_WEEKS = 42
DATES = np.datetime64("2021-01-01", "ns") + np.arange(N_WEEKS) * np.timedelta64(7, "D")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with the files that the pages name."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    labels = {"time": DATES, "lat": [50.0]}
    signal = rng.normal(size=(N_WEEKS, 1))
    members = signal[..., np.newaxis] + rng.normal(size=(N_WEEKS, 1, 4))
    units = {"units": "K"}
    forecasts = xr.DataArray(members, labels, ["time", "lat", "number"], "t2m", units)
    observed = xr.DataArray(signal, labels, ["time", "lat"], "tas", units)
    for name in ("observations", "obs", "observed", "corrected"):
        observed.to_netcdf(folder / f"{name}.nc")
    past, new = forecasts[: N_WEEKS - 2], forecasts[N_WEEKS - 2 :]
    past.to_netcdf(folder / "hindcast.nc")
    past.to_dataset().to_zarr(folder / "hindcast.zarr", consolidated=False)
    for path in ("today.nc", "more.nc", "forecasts.nc", "incoming/a.nc", "in/a.nc"):
        (folder / path).parent.mkdir(exist_ok=True)
        new.to_netcdf(folder / path)
    seen = observed[: N_WEEKS - 2]
    for name in ("model.nc", "model.zarr", "daily.nc"):
        past.recal.fit(seen, xrecal.Climatology()).save(folder / name)
    fields = forecasts.assign_coords(number=range(forecasts.sizes["number"])).rename("2t")
    fields, analyses = (a.expand_dims(lon=[5.0, 6.0]) for a in (fields, observed.rename("2t")))
    write_grib(folder / "past.grib2", fields.isel(time=slice(N_WEEKS - 2)))
    write_grib(folder / "today.grib2", fields.isel(time=slice(N_WEEKS - 2, None)))
    write_grib(folder / "analyses.grib", analyses)
    given = ["--forecasts", folder / "in/*.nc", "--observations", folder / "obs.nc"]
    given += ["--quantiles", 0.5, "--output", folder / "station", "--quiet"]
    assert run("cycle", folder / "model.nc", *given).code == 0
    return folder


@pytest.fixture
def here(prepared, tmp_path, monkeypatch):
    """The same as the working folder."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


WRITING = {"fit", "apply", "update", "monitor"}


@of_kind("commands")
@pytest.mark.filterwarnings("ignore")
def test_commands_run(block, here):
    for given in block.commands:
        if given[0] == "warm":  # has tests of its own, and takes long
            command.commands["warm"].make_context("warm", given[1:])
            continue
        done = run(*given, *(["--overwrite"] if given[0] in WRITING else []))
        assert done.code in (0, 10, 11), f"{given}: {done.err}"


# Python -------------------------------------------------------------------------------------------


def grid(n=52, days=14, n_lat=2, n_lon=1):
    """Forecasts over starts and a grid, and observations of the same dates."""
    rng = np.random.default_rng(1)
    starts = np.datetime64("2019-01-05", "ns") + np.arange(n) * np.timedelta64(days, "D")
    labels = {"init": starts, "lat": 45.0 + np.arange(n_lat), "lon": np.arange(n_lon)}
    signal = 5 + 3 * rng.normal(size=(n, n_lat, n_lon))
    members = signal[..., np.newaxis] + 1 + rng.normal(size=(n, n_lat, n_lon, 5))
    observed = signal + 0.5 * rng.normal(size=signal.shape)
    dims = ["init", "lat", "lon"]
    return (
        xr.DataArray(members, labels, [*dims, "member"], "v"),
        xr.DataArray(observed, labels, dims, "v"),
    )


def stations():
    """Forecasts of two stations and four leads, and observations."""
    rng = np.random.default_rng(2)
    times = np.datetime64("2020-01-01", "ns") + np.arange(60) * np.timedelta64(1, "D")
    names = {"station": ["Oslo", "Bergen"]}
    signal = 5 + 3 * rng.normal(size=(60, 2))
    observed = xr.DataArray(signal, {"time": times, **names}, ["time", "station"], "v")
    leads = np.array([1, 2, 3, 5])
    at = np.arange(50)[:, np.newaxis] + leads
    members = signal[at][..., np.newaxis] + rng.normal(size=(50, 4, 2, 5))
    lead = ("lead", leads, {"units": "days"})
    coords = {"init": times[:50], "lead": lead, **names}
    return xr.DataArray(members, coords, ["init", "lead", "station", "member"], "v"), observed


def names_for(block):
    """The names that the pages take for granted."""
    text = block.text
    forecasts, observed = grid(30, 365, n_lon=2) if "tercile_summary" in text else grid()
    if "map" in text and "tercile_summary" not in text:
        forecasts, observed = grid(n_lon=2)
    if re.search(r"lead|station=|time\.month", text):
        forecasts, observed = stations()
    if "jointly=" in text:
        both = [one.rename(init="time") for one in (forecasts, observed)]
        forecasts, observed = [xr.Dataset({"temperature": a, "rain": a + 1}) for a in both]
    verified = re.search(
        r"forecast\.recal[\w.]*\(observations|members, observations|observations, members", text
    )
    names = {
        "xr": xr,
        "xrecal": xrecal,
        "hindcast": forecasts,
        "observations": observed,
        "forecast": forecasts if verified or "jointly=" in text else forecasts[-3:],
        "new_hindcast": forecasts if "jointly=" in text else forecasts[-3:],
    }
    names["hindcast_of_these_days"] = names["new_hindcast"]
    if re.search(r"\b(model|members)\b", text.partition("model = hindcast")[0]):
        names["model"] = forecasts.recal.fit(observed, xrecal.EMOS())
        names["members"] = names["model"].members(names["forecast"], 10)
    names["edges"] = xr.DataArray([0.0, 5.0, 10.0], dims="category_edge")
    names["mean"], names["standard_deviation"] = forecasts.mean("member"), forecasts.std("member")
    return names | extras_for(text, forecasts)


def extras_for(text, forecasts):
    """Libraries that a page has imported before, and the other forecasts of a figure."""
    if "cartopy" not in text:
        return {}
    import cartopy.crs

    return {"plt": plt, "cartopy": cartopy, "climatology": forecasts.roll(init=9)}


def write_tables_of_a_hub(folder):
    """Forecasts of one place and two horizons, and observations."""
    rng = np.random.default_rng(3)
    coords = {"reference_date": DATES, "horizon": ("horizon", [0, 1], {"units": "weeks"})}
    coords |= {"location": ["06"], "target": "wk inc flu hosp"}
    dims = ["reference_date", "horizon", "location", "member"]
    members = xr.DataArray(rng.normal(9, 1, (N_WEEKS, 2, 1, 9)), coords, dims)
    xrecal.hubs.write(members, folder / "forecasts.csv", levels=[0.05, 0.25, 0.5, 0.75, 0.95])
    observed = xr.DataArray(
        rng.normal(9, 1, N_WEEKS), {"target_end_date": DATES}, name="observation"
    )
    rows = observed.to_dataframe().reset_index().assign(location="06")
    rows.to_csv(folder / "target-data.csv", index=False)
    forecasts = pd.read_csv(folder / "forecasts.csv", dtype={"location": str})
    forecasts["target"] = [
        f"{horizon + 1} wk ahead inc flu hosp" for horizon in forecasts["horizon"]
    ]
    older = {"reference_date": "forecast_date", "output_type": "type", "output_type_id": "quantile"}
    forecasts.drop(columns="horizon").rename(columns=older).to_csv(
        folder / "older.csv", index=False
    )


def write_tables_of_a_gauge(folder):
    """Members of two leads, and observations, of a river."""
    rng = np.random.default_rng(4)
    dates = np.datetime64("2020-01-01", "ns") + np.arange(302) * np.timedelta64(1, "D")
    truth = pd.Series(rng.gamma(2.0, 3.0, 302), pd.Index(dates, name="date"), name="discharge")
    truth.to_csv(folder / "gauge.csv")
    names = ["start", "lead", "member"]
    index = pd.MultiIndex.from_product([dates[:300], [1, 2], range(5)], names=names)
    valid = index.get_level_values(0) + pd.to_timedelta(index.get_level_values(1), "D")
    values = truth[valid].to_numpy() * rng.gamma(9.0, 1 / 9, len(valid))
    pd.Series(values, index, name="discharge").to_csv(folder / "members.csv")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A working folder with the three files of the first page, on a grid with some sea."""
    forecasts, observed = grid(n_lat=3, n_lon=3)
    observed = observed.where((observed["lat"] == 45) & (observed["lon"] < 2))
    forecasts[:-3].to_netcdf(tmp_path / "hindcast.nc")
    forecasts[-3:].to_netcdf(tmp_path / "forecast.nc")
    observed.to_netcdf(tmp_path / "observations.nc")
    write_tables_of_a_hub(tmp_path)
    write_tables_of_a_gauge(tmp_path)
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    yield
    plt.close("all")


def pages_with_python():
    for page in PAGES:
        chosen = [block for block in BLOCKS if (block.page, block.kind) == (page, "python")]
        if chosen:
            yield pytest.param(chosen, id=page)


@pytest.mark.parametrize("blocks", [*pages_with_python()])
@pytest.mark.filterwarnings("ignore")
def test_python_runs(blocks, data, capsys):
    """Blocks of the first pages run one after the other, others with the names they need."""
    page = blocks[0].page
    names = {}
    for block in blocks:
        if page not in ("README.md", "docs/index.md"):
            names = names_for(block)
        names["__name__"] = "__main__"
        exec(compile(block.text, f"{page}:{block.line}", "exec"), names)


@of_kind("machines")
def test_python_for_machines_compiles(block):
    compile(block.text, f"{block.page}:{block.line}", "exec")
