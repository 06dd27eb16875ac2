"""Train a PyTorch model of Adult from bags of 64 people, and print its test log loss (trivial:
0.547).

    python examples/pytorch_adult.py

It learns from four fifths of the bags; the others choose the epoch. Labels are looked at once, at
the very end.
"""

import sys

import torch

import unbag
from unbag.datasets import load_adult
from unbag.pytorch import BagLoss, bag_loader

EPOCHS = 6 if "--short" in sys.argv else 20

adult = load_adult()
bags = unbag.random_bags(adult.X, adult.y, size=64, seed=0)
train, held_out = bags.split(0.8, seed=0)
loader = bag_loader(train, batch=2048, seed=0)
loss, judge = BagLoss(bags.prior), BagLoss(bags.prior, loss=unbag.losses.log)

torch.manual_seed(0)
hidden, last = torch.nn.Linear(adult.X.shape[1], 32), torch.nn.Linear(32, 1)
model = torch.nn.Sequential(hidden, torch.nn.ReLU(), last)
torch.nn.init.zeros_(last.weight)  # the model starts at the trivial predictor: the prior for all
torch.nn.init.constant_(last.bias, torch.tensor(bags.prior).logit())
optimizer, best = torch.optim.Adam(model.parameters(), lr=0.003), float("inf")
for epoch in range(EPOCHS):
    for X, bag, report, size in loader:
        optimizer.zero_grad()
        loss(model(X), bag, report, size).backward()
        optimizer.step()
    with torch.no_grad():  # held-out bags choose the epoch
        score = model(torch.tensor(held_out.X))
        estimate = judge(score, held_out.bag, held_out.report, held_out.size).item()
        if estimate < best:
            best, chosen, scores = estimate, epoch, model(torch.tensor(adult.X_test))[:, 0]
value = unbag.losses.log.value(scores, adult.y_test).mean()
print(f"test log loss {value:.3f}, after epoch {chosen}")
