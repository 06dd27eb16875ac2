"""Nothing or a file in, labelled training and test data out; labels are for making bags and for the truth."""

from unbag.datasets.adult import load_adult
from unbag.datasets.holding import Dataset
from unbag.datasets.synthetic import make_campaigns, make_counts, make_gaussian, make_heavy_tailed

__all__ = ["Dataset", "load_adult", "make_campaigns", "make_counts", "make_gaussian", "make_heavy_tailed"]
