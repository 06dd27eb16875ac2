"""Bad input of pytorch, and the whole message that it gets."""

import numpy as np

from cases.packages import needs
from unbag import Bags, losses
from unbag.losses import from_callable
from unbag.pytorch import BagLoss, bag_loader

torch = needs("torch")
BAG, SIZE, REPORT = [0, 0, 1, 1], [2, 2], [0.5, 0.25]

Z = torch.zeros(4)

SHARES = [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]]


def two_outputs(z, y):
    return z[:, int(y)]


MESSAGES = [
    (
        lambda: BagLoss(0.3, loss="hinge"),
        "A loss must be one of log, square, poisson, cross_entropy, brier: 'hinge' given. Choose "
        "one of these.",
    ),
    (
        lambda: BagLoss(0.3, method="likelihood", loss=losses.poisson),
        "The likelihood must go with a loss that reads scores as log does: poisson given. Leave "
        "the loss out.",
    ),
    (
        lambda: BagLoss(0.3, method="likelihood")(Z, BAG, [0.5, 1.5], SIZE),
        "A proportion without noise must lie in [0, 1]: bag 1 has 1.5 (1 such bag). Divide totals "
        "by the bag size; if noise was added on purpose, declare its variance with noise=.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, SIZE, noise=[1, 2], weight=[0.5, 0.5]),
        "Bags must be weighed by weight= or by noise=: both given. Leave one out.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, SIZE, noise=[1.0]),
        (
            "noise must have one entry for each bag: 1 given for 2 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, SIZE, noise=[1.0, -2.0]),
        "A noise variance must be finite and not negative: bag 1 has -2 (1 such bag). Give the "
        "variance of the noise on the bag's count, 0 for an exact report.",
    ),
    (
        lambda: BagLoss(0.3, method="pm"),
        "A method must be one of anchored, upm, easy, matching, likelihood: 'pm' given. Did you "
        "mean 'upm'? Choose one of these.",
    ),
    (
        lambda: BagLoss(0.3, kind="ternary"),
        (
            "A kind of report must be one of binary, total, histogram: 'ternary' given. Choose one "
            "of these."
        ),
    ),
    (
        lambda: BagLoss(0.3, loss=losses.log, kind="total"),
        "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
        "the sum of the counts in a bag is known: log is not. Use square or poisson, or report "
        "full histograms.",
    ),
    (
        lambda: BagLoss([0.3, float("nan")]),
        "A prior must be finite: [0.3, nan] given. Give Bags.prior.",
    ),
    (
        lambda: BagLoss(0.3)(torch.tensor([0, torch.nan, 0, torch.nan]), BAG, REPORT, SIZE),
        "A score must be finite: instance 1 has nan (2 such instances). Lower the learning "
        "rate, or look for NaN among the features.",
    ),
    (
        lambda: BagLoss(0.3)(torch.zeros(3), BAG, REPORT, SIZE),
        "scores must have one entry for each instance: 3 given for 4 instances. Give them in the "
        "order of the instances.",
    ),
    (
        lambda: BagLoss(0.3)(torch.zeros(4, 2), BAG, REPORT, SIZE),
        "Scores of kind binary must be one per instance: a tensor of shape (4, 2) given. Give "
        "the last layer of the model 1 output.",
    ),
    (
        lambda: BagLoss(SHARES[0], kind="histogram")(torch.zeros(4, 2), BAG, SHARES, SIZE),
        "Scores of kind histogram must be one per instance and class: a tensor of shape (4, 2) "
        "given. Give the last layer of the model 3 outputs.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, SHARES, SIZE),
        "Reports of kind binary must be one number for each bag: a tensor of shape (2, 3) given. "
        "Choose kind= to fit the reports.",
    ),
    (
        lambda: BagLoss(SHARES[0], kind="histogram")(Z, BAG, REPORT, SIZE),
        "Reports of kind histogram must be one row of class shares for each bag: a tensor of "
        "shape (2,) given. Choose kind= to fit the reports.",
    ),
    (
        lambda: BagLoss([0.3, 0.4])(Z, BAG, REPORT, SIZE),
        "A prior must look like one report, of shape (), and with stratum= like one for each "
        "stratum: one of shape (2,) given without stratum=. Give Bags.prior, and stratum= when "
        "the bags have strata.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, SIZE, stratum=[0, 0]),
        "A prior must look like one report, of shape (), and with stratum= like one for each "
        "stratum: one of shape () given with stratum=. Give Bags.prior, and stratum= when the "
        "bags have strata.",
    ),
    (
        lambda: BagLoss([0.3, 0.4])(Z, BAG, REPORT, SIZE, stratum=[2, 2]),
        "A stratum number must lie between 0 and 1, the last prior: bag 0 has 2 (2 such bags). "
        "Give one prior for each stratum.",
    ),
    (
        lambda: BagLoss([0.3, 0.4])(Z, BAG, REPORT, SIZE, stratum=[0, 1]),
        "A stratum must hold at least two bags, because each bag is centred by the mean of the "
        "others: stratum 0 has 1 (2 such strata). Merge small strata, or cut them into random "
        "sub-bags; where a stratum has one report only, leave the strata out and train by "
        "matching or likelihood.",
    ),
    (
        lambda: BagLoss(0.3)(Z, [0, 0, 0, 0], [0.5], [4]),
        "A batch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 given. Give more bags, or a pool of further instances.",
    ),
    (
        lambda: BagLoss(0.3, method="upm")(Z, [0, 0, 0, 0], [0.5], [4]),
        "A batch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 given. Give more bags, or a pool of further instances.",
    ),
    (
        lambda: BagLoss(0.3, method="easy")(Z, BAG, [0.5, torch.nan], SIZE),
        (
            "A report must be finite: bag 1 has [ 1., nan] (1 such bag). Give a bag whose report "
            "is pending the weight 0."
        ),
    ),
    (
        lambda: BagLoss(0.3, method="easy")(Z, [7, 7, 8, 8], REPORT, SIZE),
        "A bag number must lie between 0 and 1, the last bag of the batch: instance 0 has 7 (4 "
        "such instances). Number the bags of each batch from 0, as bag_loader does.",
    ),
    (
        lambda: BagLoss(0.3, method="matching")(Z, BAG, REPORT, [2, 3]),
        "A size must be the number of instances of the bag: bag 1 has size 3 and 2 instances (1 "
        "such bag). Batches must hold whole bags.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, [2, 2, 2]),
        (
            "size must have one entry for each bag: 3 given for 2 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: BagLoss(0.3, method="matching")(Z, BAG, [0.5, 1.25], SIZE),
        "Matching with the log loss must have reports in [0, 1], because outside it has no "
        "lower bound: bag 1 has 1.25 (1 such bag). Use upm, easy or anchored, which stay "
        "unbiased under noise, or match with the square or brier loss.",
    ),
    (
        lambda: BagLoss(0.3, method="upm")(Z, BAG, REPORT, SIZE, reference=Z),
        "A reference must go with method='anchored': 'upm' given. Leave it out.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, SIZE, reference=torch.tensor([0.5, torch.inf, 0, 0])),
        "A reference must be finite: instance 1 has inf (1 such instance). If no reference was "
        "given, scores overflow: lower the learning rate.",
    ),
    (
        lambda: BagLoss(0.3, kind="total")(Z + 1000, BAG, REPORT, SIZE),
        "A reference must be finite: instance 0 has inf (4 such instances). If no reference was "
        "given, scores overflow: lower the learning rate.",
    ),
    (
        lambda: BagLoss(0.3)(Z, BAG, REPORT, SIZE, reference=Z[:3]),
        "A reference must be a prediction like a report for each of the 4 instances: one of "
        "shape (3,) given. Give probabilities or counts as reference=, also where the square "
        "loss predicts none.",
    ),
    (
        lambda: BagLoss(0.3, loss=from_callable(two_outputs))(torch.zeros(4, 2), BAG, REPORT, SIZE),
        "A reference must be a prediction like a report for each of the 4 instances: one of "
        "shape (4, 2) given. Give probabilities or counts as reference=, also where the "
        "two_outputs loss predicts none.",
    ),
    (
        lambda: bag_loader(Bags(np.array([0, 1]), [0.5, 0.5])),
        "Bags to load must have X: these have none. Make the bags with X=.",
    ),
    (
        lambda: bag_loader(Bags(np.array([0, 1]), [0.5, 0.5], X=np.ones(2)), extra=("stratum",)),
        "Bags to load must have stratum: these have none. Make the bags with stratum=.",
    ),
    (
        lambda: bag_loader(Bags(np.array([0, 1]), [0.5, 0.5], X=np.ones(2)), extra=("names",)),
        (
            "A further part of a batch must be one of stratum, noise, rows: 'names' given. Choose "
            "one of these."
        ),
    ),
    (
        lambda: bag_loader(Bags(np.array([0, 1]), [0.5, 0.5], X=np.ones(2)), batch_size=64),
        "A loader of bags must choose its batches itself, whole bags in a new order: "
        "batch_size= given. Use batch=, the number of instances, and seed=.",
    ),
    (
        lambda: bag_loader(Bags(np.array([0, 0]), [0.5], X=np.ones(2))),
        "An epoch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 given. Give more bags, or a pool of further instances.",
    ),
]
