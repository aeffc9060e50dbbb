"""Files whose labels can be read and whose numbers cannot, and forecasts without a member."""

import signal

import pytest

from xrecal.runs import files as inputs

from .days import STARTS, first_fit, truth_and_forecasts
from .files import run

TRUTH, FORECASTS = truth_and_forecasts()


@pytest.fixture
def stores(tmp_path):
    """A hindcast, and observations whose numbers are damaged."""
    names = {"h": FORECASTS, "o": TRUTH}
    for name, array in names.items():
        store = tmp_path / f"{name}.zarr"
        array.to_dataset(name="t2m").to_zarr(store, zarr_format=3, consolidated=False)
    for path in (tmp_path / "o.zarr" / "t2m" / "c").rglob("*"):
        if path.is_file():
            path.write_bytes(b"no number")
    return tmp_path / "h.zarr", tmp_path / "o.zarr"


def test_damaged_numbers_are_refused(stores, tmp_path):
    model = first_fit(tmp_path).model
    commands = {
        "score": stores,
        "compare": (*stores, "--method", "emos"),
        "update": (model, *stores, tmp_path / "u.nc"),
    }
    for command, args in commands.items():
        done = run(command, *args, "--json", "--quiet")
        assert (done.code, done.data["status"]) == (3, "refused")
        assert done.data["error"].startswith("an input cannot be read (")


def test_a_figure_that_fails_is_no_traceback(tmp_path):
    pytest.importorskip("matplotlib")
    for name, array in {"h": FORECASTS, "o": TRUTH, "raw": FORECASTS[..., :1]}.items():
        array.to_dataset(name="t2m").to_netcdf(tmp_path / f"{name}.nc")
    paths = [tmp_path / name for name in ("h.nc", "o.nc")]
    page = ["--report", tmp_path / "page.png", "--raw", tmp_path / "raw.nc"]
    done = run("score", *paths, *page, "--json", "--quiet")
    assert (done.code, done.data["status"]) == (5, "failed")
    assert "spread and skill of 't2m' failed at" in done.err
    assert not (tmp_path / "page.png").exists()


def test_a_page_beside_raw_forecasts_without_values_is_refused(tmp_path):
    pytest.importorskip("matplotlib")
    for name, array in {"h": FORECASTS, "o": TRUTH, "raw": FORECASTS * float("nan")}.items():
        array.to_dataset(name="t2m").to_netcdf(tmp_path / f"{name}.nc")
    paths = [tmp_path / name for name in ("h.nc", "o.nc")]
    page = ["--report", tmp_path / "page.png", "--raw", tmp_path / "raw.nc"]
    done = run("score", *paths, *page, "--json", "--quiet")
    assert (done.code, done.data["status"]) == (3, "refused")
    assert done.data["error"].startswith("no location has a case with forecast and observation")
    assert not (tmp_path / "page.png").exists()


@pytest.fixture
def interruptible():
    """Interrupts as in the foreground of a shell: Python ignores them if a shell runs it with &."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("cycle", "interrupted; finished work is kept, repeat the command"),
        ("score", "interrupted; repeat the command"),
        ("fit", "interrupted; finished work is kept, repeat the command with --resume"),
    ],
)
def test_an_interrupt_names_options_that_there_are(tmp_path, monkeypatch, command, told):
    days = first_fit(tmp_path)
    days.hand_over(45)

    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(inputs, "open_data", interrupted)
    args = {
        "cycle": days.args(STARTS[45]),
        "score": ["score", days.forecasts, days.observations, "--json"],
        "fit": ["fit", days.forecasts, days.observations, tmp_path / "new.nc", "--json"],
    }
    done = run(*args[command])
    assert (done.code, done.data["error"]) == (130, told)


@pytest.mark.each_value
@pytest.mark.parametrize("content", ["", '{"last_issued": "2020', "[1]"])
@pytest.mark.parametrize(
    ("name", "remedy"), [("status.json", "remove it: rm "), ("cycle.json", "take another --output")]
)
def test_a_file_of_a_cycle_that_is_cut_off_is_named(tmp_path, name, remedy, content):
    days = first_fit(tmp_path)
    days.output.mkdir()
    (days.output / "cycle.json").write_text("{}")
    (days.output / name).write_text(content)
    done = days.morning(39)
    assert done.code == 3
    assert f"{days.output / name} is damaged: it is not JSON of a cycle; {remedy}" in done.err
