"""Which faults of the fixtures trace and probe see, beside the static rules: the table of docs/runtime_faults.md.

    python benchmarks/runtime_faults.py [--write] [WORD...]

Every module and function of every `bad*.py` of `fixtures/rules` and `fixtures/field` is traced and probed as its proof
calls it, modules also as they can be built by guess, and so is the `good*.py` beside it: what both show is not the
fault.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msalint import lint_source
from msalint.runtime.copies import copied
from msalint.runtime.probing import probe
from msalint.runtime.request import Request
from msalint.runtime.target import TargetError, candidates, load_file
from msalint.runtime.trace_target import trace_target
from msalint.testing import Fixture, collect
from tests.agreement.proof_calls import ProofCall, calls_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "runtime_faults.md"
HEAD = """# Which faults a run shows

Made by `python benchmarks/runtime_faults.py --write`. Each row is a faulty file of `fixtures/`, run as its proof runs
it and, where it can be built by guess, as the commands would. *Static*: the rules that report it. *Trace*: where the
flow of one run breaks the contract of attention, or the error that ends it. *Probe*: the properties that fail on the
faulty file and hold on the mended one. A dash: the module runs and nothing is seen. *no attention*: what the file holds
is beside attention (a mask, a helper), which neither watches. *no tokens*: it takes no tensor that could be
changed. *not run*: its proof calls it in another way than as a module.

"""


WHY_UNSEEN: dict[str, tuple[str, ...]] = {
    "Nothing that the module does changes: it costs more time or memory": (
        "b076-causal-mask-rebuilt-each-call/bad",
        "b079-resampler-builds-full-matrix/bad",
    ),
    "Nothing changes at the ranks it takes; torch itself warns that the axis is not named": (
        "MSA212-softmax-implicit-dim/bad_right_by_luck",
    ),
    "The mended file raises too, in clearer words": ("MSA401-missing-divisibility-check/bad_functional_unflatten",),
    "It can't be built at an odd width, which torch says aloud; at an even one nothing is wrong": (
        "b051-odd-width-sinusoid/bad",
    ),
    "It is sound attention whose queries and keys have changed names": ("a030-softmax-dim-minus2-and-permute/bad",),
    "It can't be told from what was meant: a set of words needs no positions": (
        "b052-molecule-vae-without-positions/bad",
    ),
    "It can't be told from what was meant: attention without a skip connection is attention": (
        "b065-bit-transformer-x-plus-x/bad",
    ),
    "It can't be told from what was meant: some normalise the queries alone": (
        "b068-prenorm-wrapper-first-input-only/bad",
    ),
    "It can't be told from what was meant: torch's own MultiheadAttention begins with that spread": (
        "b082-fused-qkv-xavier-gain/bad",
    ),
    "The module is sound; a method beside its forward, or its caller, reads averaged weights as those of a head": (
        "b031-per-head-weights-were-averaged/bad",
        "MSA510-mha-averaged-weights/bad_one_sample",
    ),
}

WHY_ON_MENDED: dict[str, tuple[str, ...]] = {
    "It fills with -inf, so a sample with no key to see gives NaN": (
        "a007-merge-heads-no-permute/good",
        "a035-einops-head-split-indivisible/good",
        "a042-pad-mask-on-query-axis-inf/good",
        "a066-scores-times-mask-before-softmax/good",
    ),
    "Its scores have no scale": ("a028-softmax-dim0-after-flatten/good",),
    "It makes a mask on the CPU, whatever the device of its input": (
        "a038-sum-of-finfo-min-planes/good",
        "a073-padding-mask-off-by-one/good",
    ),
    "It adds the lowest number of the dtype to scores, which overflows in half where all keys are hidden": (
        "a077-one-minus-bool-mask/good",
        "MSA302-zero-times-infinity/good_extended_mask",
    ),
    "It divides by a floor of 1e-9, which is 0 in half": ("MSA306-mask-after-softmax/good_multiplied",),
    "Its proof multiplied the weights by a thousand, which overflows in half": ("a048-ignore-constant-too-weak/good",),
    "It refuses sizes that do not fit, as it is meant to": (
        "MSA401-missing-divisibility-check/good_functional_unflatten",
    ),
    "It hides no padding": ("a020-vae-encoder-layer-lightning/good",),
}

Shown = frozenset[tuple[str, str]]
"""What was found, beside the class or function that showed it; `_RAN` of each that ran."""

_RAN = ""


@dataclass(frozen=True)
class Seen:
    """What one file shows: None where nothing of it could be run."""

    trace: Shown | None
    probe: Shown | None


@dataclass(frozen=True)
class Row:
    """A faulty file: the codes that static rules report, what is seen in it and in the mended one."""

    name: str
    codes: str
    bad: Seen
    good: Seen | None


def look(path: Path, calls: Sequence[ProofCall]) -> Seen:
    """Trace and probe what a file's proof calls, and whatever else of it can be built by guess."""
    traces: list[Shown | None] = []
    probes: list[Shown | None] = []
    for name, target, request in _targets(path, calls):
        # Of each its own copy: a run may change the settings of the module.
        traces.append(_named(name, _traced(copied(target), request)))
        probes.append(_named(name, _probed(copied(target), request)))
    return Seen(_united(traces), _united(probes))


def _named(name: str, found: frozenset[str] | None) -> Shown | None:
    return None if found is None else frozenset((name, one) for one in (*found, _RAN))


def _targets(path: Path, calls: Sequence[ProofCall]) -> Iterator[tuple[str, Any, Request]]:
    for call in calls:
        if isinstance(call.target, nn.Module):
            for part in call.target.modules():
                # A proof may hang its own on a layer, to put chosen values there.
                part._forward_hooks.clear()
        yield call.name, call.target, Request(values=call.values, dropout=0.2)
    with contextlib.suppress(TargetError):
        module = load_file(path)
        for name in candidates(module):
            yield name, getattr(module, name), Request(dropout=0.2)


def _united(found: Sequence[Shown | None]) -> Shown | None:
    ran = [one for one in found if one is not None]
    return frozenset().union(*ran) if ran else None


def _traced(target: object, request: Request) -> frozenset[str] | None:
    try:
        trace = trace_target(target, request)
    except TargetError as error:
        built = "can't be built" in str(error) and "nothing tells" not in str(error)
        return frozenset({"raises"}) if built else None
    found = {problem.kind for problem in trace.flow.problems} | {"comment disagrees" for _ in trace.flow.comments}
    if trace.failure is not None and not found:
        if "no attention was seen" in str(trace.failure):
            return frozenset({_NO_ATTENTION})
        # A call of the proof that raises is the fault showing itself. Of guessed inputs that can only be said of an
        # error from the middle of attention: one before it may be a wrong guess.
        known = request.values or trace.flow.sites or (len(trace.flow.rows) > 4 and "raises" in str(trace.failure))
        return frozenset({"raises"}) if known else None
    return frozenset(found)


_NO_ATTENTION = "no attention"
_NO_TOKENS = "no tokens"
_RULE = re.compile(r" (?:MSA\d+)?$")
_REASONS = {_NO_ATTENTION, _NO_TOKENS}


def _probed(target: object, request: Request) -> frozenset[str] | None:
    try:
        # With the rule: one property may fail for another reason in the mended file.
        return frozenset(f"{one.name} {one.rule}" for one in probe(target, **vars(request)).failures)
    except TargetError as error:
        text = str(error)
        if "no attention was seen" in text:
            return frozenset({_NO_ATTENTION})
        if "takes no tensor of tokens" in text:
            return frozenset({_NO_TOKENS})
        built = "can't be built" in text and "nothing tells" not in text
        return frozenset({"raises"}) if built or (request.values and "raises when run" in text) else None


def rows_of(fixture: Fixture) -> list[Row]:
    """A row for each faulty file of a folder."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        calls = calls_of(fixture.proof, fixture.sources) if fixture.proof is not None else []
        seen = {
            path: look(path, [call for call in calls if call.file == path.resolve()])
            for path in fixture.sources
            if path in fixture.faulty or path.with_name(path.name.replace("good", "bad", 1)) in fixture.faulty
        }
    rows = []
    for bad in fixture.faulty:
        codes = sorted({d.code for d in lint_source(bad.read_text(encoding="utf-8"), filename=str(bad))})
        mended = seen.get(bad.with_name(bad.name.replace("bad", "good", 1)))
        rows.append(Row(f"{bad.parent.name}/{bad.stem}", ", ".join(codes), seen[bad], mended))
    return rows


def rows(jobs: int, words: Sequence[str]) -> Iterator[Row]:
    """Each faulty file of the fixtures whose folder has one of the words in its name, all without words."""
    fixtures = [
        fixture
        for root in ("field", "rules")
        for fixture in collect(ROOT / "fixtures" / root)
        if fixture.faulty and (not words or any(word in fixture.folder.name for word in words))
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for found in pool.map(rows_of, fixtures):
            yield from found


def _cell(bad: Shown | None, good: Shown | None) -> str:
    if bad is None:
        return "not run"
    beside = good or frozenset()
    names = {name for name, _ in beside}
    shown = {one for _, one in beside}
    # What has no namesake in the mended file is held against all of it.
    seen = {one for name, one in bad if ((name, one) not in beside if name in names else one not in shown)}
    found = {one for _, one in bad} - {_RAN}
    seen.discard(_RAN)
    shown_as = {_RULE.sub("", one) for one in seen - _REASONS}
    return ", ".join(sorted(shown_as or (found if found <= _REASONS else ()))) or "-"


def unseen(names: Sequence[str]) -> str:
    """The faults that probe does not see, by reason."""
    told = [name for listed in WHY_UNSEEN.values() for name in listed]
    lines = ["", "## What probe does not see, and why", ""]
    for reason, listed in WHY_UNSEEN.items():
        here = [name for name in names if name in listed]
        lines += [f"- {reason}: {', '.join(here)}."] if here else []
    left = [name for name in names if name not in told]
    lines += [f"- No reason is known: {', '.join(left)}."] if left else []
    return "\n".join(lines) + "\n"


def on_mended(found: dict[str, set[str]]) -> str:
    """What fails on mended files, which is another fault of theirs, by reason."""
    lines = ["", "## What probe says of mended files", ""]
    lines += ["Each of these is so, and is another fault than the one that was mended.", ""]
    told = {name: reason for reason, listed in WHY_ON_MENDED.items() for name in listed}
    for name, failed in sorted(found.items()):
        lines.append(f"- {name}, {', '.join(sorted(failed))}: {told.get(name, 'No reason is known')}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only folders with one of these in their names")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wrongly: Counter[str] = Counter()
    blind_rows: list[str] = []
    wrong: dict[str, set[str]] = {}
    blind = ("-", "not run", _NO_ATTENTION, _NO_TOKENS)
    lines, ran, by_trace, by_probe, false = ["| fixture | static | trace | probe |", "|---|---|---|---|"], 0, 0, 0, []
    for row in rows(options.jobs, options.words):
        bad, good = row.bad, row.good
        trace = _cell(bad.trace, good.trace if good else None)
        behaviour = _cell(bad.probe, good.probe if good else None)
        lines.append(f"| {row.name} | {row.codes or '-'} | {trace} | {behaviour} |")
        ran += bad.trace is not None or bad.probe is not None
        by_trace += trace not in blind
        by_probe += behaviour not in blind
        wrongly.update(
            _RULE.sub("", one) for _, one in (good.probe or () if good else ()) if one not in {_RAN, *_REASONS}
        )
        mended = {_RULE.sub("", one) for _, one in (good.probe or () if good else ())} - {_RAN, *_REASONS}
        if mended:
            wrong[f"{row.name.partition('/')[0]}/{row.name.rpartition('/')[2].replace('bad', 'good', 1)}"] = mended
        broken = {one for _, one in good.trace or ()} - {"raises", _RAN, *_REASONS} if good else None
        if behaviour in blind:
            blind_rows.append(row.name)
        if broken:
            false.append(f"{row.name}: {', '.join(broken)}")
    total = len(lines) - 2
    summary = (
        f"{total} faulty files, {ran} of them run; trace sees {by_trace}, probe sees {by_probe}; "
        f"of the mended files trace finds a broken contract in {len(false)}, probe another fault in {len(wrong)}.\n\n"
    )
    text = HEAD + summary + "\n".join(lines) + "\n" + unseen(blind_rows) + on_mended(wrong)
    print("\n".join(false), file=sys.stderr)
    print(f"fail on mended files: {dict(wrongly.most_common())}", file=sys.stderr)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    print(re.sub(r"(?s)^# .*?\n\n(?=\d)", "", text) if not options.write else summary)


if __name__ == "__main__":
    main()
