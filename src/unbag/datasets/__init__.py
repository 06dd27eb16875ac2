"""Labelled training and test data, shipped, published or made; labels are for making bags and for
the truth."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.datasets._click_stream import read_clicks as read_clicks
    from unbag.datasets._click_stream import write_clicks as write_clicks
    from unbag.datasets._conversions import Conversions as Conversions
    from unbag.datasets._conversions import make_conversions as make_conversions
    from unbag.datasets._criteo import BUCKETS as BUCKETS
    from unbag.datasets._criteo import CHUNK as CHUNK
    from unbag.datasets._criteo import DIMENSIONS as DIMENSIONS
    from unbag.datasets._criteo import read_criteo as read_criteo
    from unbag.datasets._dataset import Chunk as Chunk
    from unbag.datasets._dataset import Chunks as Chunks
    from unbag.datasets._dataset import Dataset as Dataset
    from unbag.datasets._dataset import Quarantine as Quarantine
    from unbag.datasets._files import data_folder as data_folder
    from unbag.datasets._images import load_cifar10 as load_cifar10
    from unbag.datasets._images import load_mnist as load_mnist
    from unbag.datasets._synthetic import make_campaigns as make_campaigns
    from unbag.datasets._synthetic import make_counts as make_counts
    from unbag.datasets._synthetic import make_gaussian as make_gaussian
    from unbag.datasets._synthetic import make_heavy_tailed as make_heavy_tailed
    from unbag.datasets._tables import load_adult as load_adult
    from unbag.datasets._tables import load_bike_sharing as load_bike_sharing
    from unbag.datasets._tables import load_fremtpl2 as load_fremtpl2
    from unbag.datasets._tables import load_higgs as load_higgs
    from unbag.datasets._tables import read_adult as read_adult
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
