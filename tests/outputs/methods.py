"""Methods with the settings of which outputs are recorded."""

from typing import Any

import xrecal

METHODS: dict[str, Any] = {
    "ckme": xrecal.CKME(support="observations"),
    "ckme_errors": xrecal.CKME(support="errors"),
    "ckme_auto": xrecal.CKME(support="auto"),
    "ckme_season": xrecal.CKME(support="observations", condition_on="season"),
    "ckme_auto_season": xrecal.CKME(support="auto", condition_on="season", bandwidth="cv"),
    "ckme_kernel_laplace": xrecal.CKME(support="observations", kernel="laplace"),
    "ckme_loss_laplace": xrecal.CKME(support="observations", loss="laplace"),
    "ckme_energy": xrecal.CKME(support="observations", projection="energy"),
    "ckme_exact": xrecal.CKME(support="observations", solver="exact", folds="block", gap=1),
    "ckme_lowrank": xrecal.CKME(support="observations", solver="lowrank", folds="random"),
    "ckme_given": xrecal.CKME(bandwidth=2.0, ridge=0.01, bounds=(250, None), support="errors"),
    "ckme_shapes": xrecal.CKME(compare="shapes", support="errors"),
    "ckme_half_life": xrecal.CKME(support="observations", half_life=400),
    "ckme_half_life_cv": xrecal.CKME(half_life="cv", support="errors"),
    "emos": xrecal.EMOS(),
    "emos_season": xrecal.EMOS(condition_on="season", vary_spread=True, bounds=None),
    "idr": xrecal.IDR(),
    "idr_season": xrecal.IDR(condition_on="season"),
    "pool": xrecal.LinearPool(),
    "pool_of_two": xrecal.LinearPool(
        (xrecal.CKME(support="observations"), xrecal.EMOS()), condition_on=()
    ),
    "pit": xrecal.PITRecalibration(),
    "pit_season": xrecal.PITRecalibration(condition_on="season"),
    "conformal": xrecal.ConformalPrediction(alpha=0.2),
    "conformal_season": xrecal.ConformalPrediction(condition_on="season"),
    "climatology": xrecal.Climatology(),
    "climatology_window": xrecal.Climatology(window=90),
    "climatology_season": xrecal.Climatology(condition_on="season"),
    "raw": xrecal.Raw(),
}

DEVICE_METHODS = {
    name: METHODS[name] for name in ("ckme", "ckme_auto_season", "ckme_exact", "ckme_shapes")
}
