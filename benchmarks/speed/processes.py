"""Work in a fresh process, for what depends on its history: imports, compilation, peak memory."""

import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def fresh_process(*arguments: object, **environment: str) -> list[float]:
    """Numbers that a new Python prints, which is given these arguments."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | ONE_THREAD | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{arguments} failed:\n{done.stderr}")
    return [float(word) for word in done.stdout.split()]


class PeakMemory:
    """Most memory that this process held inside the block, beyond what it held before, in bytes.

    On Linux the kernel's mark of the peak is set back first. Elsewhere it can only be compared
    with the peak before, so that what fits below an earlier peak is not seen.
    """

    bytes = 0

    def __enter__(self) -> "PeakMemory":
        _forget_peak()
        self._before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = _status("VmHWM") - self._before


def _forget_peak() -> None:
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


def _status(field: str) -> int:
    """Memory held now (VmRSS) or at most (VmHWM), in bytes; always the latter off Linux.

    Not ``ru_maxrss`` on Linux: a child's begins with that of the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines[field].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
