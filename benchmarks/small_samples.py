"""LinearPool with 20 to 60 cases, cross-validated: python -m benchmarks.small_samples."""

import warnings

import xarray as xr

import xrecal
from examples.real_data import open_data

LIMIT = 1.02  # of the better of raw and EMOS
METHODS = {
    "climatology": xrecal.Climatology(),
    "EMOS": xrecal.EMOS(),
    "IDR": xrecal.IDR(),
    "CKME errors": xrecal.CKME(support="errors"),
    "LinearPool": xrecal.LinearPool(condition_on=()),
}


def sets(quick):
    """Name, forecasts, observations and dimension of the cases."""
    summer = open_data("europe_jja_cfsv2.nc")
    yield "Europe JJA temperature", summer["forecast"], summer["observation"], "time"
    if quick:
        return
    ocean = open_data("cesm_le_global_sst.nc")
    yield "CESM LE global SST", ocean["forecast"], ocean["observation"], "time"
    decadal = open_data("cesm_dple_global_ocean.nc")
    forecast = decadal["forecast"]
    yield "CESM DPLE SST, 10 leads", forecast, decadal["observation"], "init"
    yield "CESM DPLE SST v FOSI, 10 leads", forecast, decadal["observation_fosi"], "init"
    salt = decadal["salinity_forecast"], decadal["salinity_observation"]
    yield "CESM DPLE salinity, 10 leads", *salt, "init"
    pacific = open_data("cesm_dple_epacific_lagged.nc").isel(
        nlat=slice(None, None, 12), nlon=slice(None, None, 9)
    )
    yield "CESM DPLE east Pacific SST", pacific["forecast"], pacific["observation"], "time"


def main(quick=False):
    """Print the table."""
    labels = ["raw", *METHODS]
    print(f"{'CRPS':<32}{'by':<15}{'cases':>6}" + "".join(f"{x:>13}" for x in labels))
    worst = {}
    warnings.filterwarnings("ignore", ".* splits leave fewer")  # the first ones are short
    for name, forecast, observed, dim in sets(quick):
        for by in ("block", "retrospective"):
            scores = [forecast.recal.crps(observed)]
            scores += [
                forecast.recal.cross_validate(observed, m, dim=dim, by=by, output="crps")
                for m in METHODS.values()
            ]
            every = xr.concat(scores, "method")
            common = every.notnull().all("method")
            mean = every.where(common).mean([d for d in every.dims if d != "method"]).values
            print(
                f"{name:<32}{by:<15}{int(common.sum()):>6}" + "".join(f"{x:>13.4f}" for x in mean)
            )
            by_label = dict(zip(labels, mean, strict=True))
            ratio = by_label["LinearPool"] / min(by_label["raw"], by_label["EMOS"])
            worst[by] = max(worst.get(by, 0.0), float(ratio))
    verdict = "holds" if max(worst.values()) <= LIMIT else "MISSED"
    told = ", ".join(f"{by} {ratio:.3f}" for by, ratio in worst.items())
    print(
        f"budget {verdict}: LinearPool over the better of raw and EMOS, worst set: {told} "
        f"(<= {LIMIT})"
    )


if __name__ == "__main__":
    main()
