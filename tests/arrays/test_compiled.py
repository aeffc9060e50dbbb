import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests import processes
from xrecal.arrays import compiled, compiled_files
from xrecal.arrays.baselines import idr
from xrecal.arrays.ckme import folds, simplex
from xrecal.arrays.compiled import Kernel, Matrix, OutVector, Vector, declared_types
from xrecal.arrays.compiled_files import FOLDER, CompiledFiles, folder
from xrecal.cli.warm import compile_all, every_kernel


def shifted(x: Vector, by: float, out: OutVector) -> None:
    for i in range(x.size):
        out[i] = x[i] + by


def row_sums(x: Matrix, out: OutVector) -> None:
    for i in range(x.shape[0]):
        out[i] = 0.0
        for j in range(x.shape[1]):
            out[i] += x[i, j]


def kernel_of(function=shifted):
    return Kernel(function, targetoptions={"nopython": True, "nogil": True})


def run_once(kernel):
    out = np.empty(3)
    kernel(np.arange(3.0), 2.0, out)
    return out


def source_of(kernel):
    """Where the code of a kernel came from when it was first called."""
    return "disk" if kernel.stats.cache_hits else "compiled" if kernel.stats.cache_misses else None


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A cache without files."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(CompiledFiles, "error", None)
    return tmp_path / "cache" / "compiled"


def test_types_are_those_of_the_annotations():
    assert list(map(str, declared_types(shifted))) == [
        "readonly array(float64, 1d, C)",
        "float64",
        "array(float64, 1d, C)",
    ]
    fields = declared_types(simplex.energy_row.py_func)
    assert str(fields[0]) == "readonly array(float64, 1d, C)"
    ordered = declared_types(idr.fill_weights.py_func)[1]
    assert ordered.instance_class is idr.OrderedCases
    assert [str(part) for part in ordered] == [
        *["array(float64, 2d, C)"] * 2, *["array(int64, 2d, C)"] * 2, "array(int64, 1d, C)"
    ]  # fmt: skip


def test_an_annotation_without_a_type_is_refused():
    def unknown(x: list) -> None: ...

    with pytest.raises(TypeError, match=r"compiled code does not take the type .*list"):
        declared_types(unknown)


def test_one_type_serves_every_call(empty):
    kernel, read_only = kernel_of(), np.arange(3.0)
    read_only.flags.writeable = False
    for x in (read_only, np.arange(3.0)):
        for by in (2, 2.0, np.float32(2.0)):
            out = np.empty(3)
            kernel(x, by, out)
            np.testing.assert_array_equal(out, [2.0, 3.0, 4.0])
    assert len(kernel.signatures) == 1
    for x in (np.arange(6.0)[::2], np.arange(3), np.arange(3, dtype=np.float32), np.ones((3, 1))):
        with pytest.raises(TypeError, match="No matching definition"):
            kernel(x, 2.0, np.empty(3))
    with pytest.raises(TypeError, match="No matching definition"):
        kernel(np.arange(3.0), 2.0, read_only)


def test_nothing_is_compiled_before_it_is_called(empty):
    kernel = kernel_of()
    assert (source_of(kernel), empty.exists()) == (None, False)


def test_a_second_process_finds_what_the_first_compiled(empty):
    first, second = kernel_of(), kernel_of()
    np.testing.assert_array_equal(run_once(first), run_once(second))
    assert (source_of(first), source_of(second)) == ("compiled", "disk")
    (file,) = empty.iterdir()
    assert file.name.startswith("tests.arrays.test_compiled.shifted-")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file, _: file.write_bytes(b""),
        lambda file, _: file.write_bytes(file.read_bytes()[:-1]),
        lambda file, _: file.write_bytes(file.read_bytes()[:500]),
        lambda file, _: file.write_bytes(b"x" + file.read_bytes()[1:]),
        lambda file, _: file.write_bytes(file.read_bytes()[:-1] + b"x"),
        lambda file, other: file.write_bytes(other.read_bytes()),
        lambda file, _: file.write_text("not what it says"),
    ],
    ids=["empty", "cut", "cut short", "head", "tail", "of another function", "foreign"],
)
def test_files_that_are_not_sound_are_replaced(empty, spoil):
    kernel_of(row_sums).compile(None)
    (other,) = empty.iterdir()
    expected = run_once(kernel_of())
    (file,) = set(empty.iterdir()) - {other}
    sound = file.read_bytes()
    spoil(file, other)
    again = kernel_of()
    np.testing.assert_array_equal(run_once(again), expected)
    assert source_of(again) == "compiled"
    assert len(file.read_bytes()) == pytest.approx(len(sound), rel=0.1)
    last = kernel_of()
    np.testing.assert_array_equal(run_once(last), expected)
    assert source_of(last) == "disk"
    assert {path.name for path in empty.iterdir()} == {file.name, other.name}


def test_without_a_folder_to_write_to_code_stays_in_memory_with_one_note(tmp_path, monkeypatch):
    taken = tmp_path / "file"
    taken.write_text("")
    monkeypatch.setenv(FOLDER, str(taken))
    monkeypatch.setattr(CompiledFiles, "error", None)
    with pytest.warns(UserWarning, match=f"could not be kept in {taken}.*set {FOLDER}"):
        found = run_once(kernel_of())
    np.testing.assert_array_equal(found, [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(run_once(kernel_of()), found)  # a second note would be an error


def test_a_full_disk_leaves_no_file(empty, monkeypatch):
    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        np.testing.assert_array_equal(run_once(kernel_of()), [2.0, 3.0, 4.0])
    assert list(empty.iterdir()) == []


def test_the_user_s_cache_without_a_folder_of_one_s_own(monkeypatch):
    monkeypatch.delenv(FOLDER)
    assert folder().parts[-2:] == ("xrecal", "compiled")


def named(function):
    """Name of the file of a function."""
    files = CompiledFiles(function, lambda _: "types")
    return files._name(Kernel.targetdescr.target_context.codegen())


def test_the_name_follows_from_code_constants_callees_and_closures():
    def made(constant=1.0, callee=simplex.push_level, scope=None, text="x + {}"):
        names = {"callee": callee, "np": np, "unused": object(), **(scope or {"LIMIT": 3})}
        exec(f"def f(x):\n    callee\n    LIMIT\n    return {text.format(constant)}", names)
        return names["f"]

    def closed(value):
        def f(x):
            return x + value

        return f

    assert named(made()) == named(made())
    different = [
        made(), made(2.0), made(callee=folds.arrange_folds), made(scope={"LIMIT": 4}),
        made(text="x - {}"), closed(1), closed(2), closed(simplex.push_level),
        closed(simplex.energy_row),
    ]  # fmt: skip
    assert len({named(function).rpartition("-")[2] for function in different}) == len(different)


def test_a_changed_callee_changes_the_name(monkeypatch):
    before = named(simplex.energy_row.py_func)

    def push_level(value: float) -> int:
        return 0

    monkeypatch.setattr(simplex, "push_level", kernel_of(push_level))
    assert named(simplex.energy_row.py_func) != before


@pytest.mark.parametrize("part", ["_VERSIONS", "types", "processor"])
def test_a_change_of_version_types_or_processor_changes_the_name(part, monkeypatch):
    before = named(shifted)
    files = CompiledFiles(shifted, lambda _: "others" if part == "types" else "types")
    codegen = Kernel.targetdescr.target_context.codegen()
    if part == "_VERSIONS":
        monkeypatch.setattr(compiled_files, "_VERSIONS", ("other",))
    if part == "processor":
        monkeypatch.setattr(type(codegen), "magic_tuple", lambda self: ("other",))
    assert files._name(codegen) != before


def test_threads_that_begin_together_compile_once(empty):
    kernel, results = kernel_of(), []
    threads = [threading.Thread(target=lambda: results.append(run_once(kernel))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(results), kernel.stats.cache_misses.total()) == (8, 1)
    assert all((each == [2.0, 3.0, 4.0]).all() for each in results)


def names_of_files():
    """Names of the files of all functions of the package, in this process."""
    codegen = Kernel.targetdescr.target_context.codegen()
    return sorted(kernel._cache._name(codegen) for kernel in every_kernel())


def python(code, **environment):
    """What a process prints."""
    done = processes.python(code, **environment)
    assert done.code == 0, done.err
    return done.out


USED = f"""
from {__name__} import names_of_files
print(*names_of_files())
import numpy as np
import xrecal
from xrecal.arrays import compiled
data = xrecal.datasets.lorenz96(n_inits=60, n_members=8, n_locations=4, lead_days=[5])
data = data.isel(lead=0, location=[0, 1], drop=True)
methods = [method() for method in xrecal.methods.METHODS]
methods += [
    xrecal.CKME(projection=projection, loss=loss, support=support)
    for projection in ("euclidean", "energy")
    for loss in ("crps", "laplace")
    for support in ("observations", "auto")
    if (loss, support) != ("laplace", "auto")
]
for method in methods:
    model = data.forecast.recal.fit(data.observation, method, min_samples=5)
    model.quantile(data.forecast, [0.1, 0.9])
    model.crps(data.forecast, data.observation)
    model.members(data.forecast, 5)
print(*(k.py_func.__qualname__ for k in compiled.all_kernels() if k.stats.cache_misses))
"""


@pytest.fixture(scope="module")
def elsewhere():
    """Names of files in a new Python, and what it had to compile after all was compiled here."""
    assert compile_all()["functions"] == len(compiled.all_kernels())
    done = subprocess.run(
        [sys.executable, "-c", USED],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names, compiled_there = done.stdout.splitlines()
    return names.split(), compiled_there.split()


def test_all_processes_give_files_the_same_names(elsewhere):
    names = names_of_files()
    assert elsewhere[0] == names
    assert len(set(names)) == len(names) > 80


def test_warm_leaves_nothing_to_compile(elsewhere):
    assert elsewhere[1] == []


NAMED = f"""
from {__name__} import kernel_of
kernel = kernel_of()
kernel.compile(None)
print(*(each.fndesc.mangled_name for each in kernel.overloads.values()))
"""


def test_no_two_processes_give_functions_the_same_names(tmp_path):
    """Else those of one process would run in place of those of another, where both are loaded."""
    names = [python(NAMED, **{FOLDER: str(tmp_path / one)}) for one in ("first", "second")]
    assert all("shifted" in name for name in names)
    assert names[0] != names[1]


WORK = """
import hashlib, sys, time
from pathlib import Path
import numpy as np
from xrecal import arrays
go = Path(sys.argv[1]) if len(sys.argv) > 1 else None
rng = np.random.default_rng(0)
x, w = rng.normal(size=(20, 5)), rng.dirichlet(np.ones(5), size=(3, 20))
print("ready", flush=True)
while go and not go.exists():
    time.sleep(0.01)
d = arrays.squared_energy_distance(x)
e = arrays.project_energy(d, rng.normal(size=20))
c = arrays.weighted_exceedance(x, np.array([0.0, 1.0]))
print(hashlib.sha256(d.tobytes() + e.tobytes() + c.tobytes()).hexdigest())
"""


def test_code_from_disk_gives_the_same_bits(empty):
    assert python(WORK) == python(WORK)
    assert len(list(empty.iterdir())) > 3


@pytest.mark.slow
@pytest.mark.parametrize("time", range(20))
def test_many_processes_that_start_at_once(empty, tmp_path, time):
    go, alone = tmp_path / "go", python(WORK, **{FOLDER: str(tmp_path / "alone")}).split()
    started = [
        subprocess.Popen([sys.executable, "-c", WORK, str(go)], stdout=subprocess.PIPE, text=True)
        for _ in range(32)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    go.touch()
    assert {process.communicate()[0].strip() for process in started} == {alone[1]}
    names = {path.name for path in empty.iterdir()}
    assert names == {path.name for path in (tmp_path / "alone" / "compiled").iterdir()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert python(WORK).split() == alone


HOMELESS = f"""
import warnings
from {__name__} import kernel_of, run_once
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        print(*run_once(kernel_of()))
print(len(told), str(told[0].message))
"""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"HOME": "/nonexistent"}, "there is no folder /nonexistent"),
        ({"XDG_CACHE_HOME": "/nonexistent"}, "there is no folder /nonexistent"),
        ({FOLDER: "cache"}, "not an absolute path"),
    ],
)
def test_without_a_home_compiled_code_stays_in_memory(changes, told, tmp_path):
    enter = f"import os\nos.chdir({str(tmp_path)!r})\n"
    environment = {FOLDER: "", "XDG_CACHE_HOME": "", "HOME": str(tmp_path)} | changes
    first, second, note = python(enter + HOMELESS, **environment).splitlines()
    assert first == second == "2.0 3.0 4.0"
    assert note.startswith("1 compiled code could not be kept in")
    assert told in note
    assert not list(tmp_path.iterdir())
    assert not Path("/nonexistent").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes anywhere")
def test_a_home_that_is_read_only(tmp_path):
    tmp_path.chmod(0o500)
    environment = {FOLDER: "", "XDG_CACHE_HOME": "", "HOME": str(tmp_path)}
    note = python(HOMELESS, **environment).splitlines()[-1]
    assert note.startswith("1 compiled code could not be kept in")
