"""Nothing or a file in, labelled training and test data out; labels are for making bags and for the truth."""

from unbag.datasets.adult import load_adult, read_adult
from unbag.datasets.bike_sharing import load_bike_sharing
from unbag.datasets.chunks import Chunk
from unbag.datasets.cifar10 import load_cifar10
from unbag.datasets.clicks import read_clicks, write_clicks
from unbag.datasets.criteo import read_criteo
from unbag.datasets.finding import data_folder
from unbag.datasets.fremtpl2 import load_fremtpl2
from unbag.datasets.higgs import load_higgs
from unbag.datasets.holding import Dataset
from unbag.datasets.mnist import load_mnist
from unbag.datasets.quarantine import Quarantine
from unbag.datasets.synthetic import make_campaigns, make_counts, make_gaussian, make_heavy_tailed

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
