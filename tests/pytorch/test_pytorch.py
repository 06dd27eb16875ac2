"""The PyTorch shell: values are NumPy's, gradients are JAX's, batches are whole bags."""

import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cases.losses import CAPPED
from cases.packages import needs
from unbag import Bags, as_components, losses, random_bags, weights
from unbag.likelihood import count_likelihood
from unbag.losses import from_callable, smoothed
from unbag.matching import proportion_matching
from unbag.methods import FROM_BAGS
from unbag.pytorch import BagBatchSampler, BagDataset, BagLoss, bag_loader, collate

torch = needs("torch")
EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorch_adult.py"
METHODS = FROM_BAGS
DEFAULT = {
    ("anchored", "binary"): losses.square,
    ("anchored", "histogram"): losses.brier,
    ("other", "binary"): losses.log,
    ("other", "histogram"): losses.cross_entropy,
    ("anchored", "total"): losses.poisson,
    ("other", "total"): losses.poisson,
}
# what the scores predict, by (kind, loss)
PREDICTION = {
    ("binary", "log"): lambda xp, z: 1 / (1 + xp.exp(-z)),
    ("binary", "square"): lambda xp, z: 1 / (1 + xp.exp(-z)),
    ("binary", "smoothed(log, 0.1)"): lambda xp, z: 1 / (1 + xp.exp(-z)),
    ("binary", "poisson"): lambda xp, z: xp.exp(z),
    ("total", "poisson"): lambda xp, z: xp.exp(z),
    ("total", "capped"): lambda xp, z: 5 / (1 + xp.exp(-z)),
    ("total", "square"): lambda xp, z: z,
    ("histogram", "cross_entropy"): lambda xp, z: xp.exp(z) / xp.exp(z).sum(axis=1, keepdims=True),
    ("histogram", "brier"): lambda xp, z: xp.exp(z) / xp.exp(z).sum(axis=1, keepdims=True),
}
LOSSES = {**losses.LOSSES, "smoothed(log, 0.1)": smoothed(losses.log, 0.1), "capped": CAPPED}
OTHER_LINKS = {("binary", "poisson"), ("total", "capped"), ("total", "square")}


def random_batch(kind, *, strata=False, seed=0):
    """A batch of bags of all sizes, its rows in any order: scores, bag, report, size, prior and
    further arguments."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 7, size=8)
    bag = rng.permutation(np.repeat(np.arange(8), size))
    z = rng.normal(size=(len(bag), 3) if kind == "histogram" else len(bag))
    draw = lambda *shape: (
        rng.dirichlet(np.ones(3), size=shape) if kind == "histogram" else rng.uniform(size=shape)
    )
    report, prior, further = draw(8), draw(2) if strata else draw(1)[0], {}
    if strata:
        weight, stratum = rng.dirichlet(np.ones(4), size=2), np.tile([0, 1], 4)
        further = {"stratum": stratum, "weight": weight.T.ravel()}
    return z, bag, report, size, prior, further


def formula(xp, method, kind, loss, batch, z):
    """The loss of a batch with the functions of the core and arrays of NumPy or JAX."""
    own, bag, report, size, prior, further = batch
    report, prior = xp.asarray(as_components(report, kind)), xp.asarray(as_components(prior, kind))
    further = {name: xp.asarray(value) for name, value in further.items()}
    if method == "matching":
        by_bag = proportion_matching(z, xp.asarray(bag), size, report, loss=loss, kind=kind)
        if not further:
            return by_bag.mean()
        share = np.array([size[::2].sum(), size[1::2].sum()]) / size.sum()
        return (xp.asarray(share)[further["stratum"]] * further["weight"] * by_bag).sum()
    if method == "likelihood":
        by_bag = count_likelihood(z, xp.asarray(bag), size, report, kind=kind) / size.mean()
        return (by_bag * further.get("weight", 1 / 4)).sum() / 2  # two strata of as many bags
    g = PREDICTION[kind, loss.name](xp, xp.asarray(own))  # the reference has no gradient
    g = g if kind == "histogram" else xp.stack([xp.ones_like(g), g], axis=-1)
    if method == "anchored":
        W = weights.anchored(xp.asarray(bag), size, report, prior, g, **further)
    else:
        W = getattr(weights, method)(size, report, prior, **further)[xp.asarray(bag)]
    return (W * loss.components(z, kind=kind)).sum()


def tensors(batch):
    return [torch.tensor(part) for part in batch[1:4]]


def value_and_gradient(module, batch, **further):
    z = torch.tensor(batch[0], requires_grad=True)
    value = module(z, *tensors(batch), **further)
    value.backward()
    return value.item(), z.grad.numpy()


def cases_of(method):
    return [case for case in PREDICTION if method != "likelihood" or case not in OTHER_LINKS]


@pytest.mark.parametrize("method", METHODS)
def test_values_are_numpys_and_gradients_are_their_slopes(method):
    for case in cases_of(method):
        (kind, name), batch = case, random_batch(case[0])
        module = BagLoss(batch[4], method=method, loss=LOSSES[name], kind=kind)
        value, gradient = value_and_gradient(module, batch)
        of_numpy = partial(formula, np, method, kind, LOSSES[name], batch)
        assert value == pytest.approx(of_numpy(batch[0]), rel=1e-12), case
        step = 1e-5 * np.random.default_rng(0).normal(size=batch[0].shape)
        slope = of_numpy(batch[0] + step) - of_numpy(batch[0] - step)
        assert 2 * np.sum(step * gradient) == pytest.approx(slope, rel=1e-6), case


@pytest.mark.parametrize("method", METHODS)
def test_values_are_numpys_and_gradients_are_jaxs(method):
    """With strata and weights."""
    import jax

    cases = cases_of(method)
    batches = {case: random_batch(case[0], strata=True) for case in cases}

    def slope(case, z):
        return jax.grad(
            partial(formula, jax.numpy, method, case[0], LOSSES[case[1]], batches[case])
        )(z)

    with jax.enable_x64(True):  # one program for all: many small ones take far longer to compile
        scores = {case: batch[0] for case, batch in batches.items()}
        of_jax = jax.jit(lambda scores: [slope(case, scores[case]) for case in cases])(scores)
    for case, expected in zip(cases, of_jax, strict=True):
        (kind, name), batch = case, batches[case]
        further = {name: torch.tensor(value) for name, value in batch[-1].items()}
        module = BagLoss(batch[4], method=method, loss=LOSSES[name], kind=kind)
        value, gradient = value_and_gradient(module, batch, **further)
        of_numpy = formula(np, method, kind, LOSSES[name], batch, batch[0])
        assert value == pytest.approx(of_numpy, rel=1e-12), case
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-13, err_msg=str(case))


def test_single_precision_agrees_with_double_precision():
    for method, kind in itertools.product(METHODS, ("binary", "total", "histogram")):
        batch = random_batch(kind)
        loss = BagLoss(batch[4], method=method, kind=kind)
        value, gradient = value_and_gradient(loss, batch)
        single = value_and_gradient(loss, (batch[0].astype(np.float32), *batch[1:]))
        assert single[1].dtype == np.float32
        assert single[0] == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(single[1], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_each_kind_has_its_default_loss(method, kind):
    expected = DEFAULT["anchored" if method == "anchored" else "other", kind]
    assert BagLoss(0.5, method=method, kind=kind).loss is expected


def test_the_value_of_the_likelihood_is_that_of_training():
    from unbag.training._loader import Loader, Shape
    from unbag.training._objective import Setting, batch_loss

    rng = np.random.default_rng(0)
    bags = random_bags(rng.normal(size=(60, 1)), rng.integers(0, 2, size=60), size=6, seed=0)
    bags = Bags(bags.bag, bags.report, X=bags.X, noise=np.arange(10.0))
    loader = Loader(bags, batch=60, seed=0, by_noise=False)
    (numbers,) = loader.plan(1)
    batch = loader.arrays([numbers], 0, Shape(60, 10))
    setting = Setting("likelihood", losses.log, "binary", largest=6)
    rows, part = bags.rows_of(numbers), bags.take(numbers)
    expected = batch_loss(setting, bags.X[rows, 0], batch, None, None, None)
    value = BagLoss(bags.prior, method="likelihood")(
        torch.tensor(part.X[:, 0]), part.bag, part.report, part.size, noise=part.noise
    )
    assert value.item() == pytest.approx(float(expected), rel=1e-6)


LOG_LOSSES = [("binary", "log"), ("total", "poisson"), ("histogram", "cross_entropy")]
ORDINARY = [
    *itertools.product(["easy", "matching"], PREDICTION),
    *itertools.product(["likelihood"], LOG_LOSSES),
]


@pytest.mark.parametrize("method, case", ORDINARY, ids=str)
def test_bags_of_one_are_ordinary_labels(method, case):
    kind, loss = case[0], LOSSES[case[1]]
    z = (
        torch.randn(6, 3, dtype=torch.float64)
        if kind == "histogram"
        else torch.randn(6, dtype=torch.float64)
    )
    label = torch.tensor([0, 1, 1, 0, 2, 0] if kind != "binary" else [0, 1, 1, 0, 1, 0])
    report = torch.eye(3)[label] if kind == "histogram" else label
    prior = [0.5, 0.3, 0.2] if kind == "histogram" else 0.4
    value = BagLoss(prior, method=method, loss=loss, kind=kind)(
        z, torch.arange(6), report, torch.ones(6)
    )
    assert value.item() == pytest.approx(loss.value(z, label, kind=kind).mean().item(), rel=1e-12)


def test_bags_of_one_give_pytorchs_own_losses():
    z, y = torch.randn(6), torch.tensor([0.0, 1, 1, 0, 1, 0])
    bags = torch.arange(6), y, torch.ones(6)
    own = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    assert BagLoss(0.5, method="easy")(z, *bags).item() == pytest.approx(own.item(), rel=1e-6)
    z, y = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 2, 1])
    bags = torch.arange(6), torch.eye(3)[y], torch.ones(6)
    own = torch.nn.functional.cross_entropy(z, y)
    loss = BagLoss([0.2, 0.3, 0.5], method="matching", kind="histogram")
    assert loss(z, *bags).item() == pytest.approx(own.item(), rel=1e-6)


@pytest.mark.parametrize("kind", ["binary", "histogram"])
def test_a_reference_that_is_given_replaces_the_prediction_and_has_no_gradient(kind):
    batch = random_batch(kind)
    z, (bag, report, size) = torch.tensor(batch[0], requires_grad=True), tensors(batch)
    loss = BagLoss(batch[4], kind=kind)
    now = torch.softmax(z, 1) if kind == "histogram" else torch.sigmoid(z)
    default = torch.autograd.grad(loss(z, bag, report, size), z)[0]
    given = torch.autograd.grad(loss(z, bag, report, size, reference=now), z)[0]
    torch.testing.assert_close(given, default, rtol=1e-10, atol=1e-13)

    other = np.random.default_rng(1).dirichlet(np.ones(3), size=len(bag))
    other = other if kind == "histogram" else other[:, 0]
    args = as_components(batch[2], kind), as_components(batch[4], kind), as_components(other, kind)
    expected = (
        weights.anchored(batch[1], batch[3], *args) * loss.loss.components(batch[0], kind=kind)
    ).sum()
    assert loss(z, bag, report, size, reference=other).item() == pytest.approx(expected, rel=1e-12)


def test_a_loss_of_your_own_is_anchored_at_its_prediction_or_at_yours():
    absolute = from_callable(lambda h, y: abs(y - h))
    _, bag, report, size, prior, _ = random_batch("binary")
    h = torch.rand(len(bag), dtype=torch.float64)
    loss = BagLoss(prior, loss=absolute)
    assert loss(h, bag, report, size).item() == loss(h, bag, report, size, reference=h).item()
    two = from_callable(lambda z, y: torch.log_softmax(z, 1)[:, int(y)])
    scores = torch.randn(len(bag), 2, dtype=torch.float64)
    assert BagLoss(prior, loss=two)(scores, bag, report, size, reference=h).isfinite()


@pytest.mark.parametrize("method", METHODS)
def test_a_pending_report_may_be_nan(method):
    z, bag, report, size, prior, _ = random_batch("binary")
    weight = np.full(8, 1 / 7)
    weight[3] = 0
    with_nan = np.where(weight > 0, report, np.nan)
    loss, z = BagLoss(prior, method=method), torch.tensor(z, requires_grad=True)
    value = loss(z, bag, with_nan, size, weight=weight)
    value.backward()
    assert value.item() == loss(z, bag, report, size, weight=weight).item()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("method", METHODS)
def test_a_column_of_scores_is_one_score_per_instance(method):
    z, bag, report, size, prior, _ = random_batch("binary")
    loss, z = BagLoss(torch.tensor(prior), method=method), torch.tensor(z)
    assert loss(z[:, None], bag, report, size).item() == loss(z, bag, report, size).item()


@pytest.mark.parametrize("method", METHODS)
def test_half_precision_scores_are_added_up_in_single_precision(method):
    z, bag, report, size, prior, _ = random_batch("binary")
    loss, z = BagLoss(prior, method=method), torch.tensor(z, dtype=torch.bfloat16)
    value = loss(z, bag, report, size)
    assert value.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(loss(z.float(), bag, report, size), value)


def test_the_loss_holds_nothing_to_learn_and_says_what_it_is():
    loss = BagLoss(0.25)
    assert not list(loss.parameters())
    assert not loss.state_dict()
    assert str(loss) == "BagLoss(prior=0.25, method='anchored', loss=square, kind='binary')"


def labelled_bags(**options):
    """Bags whose only feature is the row's number."""
    y = np.arange(300) % 2
    return random_bags(np.arange(300.0)[:, None], y, size=8, seed=1, **options)


def rows_by_report(batches):
    """The rows of each bag that given, as sets, after checking that bag numbers and sizes agree."""
    found = []
    for X, bag, report, size in batches:
        assert torch.bincount(bag, minlength=len(size)).tolist() == size.tolist()
        assert len(report) == len(size)
        assert len(X) == len(bag)
        for j in range(len(size)):
            rows = X[bag == j, 0]
            assert (rows % 2).mean().item() == report[j].item()
            found.append(frozenset(rows.int().tolist()))
    return found


def test_an_epoch_visits_each_bag_once_and_whole_in_an_order_of_its_own():
    bags = labelled_bags()
    members = {frozenset(bags.X[bags.bag == j, 0].astype(int).tolist()) for j in range(len(bags))}
    loader = bag_loader(bags, batch=64, seed=3)
    epochs = [rows_by_report(loader) for _ in range(3)]
    for epoch in epochs:
        assert len(epoch) == len(bags)
        assert set(epoch) == members
    assert epochs[0] != epochs[1] != epochs[2]
    again = bag_loader(bags, batch=64, seed=3)
    assert rows_by_report(again) == epochs[0]
    again.batch_sampler.set_epoch(2)
    assert rows_by_report(again) == epochs[2]
    assert rows_by_report(bag_loader(bags, batch=64, seed=4)) != epochs[0]


def test_batches_are_those_of_the_bags():
    bags = labelled_bags()
    loader = bag_loader(bags, batch=100, seed=5, dtype=torch.float64)
    for epoch in range(2):
        expected = list(bags.batches(100, seed=5, epoch=epoch))
        assert len(loader) == len(expected)
        for tensors, batch in zip(loader, expected, strict=True):
            for tensor, array in zip(
                tensors, (batch.X, batch.bag, batch.report, batch.size), strict=True
            ):
                np.testing.assert_array_equal(tensor, array)


def test_peeking_at_a_batch_is_a_pass_of_its_own_and_len_is_not():
    sampler = BagBatchSampler(labelled_bags(), batch=64)
    first = list(sampler)
    sampler.set_epoch(0)
    assert len(sampler) == len(first)
    iter(sampler)
    assert list(sampler) == first
    assert next(iter(sampler)) != first[0]
    assert sampler.epoch == 2


def test_workers_bring_the_same_batches():
    bags = labelled_bags()
    options = {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True}
    with_workers, alone = bag_loader(bags, batch=64, **options), bag_loader(bags, batch=64)
    for _ in range(2):
        assert rows_by_report(with_workers) == rows_by_report(alone)


def test_strata_noise_and_row_numbers_come_with_a_batch_when_asked_for():
    bags = labelled_bags(stratum=np.arange(300) // 150)
    bags = Bags(bags.bag, bags.report, X=bags.X, stratum=bags.stratum, noise=np.arange(len(bags)))
    loss, rows = BagLoss(bags.prior), []
    for X, bag, report, size, stratum, noise, row in bag_loader(
        bags, batch=64, extra=("stratum", "noise", "rows")
    ):
        given, variance = (X[:, 0] / 300, bag, report, size), np.mean(bags.prior * (1 - bags.prior))
        w = weights.noise_weights(
            size.numpy(), noise.numpy(), variance=variance, stratum=stratum.numpy()
        )
        by_weight, by_noise = (
            loss(*given, stratum=stratum, **by) for by in ({"weight": w}, {"noise": noise})
        )
        assert by_noise.item() == pytest.approx(by_weight.item())
        np.testing.assert_array_equal(bags.X[row], X)
        np.testing.assert_array_equal(bags.stratum[noise.int()], stratum)
        assert min(torch.unique(stratum, return_counts=True)[1]) >= 2
        rows.extend(row.tolist())
    assert sorted(rows) == list(range(len(bags.bag)))


@pytest.mark.parametrize(
    "holder", ["array", "frame", "sparse", "tensor", "booleans", "whole numbers"]
)
def test_features_of_any_holder_become_tensors(holder):
    import pandas
    from scipy import sparse

    X = np.arange(8.0).reshape(4, 2)
    make = {
        "array": lambda x: x,
        "frame": lambda x: pandas.DataFrame(x),
        "sparse": sparse.csr_matrix,
        "tensor": torch.tensor,
        "booleans": lambda x: x > 3,
        "whole numbers": lambda x: x.astype(np.int64),
    }[holder]
    rows = BagDataset(Bags(np.array([0, 1, 0, 1]), [0.5, 0.5], X=make(X)))[1][0]
    assert rows.dtype == (torch.int64 if holder == "whole numbers" else torch.float32)
    np.testing.assert_array_equal(rows, X[[1, 3]] > 3 if holder == "booleans" else X[[1, 3]])


def test_a_transform_makes_tensors_of_what_the_bags_hold():
    bags = Bags(np.array([0, 1, 0, 1]), [0.5, 0.5], X=np.array(["a", "bb", "ccc", "dddd"]))
    lengths = lambda names: torch.tensor([[len(name)] for name in names])
    assert BagDataset(bags, transform=lengths)[0][0].tolist() == [[1], [3]]


def test_single_bags_collate_into_the_batch_that_comes_at_once():
    bags = labelled_bags(stratum=np.arange(300) // 150)
    data = BagDataset(bags, extra=("stratum",))
    for one_by_one, at_once in zip(
        collate([data[3], data[30]]), *data.__getitems__([3, 30]), strict=True
    ):
        assert one_by_one.tolist() == at_once.tolist()


def test_without_pytorch_the_error_says_how_to_install_it():
    code = "import sys; sys.modules['torch'] = None; import unbag; import unbag.pytorch"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == (
        "ImportError: unbag.pytorch must have PyTorch, which cannot be imported here. "
        "Install it: pip install 'unbag[torch]'"
    )


def test_the_example_is_short():
    """`test_examples.py` runs it, and wants a loss that is far better than trivial."""
    code = EXAMPLE.read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line.strip()]) < 30


def test_a_loader_says_that_it_leaves_out_noise_that_would_matter():
    bags = labelled_bags()
    give = lambda noise: Bags(bags.bag, bags.report, X=bags.X, noise=noise)
    with pytest.warns(
        UserWarning,
        match=r"^The noise of these bags is left out, .* with extra=\('noise',\), and give",
    ):
        bag_loader(give(np.arange(len(bags))))
    bag_loader(give(3.0 * bags.size))  # all bags are as noisy as each other


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_noise_makes_the_weights_that_are_best(kind):
    z, bag, report, size, prior, _ = random_batch(kind)
    noise = np.arange(8.0)
    w = weights.noise_weights(
        size, noise, variance=np.mean(prior if kind == "total" else prior * (1 - prior))
    )
    loss, given = BagLoss(prior, kind=kind), (torch.tensor(z), bag, report, size)
    assert loss(*given, noise=noise).item() == pytest.approx(
        loss(*given, weight=w).item(), rel=1e-9
    )


@pytest.mark.parametrize("method", ["anchored", "upm", "matching"])
def test_a_loss_goes_by_its_name_as_elsewhere(method):
    scores, bag = torch.linspace(-1, 1, 4, requires_grad=True), torch.tensor([0, 0, 1, 1])
    given = (scores, bag, torch.tensor([0.5, 0.0]), torch.tensor([2, 2]))
    by_name, by_loss = (
        BagLoss(0.25, method=method, loss=loss)(*given) for loss in ("square", losses.square)
    )
    assert by_name.item() == by_loss.item()
