"""Tiny files in the published formats, the download over a real connection, and the real files
where they are."""

import atexit
import gc
import io
import shutil
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pooch
import pytest

from cases.datasets import (
    HERE,
    HOUR,
    HOURS,
    POLICIES,
    POLICY,
    higgs_lines,
    put,
    sha256,
    write_bike,
    write_claims,
    write_mnist,
)
from unbag import random_bags
from unbag.datasets import (
    _images,
    _tables,
    data_folder,
    load_adult,
    load_bike_sharing,
    load_cifar10,
    load_fremtpl2,
    load_higgs,
    load_mnist,
)
from unbag.datasets._files import Source, fetch, find

atexit.register(shutil.rmtree, HERE, ignore_errors=True)


def records(rng, labels):
    planes = rng.integers(0, 256, size=(len(labels), 3072), dtype=np.uint8)
    return np.column_stack([np.asarray(labels, np.uint8), planes])


BATCH = "cifar-10-batches-bin/test_batch.bin"


# reading


def test_mnist_is_even_against_odd_or_ten_digits(tmp_path):
    images, labels = np.arange(4 * 784).reshape(4, 28, 28) % 256, np.array([0, 7, 4, 1])
    load = partial(load_mnist, folder=write_mnist(tmp_path, images, labels), unofficial=True)
    data, digits, pictures = load(), load("digits"), load(images=True)
    np.testing.assert_array_equal(data.X, (images.reshape(4, 784) / 255).astype(np.float32))
    np.testing.assert_array_equal(data.y, [1, 0, 1, 0])
    assert (data.kind, data.classes, len(data.features)) == ("binary", 2, 784)
    np.testing.assert_array_equal(digits.y_test, labels)
    assert (digits.kind, digits.classes, digits.y.dtype) == ("histogram", 10, np.int32)
    np.testing.assert_array_equal(pictures.X_test[..., 0].reshape(4, 784), data.X)
    assert (data.official, data.note) == (False, "the files are not the official ones")


def test_a_right_digest_makes_a_file_official(tmp_path, monkeypatch):
    root = write_mnist(tmp_path, np.zeros((1, 28, 28)), np.zeros(1))
    with pytest.raises(ValueError, match="official sha256"):
        load_mnist(folder=root)
    for name in _images.MNIST_SHA256:
        content = (root / "mnist" / f"{name}-ubyte.gz").read_bytes()
        monkeypatch.setitem(_images.MNIST_SHA256, name, sha256(content))
    assert load_mnist(folder=root)[-2:] == (True, "")


def test_cifar_reads_the_batches_that_are_there(tmp_path):
    rng = np.random.default_rng(0)
    train, test = records(rng, [3, 0, 5]), records(rng, [9, 3])
    put(tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin", train.tobytes())
    put(tmp_path / BATCH, test.tobytes())
    load = partial(load_cifar10, folder=tmp_path, unofficial=True)
    data, cats = load(), load("cat_rest", images=True)
    np.testing.assert_array_equal(data.y, [1, 0, 1])
    np.testing.assert_array_equal(cats.y, [1, 0, 0])
    np.testing.assert_array_equal(cats.y_test, [0, 1])
    red, green, blue = train[0, 1:].reshape(3, 32, 32)
    np.testing.assert_array_equal(
        cats.X[0, 4, 7], np.float32([red[4, 7], green[4, 7], blue[4, 7]]) / np.float32(255)
    )
    np.testing.assert_array_equal(data.X, cats.X.reshape(3, 3072))
    assert data.features[3 * (4 * 32 + 7) + 1] == "green_4_7"
    assert not data.official


def test_cifar_counts_the_batches(tmp_path, monkeypatch):
    content = records(np.random.default_rng(0), [1, 2]).tobytes()
    for name in _images.CIFAR_SHA256:
        monkeypatch.setitem(_images.CIFAR_SHA256, name, sha256(content))
        put(tmp_path / "cifar-10-batches-bin" / name, content)
    whole = load_cifar10(folder=tmp_path)
    assert (len(whole.y), whole.official, whole.note) == (10, True, "")
    (tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    part = load_cifar10(folder=tmp_path)
    assert (len(part.y), part.official, part.note) == (8, False, "4 of the 5 training files")


def test_higgs_tests_on_the_first_rows(tmp_path):
    rows = np.column_stack([[1, 0, 1], np.random.default_rng(0).normal(size=(3, 28))])
    put(tmp_path / "higgs" / "HIGGS-3.csv.gz", higgs_lines(rows))
    data = load_higgs(folder=tmp_path, test_rows=2)
    np.testing.assert_array_equal(data.y_test, [1, 0])
    np.testing.assert_allclose(data.X, rows[2:, 1:22], rtol=1e-5)
    np.testing.assert_allclose(
        load_higgs(folder=tmp_path, test_rows=1, high_level=True).X, rows[1:, 1:], rtol=1e-5
    )
    assert (data.features[0], data.features[-1]) == ("lepton_pT", "jet_4_btag")
    assert (
        data.note
        == "3 rows from HIGGS-3.csv.gz; the official file has 11,000,000, 2 rows to test on; the "
        "paper " + ("takes 10,000")
    )


@pytest.mark.parametrize(
    "content",
    [HOURS, HOURS.replace(b"2011-01-01", b"01/01/11").replace(b"2011-01-19", b"19/01/11")],
)
def test_bike_sharing_trains_on_the_first_nineteen_days(tmp_path, content):
    data = load_bike_sharing(folder=write_bike(tmp_path, HOUR + content))
    np.testing.assert_array_equal(data.y, [16, 1])
    np.testing.assert_array_equal(data.y_test, [7])
    column = lambda X, name: X[:, data.features.index(name)].tolist()
    assert column(data.X, "hr=23") == [0, 1]
    assert column(data.X_test, "hr=0") == [1]
    assert column(data.X_test, "temp") == pytest.approx([0.5])
    assert column(data.X_test, "atemp") == pytest.approx([2.0])
    assert not {"casual", "registered", "cnt", "instant"} & set(data.features)
    assert (data.kind, data.official, data.note) == (
        "total",
        False,
        "3 hours; the official file has 17,379",
    )


def test_claims_have_an_offset(tmp_path):
    data = load_fremtpl2(folder=write_claims(tmp_path, POLICIES))
    np.testing.assert_array_equal(data.y, [1, 4])
    np.testing.assert_array_equal(data.y_test, [0])
    np.testing.assert_allclose(data.offset, np.log([0.1, 1]), rtol=1e-6)
    np.testing.assert_allclose(data.offset_test, np.log([0.75]), rtol=1e-6)
    column = lambda name: data.X_test[:, data.features.index(name)].tolist()
    assert column("VehPower") == pytest.approx([0.1])
    assert column("VehAge") == pytest.approx([0.1])
    assert column("DrivAge") == pytest.approx([-3 / 35])
    assert column("BonusMalus") == pytest.approx([0.5])
    assert column("log Density") == pytest.approx([0.5])
    assert column("Area=B") == [1]
    raw = load_fremtpl2(folder=tmp_path, capped=False)
    np.testing.assert_array_equal(raw.y, [1, 16])
    np.testing.assert_allclose(raw.offset, np.log([0.1, 2.01]), rtol=1e-6)


def test_claims_come_as_arff_too(tmp_path):
    lines = (
        POLICIES.decode()
        .replace("D,5", "'D',5")
        .replace("B12", "'B12'")
        .replace("Regular", "'Regular'")
    )
    head = (
        "@RELATION freMTPL2freq\n\n"
        + "".join(f"@ATTRIBUTE {name} NUMERIC\n" for name in POLICY.split(","))
        + "\n@DATA\n"
    )
    put(tmp_path / "arff" / "fremtpl2" / "freMTPL2freq.arff", (head + lines).encode())
    arff = load_fremtpl2(folder=tmp_path / "arff", unofficial=True)
    table = load_fremtpl2(folder=write_claims(tmp_path, POLICIES))
    np.testing.assert_array_equal(arff.X, table.X)
    np.testing.assert_array_equal(arff.y, table.y)
    assert arff.features == table.features


def test_adult_is_one_hot_and_scaled_by_the_training_part():
    adult = load_adult()
    numbers = [i for i, name in enumerate(adult.features) if "=" not in name]
    assert len(numbers) == 6
    np.testing.assert_array_equal(adult.X[:, numbers].min(axis=0), np.zeros(6))
    np.testing.assert_array_equal(adult.X[:, numbers].max(axis=0), np.ones(6))
    groups = {}
    for i, name in enumerate(adult.features):
        groups.setdefault(name.partition("=")[0], []).append(i)
    for columns in groups.values():
        if len(columns) > 1:
            assert (adult.X[:, columns].sum(axis=1) == 1).all()
    assert (adult.name, adult.official, adult.licence) == ("adult/income", True, "CC BY 4.0")


# finding


def test_the_data_folder_is_the_argument_then_the_variable_then_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("UNBAG_DATA", "/a")
    assert data_folder("/b") == Path("/b")
    assert data_folder() == Path("/a")
    monkeypatch.delenv("UNBAG_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert data_folder() == Path("/c/unbag")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "unbag"


LOADERS = [load_mnist, load_cifar10, load_higgs, load_bike_sharing, load_fremtpl2]


@pytest.mark.parametrize("load", LOADERS)
def test_a_missing_file_says_where_it_was_looked_for_and_how_to_get_it(load, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        load(folder=tmp_path)
    assert f"must lie at {tmp_path}/" in str(error.value)
    assert "there is none. Get it from https://" in str(error.value)
    assert (
        "load with download=True (unbag reproduce: --download), or set UNBAG_DATA to the folder"
        in str(error.value)
    )


# downloading, over a real connection to this machine


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder that is served, its address, and what was asked for."""
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

        def do_GET(self):
            if not self.path.endswith("cut"):
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"too short")

    served = tmp_path / "served"
    served.mkdir()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(served))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield served, f"http://127.0.0.1:{http.server_port}/", asked
        http.shutdown()


def left(root):
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_files_are_downloaded_checked_and_loaded(server, tmp_path, monkeypatch, capsys):
    served, url, asked = server
    write_mnist(served, np.zeros((1, 28, 28)), np.array([8]))
    monkeypatch.setattr(_images, "MNIST_URL", url + "mnist/")
    for name in _images.MNIST_SHA256:
        content = (served / "mnist" / f"{name}-ubyte.gz").read_bytes()
        monkeypatch.setitem(_images.MNIST_SHA256, name, sha256(content))
    data = load_mnist(folder=tmp_path / "here", download=True)
    assert (data.y.tolist(), data.official) == ([1], True)
    assert left(tmp_path / "here") == sorted(f"{name}-ubyte.gz" for name in _images.MNIST_SHA256)
    assert len(asked) == 4
    load_mnist(folder=tmp_path / "here", download=True)
    assert len(asked) == 4
    assert capsys.readouterr().out == ""


def test_a_download_with_another_digest_is_not_kept(server, tmp_path):
    served, url, _ = server
    put(served / "x", b"changed")
    source = Source("there", "x", url + "x", sha256(b"published"))
    with pytest.raises(ValueError) as error:
        find(source, folder=tmp_path / "here", download=True)
    assert str(error.value) == (
        f"The download from {url}x must have the official sha256 {sha256(b'published')}: it has "
        f"{sha256(b'changed')}. Nothing was kept; try again, or look at the address."
    )
    assert left(tmp_path / "here") == []


# pooch leaves the connection of a broken download to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "name, reason",
    [("cut", "9 bytes read, 991 more expected"), ("absent", "404 Client Error: File not found")],
)
def test_a_broken_download_leaves_nothing_and_says_why(server, tmp_path, name, reason):
    _, url, _ = server
    with pytest.raises(ConnectionError) as error:
        find(Source("there", name, url + name), folder=tmp_path / "here", download=True)
    told = str(error.value)
    del error
    gc.collect()
    assert told.startswith(f"The file at {url}{name} must be reachable to be downloaded: ")
    assert reason in told
    assert told.endswith("Try again where there is a network, or bring the file by hand.")
    assert left(tmp_path / "here") == []


def test_without_a_network_the_message_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(
        _tables,
        "HIGGS_SOURCE",
        _tables.HIGGS_SOURCE._replace(url="http://127.0.0.1:9/HIGGS.csv.gz"),
    )
    with pytest.raises(
        ConnectionError,
        match=r"HIGGS.csv.gz must be reachable .* Try again where there is a network",
    ):
        load_higgs(folder=tmp_path, download=True)
    assert left(tmp_path) == []


def test_an_archive_is_downloaded_once_for_all_its_files(server, tmp_path, monkeypatch):
    served, url, asked = server
    content = records(np.random.default_rng(0), [4]).tobytes()
    with tarfile.open(served / "cifar.tar.gz", "w:gz") as tar:
        for name in _images.CIFAR_SHA256:
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            monkeypatch.setitem(_images.CIFAR_SHA256, name, sha256(content))
    monkeypatch.setattr(_images, "CIFAR_URL", url + "cifar.tar.gz")
    monkeypatch.setattr(
        _images, "CIFAR_ARCHIVE_SHA256", sha256((served / "cifar.tar.gz").read_bytes())
    )
    data = load_cifar10(folder=tmp_path / "here", download=True)
    assert (data.y.tolist(), data.official) == ([1] * 5, True)
    assert asked == ["/cifar.tar.gz"]
    assert left(tmp_path / "here") == sorted(_images.CIFAR_SHA256)


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-200], lambda whole: whole[:40] + b"x" * 99 + whole[139:]]
)
def test_a_damaged_archive_leaves_nothing(server, tmp_path, damage):
    served, url, _ = server
    noise, packed = np.random.default_rng(0).bytes(5000), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("x")
        member.size = len(noise)
        tar.addfile(member, io.BytesIO(noise))
    put(served / "a.tar.gz", damage(packed.getvalue()))
    with pytest.raises(
        ValueError, match=r"The archive at .*a.tar.gz must hold x: .* Nothing was kept"
    ):
        fetch([Source("there", "x", url + "a.tar.gz", "", "x")], tmp_path / "here")
    assert left(tmp_path / "here") == []


def test_an_archive_without_the_file_leaves_nothing(server, tmp_path):
    served, url, _ = server
    with zipfile.ZipFile(served / "a.zip", "w") as archive:
        archive.writestr("other", "x")
    put(served / "b.zip", b"x")
    for name, reason in (("a.zip", "it does not"), ("b.zip", "File is not a zip file")):
        with pytest.raises(ValueError) as error:
            fetch([Source("there", "x", url + name, "", "x")], tmp_path / "here")
        assert str(error.value) == (
            f"The archive at {url}{name} must hold x: {reason}. Nothing was kept; look at the "
            "address."
        )
    assert left(tmp_path / "here") == []


def test_a_zip_archive_is_opened(server, tmp_path, monkeypatch):
    served, url, _ = server
    with zipfile.ZipFile(served / "bike.zip", "w") as archive:
        archive.writestr("hour.csv", HOUR + HOURS)
    monkeypatch.setattr(
        _tables, "BIKES_SOURCE", _tables.BIKES_SOURCE._replace(url=url + "bike.zip")
    )
    assert load_bike_sharing(folder=tmp_path / "here", download=True).y.tolist() == [16, 1]
    assert left(tmp_path / "here") == ["hour.csv"]


def test_a_full_disk_is_not_taken_for_a_broken_connection(server, tmp_path, monkeypatch):
    served, url, _ = server
    put(served / "x", b"x")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        fetch([Source("there", "x", url + "x")], tmp_path / "here")
    assert not isinstance(error.value, ConnectionError)


# the real files, where they are

FACTS = [
    (load_mnist, (60_000, 784), (10_000, 784), 0.4915, "mnist"),
    (
        partial(load_mnist, "digits", images=True),
        (60_000, 28, 28, 1),
        (10_000, 28, 28, 1),
        4.4539,
        "mnist",
    ),
    (
        partial(load_cifar10, "cat_rest", images=True),
        None,
        (10_000, 32, 32, 3),
        None,
        "cifar-10-batches-bin",
    ),
    (load_higgs, None, (10_000, 21), None, "higgs"),
    (load_bike_sharing, (10_886, 58), (6_493, 58), 191.5741, "bike_sharing"),
    (load_fremtpl2, (542_349, 46), (135_664, 46), 0.0533, "fremtpl2"),
]


@pytest.mark.parametrize("load, shape, shape_test, mean, folder", FACTS, ids=range(len(FACTS)))
def test_real_files_are_what_was_published(load, shape, shape_test, mean, folder):
    if not (data_folder() / folder).exists():
        pytest.skip(f"there is no {data_folder() / folder}: set UNBAG_DATA to test the real files")
    data = load()
    assert data.X_test.shape == shape_test
    assert data.X.dtype == np.float32
    assert len(data.X) == len(data.y)
    assert len(data.X_test) == len(data.y_test)
    if shape is not None:
        assert (data.X.shape, data.official) == (shape, True)
        assert data.y.mean(dtype=float) == pytest.approx(mean, abs=5e-5)
    if not data.name.startswith("higgs"):
        assert (data.X.min(), data.X.max()) == (0, 1)
    random_bags(data.X[:1000], data.y[:1000], size=10, seed=0, kind=data.kind)
