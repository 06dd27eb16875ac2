"""The paper's main algorithm: of many models, the pool that held-out bags do not speak against."""

from unbag.tournaments._tournament import Tournament, tournament

__all__ = ["Tournament", "tournament"]
