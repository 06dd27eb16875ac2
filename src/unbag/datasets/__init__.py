"""Labelled training and test data, shipped, published or made; labels are for making bags and for
the truth."""

from unbag.datasets._adult import load_adult, read_adult
from unbag.datasets._bike_sharing import load_bike_sharing
from unbag.datasets._chunk import Chunk, Chunks, Quarantine
from unbag.datasets._cifar10 import load_cifar10
from unbag.datasets._clicks import read_clicks, write_clicks
from unbag.datasets._conversions import Conversions, make_conversions
from unbag.datasets._criteo import CHUNK, read_criteo
from unbag.datasets._criteo_records import BUCKETS, DIMENSIONS
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import data_folder
from unbag.datasets._fremtpl2 import load_fremtpl2
from unbag.datasets._higgs import load_higgs
from unbag.datasets._mnist import load_mnist
from unbag.datasets._synthetic import make_campaigns, make_counts, make_gaussian, make_heavy_tailed

__all__ = [
    "BUCKETS", "CHUNK", "DIMENSIONS", "Chunk", "Chunks", "Conversions", "Dataset", "Quarantine",
    "data_folder", "load_adult", "load_bike_sharing", "load_cifar10", "load_fremtpl2", "load_higgs",
    "load_mnist", "make_campaigns", "make_conversions", "make_counts", "make_gaussian",
    "make_heavy_tailed", "read_adult", "read_clicks", "read_criteo", "write_clicks",
]  # fmt: skip
