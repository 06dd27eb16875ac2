"""Nothing or a file in, labelled training and test data out; labels are for making bags and for the
truth."""

from unbag.datasets._adult import load_adult, read_adult
from unbag.datasets._bike_sharing import load_bike_sharing
from unbag.datasets._chunk import Chunk
from unbag.datasets._cifar10 import load_cifar10
from unbag.datasets._clicks import read_clicks, write_clicks
from unbag.datasets._criteo import read_criteo
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import data_folder
from unbag.datasets._fremtpl2 import load_fremtpl2
from unbag.datasets._higgs import load_higgs
from unbag.datasets._mnist import load_mnist
from unbag.datasets._quarantine import Quarantine
from unbag.datasets._synthetic import make_campaigns, make_counts, make_gaussian, make_heavy_tailed

__all__ = [
    "Chunk",
    "Dataset",
    "Quarantine",
    "data_folder",
    "load_adult",
    "load_bike_sharing",
    "load_cifar10",
    "load_fremtpl2",
    "load_higgs",
    "load_mnist",
    "make_campaigns",
    "make_counts",
    "make_gaussian",
    "make_heavy_tailed",
    "read_adult",
    "read_clicks",
    "read_criteo",
    "write_clicks",
]
