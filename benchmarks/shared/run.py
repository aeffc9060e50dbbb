"""What the truth of the synthetic network scores, and what raw forecasts do."""

import numpy as np

from benchmarks.speed.tables import Report, Row
from xrecal.arrays import crps, normal_crps

from .network import draw_dates, draw_network, truth

SEED = 25
MEMBERS = 20


def main(quick: bool = False) -> None:
    """Print the CRPS of raw forecasts and of the truth, with a record of the place and without."""
    n_places, n_dates = (20, 10) if quick else (200, 100)
    network = draw_network(n_places, SEED)
    members, observations = draw_dates(network, 0, n_dates, MEMBERS, SEED)
    report = Report()
    report.start(f"mean CRPS, {n_places} places x {n_dates} dates")
    found = {"raw": crps(observations, members)}
    for name, known in (("truth with a record", True), ("truth without", False)):
        law = truth(network, members, known=known)
        found[name] = normal_crps(observations, law.loc, law.scale, law.weights)
    for name, scores in found.items():
        report.add(Row(name, {"crps": float(np.mean(scores))}))
    print("budget lines measured: 0; the truth is what others are held to")
