"""Small cases that the tests of datasets, and the table of its messages, share."""

import gzip
import hashlib
import struct
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(tempfile.mkdtemp(prefix="datasets-"))


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


def write_mnist(root, images, labels):
    """The same rows as training and test part."""
    for part in ("train", "t10k"):
        put(root / "mnist" / f"{part}-images-idx3-ubyte.gz", idx(images))
        put(root / "mnist" / f"{part}-labels-idx1-ubyte.gz", idx(labels))
    return root


def higgs_lines(rows):
    return gzip.compress("".join(",".join(f"{x:.6e}" for x in row) + "\n" for row in rows).encode())


HOUR = (
    b"instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,casual,"
    b"registered,cnt\n"
)

HOURS = (
    b"1,2011-01-01,1,0,1,0,0,6,0,1,0.2,0.3,0.8,0,3,13,16\n"
    b"2,2011-01-19,1,0,1,23,0,3,1,2,0.6,0.5,0.4,0.5,0,1,1\n"
    b"3,2011-01-20,1,0,1,0,0,4,1,3,0.4,0.7,0.6,0.25,2,5,7\n"
)

POLICY = (
    "IDpol,ClaimNb,Exposure,Area,VehPower,VehAge,DrivAge,BonusMalus,VehBrand,VehGas,Density,Region"
)

POLICIES = (
    b"1,1,0.1,D,5,0,55,50,B12,Regular,100,R82\n3,16,2.01,B,15,100,95,230,B1,Diesel,10000,R22\n"
    b"5,0,0.75,B,6,2,52,100,B12,Diesel,1000,R94\n"
)


def write_bike(root, content):
    put(root / "bike_sharing" / "hour.csv", content)
    return root


def write_claims(root, content):
    put(root / "fremtpl2" / "freMTPL2freq.csv", POLICY.encode() + b"\n" + content)
    return root
