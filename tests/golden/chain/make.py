"""Makes ``pydtmc.json``: random sequences, and what PyDTMC 8.7.0 (an independent package) says of their chains.

    python -m venv V && V/bin/pip install pydtmc && V/bin/python make.py

Each sequence ends with its first call, so every state is left and the chain is irreducible as it stands. Probabilities are
counted here in plain Python; PyDTMC is given the matrix.
"""

import json
import random
from collections import Counter
from pathlib import Path

from pydtmc import MarkovChain

CALLS = ["read", "write", "close", "epoll_wait", "openat", "mmap", "futex", "fcntl", "connect"]


def walk(chance: random.Random, kinds: int, length: int) -> list[str]:
    """Calls with some habit: the next one often follows the last in the list."""
    calls = CALLS[:kinds]
    sequence = [calls[0]]
    while len(sequence) < length:
        after = calls[(calls.index(sequence[-1]) + 1) % kinds]
        sequence.append(after if chance.random() < 0.5 else chance.choice(calls))
    return [*sequence, calls[0]]


def about(sequence: list[str], order: int) -> dict:
    closing = sequence + sequence[1:order]  # so that states of several calls come back to the first one too
    grams = [tuple(closing[at : at + order + 1]) for at in range(len(closing) - order)]
    counts = Counter(grams)
    states = sorted({gram[:-1] for gram in grams} | {gram[1:] for gram in grams})
    rows = {state: sum(count for gram, count in counts.items() if gram[:-1] == state) for state in states}
    p = [
        [counts[(*state, after[-1])] / rows[state] if after[:-1] == state[1:] else 0.0 for after in states] for state in states
    ]
    chain = MarkovChain(p, [" ".join(state) for state in states])
    (steady,) = chain.steady_states
    return {
        "sequence": closing,
        "order": order,
        "stationary": dict(zip(chain.states, map(float, steady), strict=True)),
        # PyDTMC gives none for a periodic chain.
        "spectral_gap": None if chain.spectral_gap is None else float(chain.spectral_gap),
        "period": int(chain.period),
    }


chance = random.Random(20190221)
cases = [
    about(walk(chance, kinds, length), order)
    for kinds, length, order in [(2, 30, 1), (3, 60, 1), (5, 200, 1), (9, 1000, 1), (3, 200, 2), (4, 400, 2), (3, 300, 3)]
]
cases.append(about(["read", "write", "close"] * 5 + ["read"], 1))
Path(__file__).with_name("pydtmc.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
