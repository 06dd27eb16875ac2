"""Nothing or a file in, labelled training and test data out; labels are for making bags and for the truth."""

from unbag.datasets.adult import load_adult
from unbag.datasets.holding import Dataset

__all__ = ["Dataset", "load_adult"]
