"""What the tails say, in a sentence."""

from __future__ import annotations

from twinbed.analyses.tails.result import Tails
from twinbed.analyses.tails.tables import quantile_name
from twinbed.model.result import Verdict
from twinbed.show.quantities import change, share


def sentence(result: Tails) -> str:
    """``virtio: 2 of 6 quantiles differ by more than 10 %, most of all the P99 at payload 500B, 8.2 times as much as real.``"""
    parts = []
    for testbed in dict.fromkeys(each.testbed for each in result.verdicts):
        own = [each for each in result.verdicts if each.testbed == testbed]
        different = [each for each in own if each.verdict is Verdict.DIFFERENT]
        equivalent = sum(each.verdict is Verdict.EQUIVALENT for each in own)
        if not different:
            parts.append(
                f"{testbed}: {equivalent} of {len(own)} quantiles are within {share(result.margin)}, none is shown not to be"
            )
            continue
        most = max(different, key=lambda each: max(each.ratio or 1e-300, 1 / (each.ratio or 1e-300)))
        where = " ".join(f"{name} {level}" for name, level in most.cell.items())
        far = change(most.ratio, most.reference) if most.ratio else f"none on {most.reference}"
        parts.append(
            f"{testbed}: {len(different)} of {len(own)} quantiles differ by more than {share(result.margin)}, most of all the "
            f"{quantile_name(most.share)}{f' at {where}' if where else ''}, {far}"
        )
    return "; ".join(parts) + "." if parts else "No quantile has two runs on both sides."
