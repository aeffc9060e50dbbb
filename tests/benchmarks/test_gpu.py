"""The benchmark of the GPU says so where there is none, and measures what it claims to."""

import numpy as np
import pytest

from benchmarks import gpu


def test_without_a_device_nothing_is_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(gpu, "device_name", lambda: None)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "gpu.csv")
    assert gpu.main() == 0
    assert capsys.readouterr().out == "not measured: no CUDA device that CuPy can use\n"
    assert not (tmp_path / "gpu.csv").exists()


def test_every_piece_of_work_has_a_row(capsys, monkeypatch):
    from xrecal.arrays import dispatch

    monkeypatch.setattr(dispatch, "DISTANCES", {"numpy": "tests.device.naive"})
    rows = list(gpu.Bench(np, "a CPU in its place", gpu.QUICK).rows())
    assert [(row.work, row.n, row.m, row.locations) for row in rows] == [
        ("distances", 10, 8, 1),
        ("distances", 10, 16, 1),
        ("distances", 12, 4, 1),
        ("fit", 40, 4, 3),
        ("100 forecasts", 40, 4, 3),
        ("fit", 60, 4, 1),
        ("100 forecasts", 60, 4, 1),
    ]
    for row in rows:
        assert row.device_s > 0 < row.cpu_core_s
        assert row.bytes > 0 < row.flops
        assert row.floor_s > 0
        assert np.isfinite(row.naive_s) == (row.work == "distances")
        gpu.show(row)
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


@pytest.mark.gpu
def test_on_a_device(capsys):
    if gpu.device_name() is None:
        pytest.skip("no CUDA device that CuPy can use")
    assert gpu.main(quick=True) == 0
    assert "distances" in capsys.readouterr().out
