"""From a study to its runs: which, in what order, and what they will take."""

from twinbed.design.interim import interim_blocks
from twinbed.design.order import runs
from twinbed.design.sample import drawn
from twinbed.design.time import Expense, expense, run_expense

__all__ = ["Expense", "drawn", "expense", "interim_blocks", "run_expense", "runs"]
