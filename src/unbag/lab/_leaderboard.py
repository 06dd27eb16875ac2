"""Runs in, a leaderboard out: ranks, which differences are more than chance, and the time taken.

A method's rank in a block (task, bags, size) is by its mean test loss over the repetitions; a
method that refused a block is last in it. Friedman's test asks whether the ranks differ at all.
Two methods differ by more than chance at the level of 5 per cent, over all pairs, when their mean
ranks differ by the critical difference of Nemenyi, q sqrt(k (k + 1) / 6 N), with k methods, N
blocks and q of the studentized range divided by sqrt 2 (Demsar 2006). Few blocks make it wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from unbag._rules import broken
from unbag.lab._benchmark import BenchmarkRun, Block
from unbag.lab._competitors import LABELS, competitors
from unbag.lab._figures import save_figure
from unbag.lab._tables import as_latex, as_markdown
from unbag.plots import Interval, draw_intervals, new_figure

LEVEL = 0.05
LEAST_ROOM = 0.005
"""Share of the prior's loss that labels must remove for a way from one to the other to be told."""


class Standing(NamedTuple):
    """One line of the leaderboard.

    Parameters
    ----------
    method, title : str
        Who.
    rank : float
        Mean over the blocks, from 1.
    wins : int
        Blocks in which nobody was better.
    way : float
        Median over the blocks of how far it went from the prior's loss (0) to that of a network
        with labels (1); below 0 it is worse than the prior.
    auc : float
        Median over the blocks.
    seconds : float
        Of CPU to learn, median over the runs.
    refused : int
        Blocks without a result.
    """

    method: str
    title: str
    rank: float
    wins: int
    way: float
    auc: float
    seconds: float
    refused: int


class Leaderboard(NamedTuple):
    """What the runs of a benchmark say.

    Parameters
    ----------
    standings : list of Standing
        Best first.
    blocks : list of (task, bags, size)
        What they are ranked by.
    losses : dict
        Mean test loss of a method in a block, with `labels`.
    critical : float
        Difference of mean ranks that is more than chance.
    chance : float
        Of ranks as different as these if all methods were alike, by Friedman's test.
    facts : dict
        Of each block a run, which knows the loss of the prior, the number of bags, and whether they
        look random.
    """

    standings: list[Standing]
    blocks: list[Block]
    losses: dict[tuple[str, Block], float]
    critical: float
    chance: float
    facts: dict[Block, BenchmarkRun]

    def markdown(self) -> str:
        """Ranks as a table."""
        rows = [self._cells(s) for s in self.standings]
        return as_markdown(HEADER, rows)

    def losses_markdown(self) -> str:
        """Mean test losses, a row for each method and a column for each block."""
        header = ["method", *(str(block) for block in self.blocks)]
        rows = [self._losses(s.method, s.title) for s in self.standings]
        facts = [self.facts[block] for block in self.blocks]
        rows.append(["prior", *(f"{run.trivial:.4f}" for run in facts)])
        if any(name == LABELS for name, _ in self.losses):
            rows.append(self._losses(LABELS, "labels, network"))
        rows.append(["bags", *(str(run.bags) for run in facts)])
        words = {True: "yes", False: "no"}
        rows.append(["look random?", *(words[run.random] for run in facts)])
        return as_markdown(header, rows)

    def latex(self) -> str:
        """Ranks as a table for a paper; who is not clearly behind the best is bold."""
        best = min(s.rank for s in self.standings)
        bold = [(i, 1) for i, s in enumerate(self.standings) if s.rank - best < self.critical]
        caption = (
            f"Mean ranks over {len(self.blocks)} settings; critical difference {self.critical:.2f} "
            f"(Nemenyi, {LEVEL:.0%}). Bold: not clearly behind the best."
        )
        rows = [self._cells(s) for s in self.standings]
        return as_latex(HEADER, rows, caption=caption, label="tab:leaderboard", bold=bold)

    def _cells(self, s: Standing) -> list[str]:
        shown = [s.title, f"{s.rank:.2f}", str(s.wins), f"{s.way:.2f}", f"{s.auc:.3f}"]
        return [*shown, f"{s.seconds:.1f}", str(s.refused)]

    def _losses(self, method: str, title: str) -> list[str]:
        values = [self.losses.get((method, block), np.nan) for block in self.blocks]
        return [title, *(f"{value:.4f}" if np.isfinite(value) else "" for value in values)]


HEADER = ["method", "mean rank", "wins", "way to labels", "AUC", "CPU seconds", "refused"]


def _standing(
    name: str,
    own: Sequence[Sequence[BenchmarkRun]],
    rank: np.ndarray,
    loss: np.ndarray,
    way: np.ndarray,
) -> Standing:
    """A method by its runs, rank, loss and way to the labels in each block."""
    return Standing(
        name,
        getattr(competitors().get(name), "title", name),
        rank=float(rank.mean()),
        wins=int((rank == 1).sum()),
        way=_median(way),
        auc=_median([np.mean([run.test_auc for run in block]) for block in own]),
        seconds=_median([run.seconds for block in own for run in block]),
        refused=int(np.isnan(loss).sum()),
    )


def leaderboard(runs: Sequence[BenchmarkRun]) -> Leaderboard:
    """Rank the methods that took part in every block.

    Parameters
    ----------
    runs : sequence of BenchmarkRun
        Of one benchmark, with those from outside.
    """
    blocks = sorted({run.block for run in runs})
    by: dict[tuple[str, Block], list[BenchmarkRun]] = {}
    for run in runs:
        by.setdefault((run.method, run.block), []).append(run)
    names = [n for n in dict.fromkeys(run.method for run in runs) if n != LABELS]
    whole = [n for n in names if all((n, block) in by for block in blocks)]
    if len(whole) < 2:
        raise broken(
            "A leaderboard must have two methods with runs in every block",
            f"{len(whole)} given",
            "Run more methods.",
        )
    losses = {key: float(np.mean([run.test_loss for run in own])) for key, own in by.items()}
    table = np.array([[losses[n, block] for block in blocks] for n in whole])
    ranks = rankdata(np.where(np.isfinite(table), table, np.inf), axis=0)
    facts = {run.block: run for run in runs if run.bags}
    trivial = np.array([facts[block].trivial for block in blocks])
    room = trivial - np.array([losses.get((LABELS, block), np.nan) for block in blocks])
    room = np.where(room > LEAST_ROOM * trivial, room, np.nan)  # where labels teach nothing either
    standings = [
        _standing(name, [by[name, block] for block in blocks], rank, loss, (trivial - loss) / room)
        for name, loss, rank in zip(whole, table, ranks, strict=True)
    ]
    chance = np.nan
    if len(ranks) > 2 and len(blocks) > 1:
        chance = float(friedmanchisquare(*ranks).pvalue)
    return Leaderboard(
        sorted(standings, key=lambda s: s.rank),
        blocks,
        losses,
        critical_difference(len(whole), len(blocks)),
        chance,
        facts,
    )


def critical_difference(methods: int, blocks: int) -> float:
    """Of mean ranks, by Nemenyi at the level of 5 per cent.

    Parameters
    ----------
    methods, blocks : int
        How many were ranked, and how often.

    >>> round(critical_difference(5, 30), 3)  # 2.728 sqrt(5 * 6 / 180), Demsar's table
    1.114
    """
    q = float(studentized_range.ppf(1 - LEVEL, methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def _median(values: Any) -> float:
    """Of those that are known."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.median(known)) if known else np.nan


def write_leaderboard(board: Leaderboard, folder: Path, *, line: str = "") -> list[Path]:
    """Write `leaderboard.md`, `leaderboard.tex` and `ranks.svg`.

    Parameters
    ----------
    board : Leaderboard
        What the runs say.
    folder : Path
        Made where it does not exist.
    line : str
        The command that made the runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, latex = folder / "leaderboard.md", folder / "leaderboard.tex"
    page.write_text(_page(board, line))
    latex.write_text(board.latex())
    figure = new_figure(6.4, 0.35 * len(board.standings) + 0.9)
    half = board.critical / 2
    draw_intervals(
        figure.subplots(),
        [Interval(s.title, s.rank, s.rank - half, s.rank + half) for s in board.standings],
        x="mean rank; methods whose bars overlap do not differ by more than chance",
    )
    return [page, latex, save_figure(figure, folder / "ranks")]


def _page(board: Leaderboard, line: str) -> str:
    rule = " ".join(str(__doc__).partition("\n\n")[2].split())
    parts = ["# Leaderboard\n", f"Made by `{line}`.\n" if line else "", board.markdown()]
    words = f"Friedman's test: p = {board.chance:.2g}. Critical difference: {board.critical:.2f}."
    parts += [f"{words} {rule}\n", "![Mean ranks](ranks.svg)\n", "## Mean test loss\n"]
    return "\n".join([*parts, board.losses_markdown()])
