"""Runs the classes of one file of a package as it was and as fixes left it, and compares what they give.

    python -m benchmarks.public_code.numbers ORIGINAL COPY FILE

ORIGINAL and COPY are folders that hold the package, FILE is named from there. Prints a JSON object with a verdict for
each torch module of the file: "same", "differs: ...", "random: ...", "not built: ...". The modules are built by the
guesses of `msalint probe`, in eval mode, and run on the same inputs with the same seeds. This RUNS the package's code.

Libraries that a package imports and that are not installed (audio files, downloads) are stood in for by empty ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

SEED = 7

SETTINGS: dict[str, dict[str, Any]] = {
    "CTC": {"odim": 11, "encoder_output_size": 21},
    "ContentBasedAttention": {"enc_dim": 21, "dec_dim": 21, "attn_dim": 21, "output_dim": 21},
    "KeyValueAttention": {"enc_dim": 21, "dec_dim": 21, "attn_dim": 21, "output_dim": 21},
}
"""Constructor arguments that no name tells, by class."""

CALLS: dict[str, str] = {
    "CTC": "m(torch.randn(2, 9, 21), torch.tensor([9, 7]), torch.randint(1, 11, (2, 3)), torch.tensor([3, 2]))",
    "UtteranceMVN": "m(torch.randn(2, 9, 21), torch.tensor([9, 7]))",
    "ContentBasedAttention": "m(torch.randn(2, 9, 21), torch.tensor([9, 7]), torch.randn(2, 21))",
    "KeyValueAttention": "m(torch.randn(2, 9, 21), torch.tensor([9, 7]), torch.randn(2, 21))",
}
"""Calls that no signature tells."""


def main(arguments: list[str]) -> int:
    """The command line."""
    if arguments[0] == "--child":
        _save_outputs(Path(arguments[1]), Path(arguments[2]))
        return 0
    original, copy, name = (Path(argument) for argument in arguments)
    print(json.dumps(_verdicts(original / name, copy / name)))
    return 0


def _verdicts(before: Path, after: Path) -> dict[str, str]:
    """A process for each side, since both define modules of the same names, and one to see what differs by itself."""
    import torch

    sides = []
    with tempfile.TemporaryDirectory() as place:
        for number, path in enumerate((before, before, before, after)):
            saved = Path(place) / str(number)
            command = [sys.executable, "-m", "benchmarks.public_code.numbers", "--child", str(path), str(saved)]
            subprocess.run(command, check=True, stdout=sys.stderr)
            sides.append(torch.load(saved))
    *originals, copy = sides
    return {name: _verdict([one[name] for one in originals], copy.get(name, "gone")) for name in originals[0]}


def _verdict(originals: list[Any], after: Any) -> str:
    before = originals[0]
    if isinstance(before, str):
        return f"not built: {before}"
    if not all(_same(before, other) for other in originals[1:]):
        return "random: no two runs of the original agree"
    if isinstance(after, str):
        return f"differs: it can't be run any more: {after}"
    return "same" if _same(before, after) else "differs: other numbers"


def _same(before: Any, after: Any) -> bool:
    import torch

    if isinstance(before, str) or isinstance(after, str):
        return bool(before == after)
    return len(before) == len(after) and all(
        one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())
        for one, other in zip(before, after)
    )


class _StandIn(ModuleType):
    """Holds a class of any name, which does nothing; so `import`, `from ... import` and a base class all work."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *_, **__: None})


class _StandIns(MetaPathFinder, Loader):
    """Finds whatever is not found elsewhere, but for the names of the package itself."""

    def __init__(self, real: set[str]) -> None:
        self._real = real

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        stands_in = isinstance(sys.modules.get(top), _StandIn) or ("." not in fullname and top not in sys.modules)
        return ModuleSpec(fullname, self, is_package=True) if stands_in and top not in self._real else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _save_outputs(path: Path, saved: Path) -> None:
    import torch

    from msalint.runtime.request import Request
    from msalint.runtime.target import TargetError, candidates, load_file

    torch.set_num_threads(1)
    outputs: dict[str, Any] = {}
    try:
        try:
            module = load_file(path)
        except TargetError:
            sys.meta_path.append(_StandIns(set(sys.stdlib_module_names) | {item.name for item in path.parents}))
            module = load_file(path)
        for name in candidates(module):
            request = Request(settings=SETTINGS.get(name, {}), call=CALLS.get(name))
            outputs[name] = _output(getattr(module, name), request)
    except TargetError as error:
        outputs[path.name] = str(error)
    torch.save(outputs, saved)


def _output(cls: Any, request: Any) -> Any:
    """The tensors that a module gives, or why it can't be run."""
    import torch

    from msalint.runtime.subject import subject_of
    from msalint.runtime.target import TargetError, describe_error

    try:
        subject = subject_of(cls, request)
        torch.manual_seed(SEED)
        with torch.no_grad():
            return list(_tensors(subject.call()))
    except TargetError as error:
        return str(error)
    except Exception as error:
        return describe_error(error)


def _tensors(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
