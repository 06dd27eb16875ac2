"""Words of the command line in, tables, models and answers out: one function for each verb on tables.

`asking` names the options, `telling` says what went wrong, `writing` writes whole files or none.
"""

from unbag.commands.checking import check
from unbag.commands.designing import design
from unbag.commands.evaluating import evaluate
from unbag.commands.planning import plan
from unbag.commands.predicting import predict
from unbag.commands.selecting import select
from unbag.commands.training import train
from unbag.commands.weighting import weights

__all__ = ["check", "design", "evaluate", "plan", "predict", "select", "train", "weights"]
