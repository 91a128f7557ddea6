"""The runs of a study, their order, and their estimated time and disk."""

from twinbed.design.order import drawn, interim_blocks, runs
from twinbed.design.time import Expense, expense, run_expense

__all__ = ["Expense", "drawn", "expense", "interim_blocks", "run_expense", "runs"]
