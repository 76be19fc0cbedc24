"""Error of the token estimate over the corpus, against the counts of real tokenizers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon_kernel.messages import Calibration, estimate_text
from tests.kernel.reference.error_catalogue import DO_NOT_EDIT

CORPUS = Path(__file__).parent / "corpus"
LANGUAGES: Final = ("english", "german", "chinese", "code", "json", "emoji")
FITTED: Final = "o200k_base"
OTHER: Final = "cl100k_base"


@dataclass(frozen=True)
class EstimateError:
    """Relative error of estimates, of which each stands beside the true count."""

    pairs: tuple[tuple[int, int], ...]

    @property
    def errors(self) -> list[float]:
        return sorted(abs(estimated / true - 1) for estimated, true in self.pairs)

    @property
    def mean(self) -> float:
        return sum(self.errors) / len(self.pairs)

    @property
    def p95(self) -> float:
        return self.errors[math.ceil(0.95 * len(self.pairs)) - 1]

    @property
    def bias(self) -> float:
        """Error of all samples together, with its sign."""
        return sum(one for one, _ in self.pairs) / sum(true for _, true in self.pairs) - 1


def samples(language: str) -> list[str]:
    return (CORPUS / f"{language}.txt").read_text("utf-8").rstrip("\n").split("\n%%\n")


def true_counts(encoding: str, language: str) -> list[int]:
    counts: list[int] = json.loads((CORPUS / "counts.json").read_text("utf-8"))[encoding][language]
    return counts


def measure(encoding: str, language: str) -> EstimateError:
    """The error of the estimate as it is."""
    estimates = map(estimate_text, samples(language))
    return EstimateError(tuple(zip(estimates, true_counts(encoding, language), strict=True)))


def measure_by_length(encoding: str, language: str) -> EstimateError:
    """The error of four characters a token."""
    estimates = (math.ceil(len(sample) / 4) for sample in samples(language))
    return EstimateError(tuple(zip(estimates, true_counts(encoding, language), strict=True)))


def measure_calibrated(encoding: str, language: str) -> EstimateError:
    """The error in a conversation: each request has one sample more, and is reported."""
    calibration = Calibration()
    estimated = true = 0
    pairs: list[tuple[int, int]] = []
    for sample, count in zip(samples(language), true_counts(encoding, language), strict=True):
        estimated += estimate_text(sample)
        true += count
        pairs.append((calibration.apply(estimated), true))
        calibration = calibration.updated(estimated, true)
    return EstimateError(tuple(pairs))


def tokens_page() -> str:
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield DO_NOT_EDIT
    yield "# Error of the token estimate\n"
    yield (
        "Sizes of requests are estimated, because a provider's tokenizer is rarely at hand. The"
        f" estimate is fitted to `{FITTED}` on other texts than these, and corrected for each model"
        " by the usage that its provider reports. Measured over `tests/kernel/messages/corpus`, 16"
        " samples a language, against the counts of `gpt-tokenizer` that"
        " `corpus/count_tokens.mjs` writes. Mean and p95 are of the absolute error of single"
        " samples; bias is the error of all together.\n"
    )
    yield f"| samples | tokens in `{FITTED}` | bias | mean | p95 | mean of characters / 4 |"
    yield "|---|---|---|---|---|---|"
    for language in LANGUAGES:
        found = measure(FITTED, language)
        plain = measure_by_length(FITTED, language)
        yield (
            f"| {language} | {sum(true_counts(FITTED, language)):,} | {found.bias:+.1%}"
            f" | {found.mean:.1%} | {found.p95:.1%} | {plain.mean:.1%} |"
        )
    yield (
        "\nShort emoji have the largest relative error: one token more or less is all of it.\n\n"
        f"Another tokenizer, `{OTHER}`, in a conversation of which each request has one sample"
        " more than the one before:\n"
    )
    yield "| samples | mean as it is | mean calibrated | calibrated, last request |"
    yield "|---|---|---|---|"
    for language in LANGUAGES:
        calibrated = measure_calibrated(OTHER, language)
        last = EstimateError(calibrated.pairs[-1:])
        yield (
            f"| {language} | {measure(OTHER, language).mean:.1%} | {calibrated.mean:.1%}"
            f" | {last.mean:.1%} |"
        )
