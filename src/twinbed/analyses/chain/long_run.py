"""The long run of a chain: the share of time in each state, and how fast the chain forgets its beginning.

A trace ends; a chain does not.  A state that nothing follows (a thread's last call) leads back to where sequences begin, in
proportion to how often they begin there: the program runs again and again.  Each row then sums to one.

* The stationary distribution is the long-run share of time in each state, begun where sequences begin (the Cesàro limit).  It
  exists for periodic chains too: within a closed class it is the one solution of the balance equations, found without
  subtraction (Grassmann, Taksar & Heyman 1985, Oper. Res. 33:1107).  A threshold that drops edges can leave several closed
  classes; they get the probabilities with which the chain ends in them.
* The use, which needs no chain, is the share of each state among all that were reached.  It equals the stationary distribution
  without a threshold if all sequences end in states that nothing follows (exit_group), since what enters a state leaves it.
* The spectral gap is 1 - |lambda2|, where lambda2 is the eigenvalue with the second largest modulus.  It is 0 for periodic
  chains and for several closed classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed._core import Transitions

Floats = NDArray[np.float64]

DENSE_STATES = 300
"""With more states only the largest eigenvalues are computed: all of 1000 states take 15 s."""
MOST_STATES = 2000
"""The long run of more states is not computed: the time grows with the cube."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The long run of one chain. ``period``: the period of its closed class; None if there are several."""

    states: tuple[str, ...]
    stationary: tuple[float, ...]
    use: tuple[float, ...]
    """The share of each state among all that were reached, ends included."""
    closed_classes: int
    period: int | None
    gap: float | None


def matrix(counts: Transitions, order: int = 1, threshold: float = 0.0) -> tuple[list[str], Floats, Floats]:
    """Return states, the transition matrix with ends leading back to the starts, and the distribution of starts."""
    states, edges = counts.states(order, threshold), counts.edges(order, threshold)
    names = states["state"].to_pylist()
    p = np.zeros((len(names), len(names)))
    p[edges["from"].to_numpy(), edges["to"].to_numpy()] = edges["probability"].to_numpy()
    begin = states["starts"].to_numpy().astype(float)
    begin = begin / begin.sum() if begin.any() else np.full(len(names), 1 / max(1, len(names)))
    p[~p.any(axis=1)] = begin
    return names, p, begin


def spectrum(counts: Transitions, order: int = 1, threshold: float = 0.0) -> Spectrum:
    """Return the long run of a chain. Raises ValueError if no sequence is as long as the order."""
    names, p, begin = matrix(counts, order, threshold)
    if not names:
        raise ValueError("no states: no sequence is as long as the order")
    classes = closed_classes(p)
    stationary = np.zeros(len(names))
    for members, weight in zip(classes, _absorption(p, begin, classes), strict=True):
        stationary[members] = weight * balance(p[np.ix_(members, members)])
    period = _period(p[np.ix_(classes[0], classes[0])]) if len(classes) == 1 else None
    use = _use(counts, order, names)
    return Spectrum(tuple(names), tuple(stationary), tuple(use), len(classes), period, gap(p))


def balance(p: Floats) -> Floats:
    """Return the stationary distribution of an irreducible matrix."""
    p = p.astype(float)
    n = len(p)
    out = np.zeros(n)
    for k in range(n - 1, 0, -1):
        out[k] = p[k, :k].sum()
        p[:k, :k] += np.outer(p[:k, k], p[k, :k] / out[k])
    weights = np.zeros(n)
    weights[0] = 1.0
    for k in range(1, n):
        weights[k] = weights[:k] @ p[:k, k] / out[k]
    result: Floats = weights / weights.sum()
    return result


def gap(p: Floats) -> float | None:
    """Return 1 - |lambda2|; 1 for a single state; None if the search for the largest eigenvalues does not converge."""
    if len(p) < 2:
        return 1.0
    if len(p) <= DENSE_STATES:
        moduli = np.abs(np.linalg.eigvals(p))
    else:
        from scipy.sparse import csr_array
        from scipy.sparse.linalg import ArpackNoConvergence, eigs

        # A fixed vector gives the same digits; the vector of ones would be the first eigenvector itself.
        start = np.random.default_rng(0).random(len(p))
        try:
            moduli = np.abs(eigs(csr_array(p), k=6, v0=start, return_eigenvectors=False))
        except ArpackNoConvergence:
            return None
    return float(max(0.0, 1 - np.sort(moduli)[-2]))


def closed_classes(p: Floats) -> list[NDArray[np.intp]]:
    """Return the sets of states that lead to each other and nowhere else."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(csr_array(p > 0), directed=True, connection="strong")
    left = label[:, None] != label[None, :]
    leaves = np.unique(label[((p > 0) & left).any(axis=1)])
    return [np.flatnonzero(label == index) for index in range(count) if index not in leaves]


def total_variation(own: Spectrum, reference: Spectrum, *, of_use: bool = False) -> float:
    """Return half the sum of differences of two distributions over all states of either."""

    def shares(of: Spectrum) -> dict[str, float]:
        return dict(zip(of.states, of.use if of_use else of.stationary, strict=True))

    a, b = shares(own), shares(reference)
    return math.fsum(abs(a.get(state, 0.0) - b.get(state, 0.0)) for state in a.keys() | b.keys()) / 2


def _absorption(p: Floats, begin: Floats, classes: list[NDArray[np.intp]]) -> list[float]:
    """Return the probability of ending in each closed class, begun by the distribution ``begin``."""
    if len(classes) == 1:
        return [1.0]
    closed = np.concatenate(classes)
    transient = np.setdiff1d(np.arange(len(p)), closed)
    visits = np.zeros(len(p))
    if len(transient):
        inside = p[np.ix_(transient, transient)]
        visits[transient] = np.linalg.solve(np.eye(len(transient)) - inside.T, begin[transient])
    arrivals = begin + visits @ p
    return [float(arrivals[members].sum()) for members in classes]


def _period(p: Floats) -> int:
    """Return the period of an irreducible matrix: the greatest common divisor of the lengths of its cycles."""
    level = np.full(len(p), -1)
    level[0] = 0
    queue, period = [0], 0
    while queue:
        state = queue.pop()
        for after in np.flatnonzero(p[state] > 0):
            if level[after] < 0:
                level[after] = level[state] + 1
                queue.append(int(after))
            else:
                period = math.gcd(period, int(level[state] + 1 - level[after]))
    return period


def _use(counts: Transitions, order: int, names: list[str]) -> Floats:
    """Return how often each state was reached, as a share."""
    states, edges = counts.states(order), counts.edges(order)
    reached = states["starts"].to_numpy().astype(float)
    np.add.at(reached, edges["to"].to_numpy(), edges["count"].to_numpy())
    of: dict[str, float] = dict(zip(states["state"].to_pylist(), reached, strict=True))
    ordered = np.array([of[name] for name in names])
    result: Floats = ordered / ordered.sum()
    return result
