"""Bad input of datasets, and the whole message that it gets."""

import gzip
from unittest.mock import patch

import numpy as np

from cases.datasets import (
    HERE,
    HOUR,
    HOURS,
    POLICIES,
    higgs_lines,
    idx,
    put,
    sha256,
    write_bike,
    write_claims,
    write_mnist,
)
from unbag.datasets import (
    _images,
    _tables,
    load_bike_sharing,
    load_cifar10,
    load_fremtpl2,
    load_higgs,
    load_mnist,
    read_adult,
)


def read_tampered():
    """Adult, whose file is not the one that was shipped."""
    with patch.dict(_tables.ADULT_SHA256, data="0"):
        read_adult()


def load_broken(load, name, content, *rest, **options):
    """Load from a fresh folder that holds only this."""
    root = HERE / name.replace("/", "_")
    put(root / name, content)
    return load(*rest, folder=root, **options)


TRAIN = "mnist/train-images-idx3-ubyte.gz"

MESSAGES = [
    (
        read_tampered,
        "The shipped file adult.data must have sha256 0: another given. Install unbag again.",
    ),
    (
        lambda: load_broken(load_mnist, TRAIN, b"x"),
        f"The file {HERE}/mnist_train-images-idx3-ubyte.gz/{TRAIN} must have the official sha256 "
        f"{_images.MNIST_SHA256['train-images-idx3']}: it has {sha256(b'x')}. Delete it and "
        "load again with download=True, or take it as it is with unofficial=True.",
    ),
    (
        lambda: load_mnist("odd"),
        "A task of MNIST must be one of even_odd, digits: 'odd' given. Choose one of these.",
    ),
    (
        lambda: _images.read_idx(put(HERE / "cut.gz", idx(np.zeros((9, 9)))[:-9])),
        f"The file {HERE}/cut.gz must be a whole gzip file: Compressed file ended before the "
        "end-of-stream marker was reached. Delete it and get it again.",
    ),
    (
        lambda: _images.read_idx(
            put(HERE / "short.gz", gzip.compress(b"\0\0\x08\x01\0\0\0\x05abc"))
        ),
        f"The file {HERE}/short.gz must be an idx file of bytes, as long as its head says: its "
        "head is 0000080100000005616263 and its length 11. Delete it and get it again.",
    ),
    (
        lambda: load_mnist(
            folder=write_mnist(HERE / "m", np.zeros((2, 28, 28)), np.zeros(3)), unofficial=True
        ),
        "MNIST must have images of 28 by 28 and a label for each: (2, 28, 28) given in "
        f"{HERE}/m/{TRAIN} and (3,) in {HERE}/m/mnist/train-labels-idx1-ubyte.gz. Get both files "
        "again.",
    ),
    (
        lambda: load_cifar10("dog_rest"),
        (
            "A task of CIFAR-10 must be one of animal_machine, cat_rest: 'dog_rest' given. "
            "Choose one of these."
        ),
    ),
    (
        lambda: _images._read(put(HERE / "batch.bin", b"x" * 3073)),
        f"The file {HERE}/batch.bin must hold records of 3073 bytes that begin with a class from "
        "0 to 9: its 3073 bytes do not. Delete it and get it again.",
    ),
    (
        lambda: load_broken(load_higgs, "higgs/HIGGS-1.csv.gz", higgs_lines(np.zeros((3, 29)))),
        (
            "The first rows are for testing and must leave some to train on: 10000 of 3 given. "
            "Lower test_rows."
        ),
    ),
    (
        lambda: load_broken(load_higgs, "higgs/HIGGS-2.csv.gz", gzip.compress(b"1,2\n")),
        f"The file {HERE}/higgs_HIGGS-2.csv.gz/higgs/HIGGS-2.csv.gz must be a whole gzip file of "
        "a label and 28 numbers in each row: CSV parse error: Expected 29 columns, got 2: 1,2. "
        "Delete it and get it again.",
    ),
    (
        lambda: load_broken(load_higgs, "higgs/HIGGS-3.csv.gz", higgs_lines(np.full((3, 29), 2.0))),
        f"A label in {HERE}/higgs_HIGGS-3.csv.gz/higgs/HIGGS-3.csv.gz must be 0 or 1 and a "
        "feature finite: there are others. Delete it and get it again.",
    ),
    (
        lambda: load_bike_sharing(folder=write_bike(HERE / "b1", HOUR + HOURS.splitlines(True)[0])),
        f"The file {HERE}/b1/bike_sharing/hour.csv must hold days before and after the 19th: it "
        "does not. Get the whole file.",
    ),
    (
        lambda: load_bike_sharing(folder=write_bike(HERE / "b2", b"a,b\n1,2\n")),
        f"The file {HERE}/b2/bike_sharing/hour.csv must be the hourly CSV file with its header: "
        "Column 'dteday' in include_columns does not exist in CSV file. Delete it and get it "
        "again.",
    ),
    (
        lambda: load_bike_sharing(
            folder=write_bike(HERE / "b3", HOUR + HOURS.replace(b"2011-01-", b"Jan "))
        ),
        f"A date in {HERE}/b3/bike_sharing/hour.csv must read 2011-01-31 or 31/01/11: Jan 01 "
        "was first. Get the file again.",
    ),
    (
        lambda: load_fremtpl2(folder=write_claims(HERE / "f1", POLICIES.splitlines(True)[0])),
        (
            f"The file {HERE}/f1/fremtpl2/freMTPL2freq.csv must hold more policies: 1 given. Get "
            "the whole file."
        ),
    ),
    (
        lambda: load_broken(
            load_fremtpl2, "fremtpl2/freMTPL2freq.csv.gz", gzip.compress(POLICIES)[:-9]
        ),
        f"The file {HERE}/fremtpl2_freMTPL2freq.csv.gz/fremtpl2/freMTPL2freq.csv.gz must be the "
        "whole table of policies with its header: Compressed file ended before the "
        "end-of-stream marker was reached. Delete it and get it again.",
    ),
    (
        lambda: load_fremtpl2(
            folder=write_claims(HERE / "f3", POLICIES.replace(b",0.75,", b",0,"))
        ),
        f"A policy in {HERE}/f3/fremtpl2/freMTPL2freq.csv must have a positive exposure and "
        "density, and no claims below 0: policy 5 has others. Get the file again.",
    ),
]
