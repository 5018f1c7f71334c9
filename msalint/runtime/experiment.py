"""One module under test: how it is called with and without masks, on inputs seen as (batch, seq, ...)."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from msalint.runtime.copies import copied, moved
from msalint.runtime.inputs import IMAGES, docs_of, is_data, is_mask, is_mask_name, main_name
from msalint.runtime.kept_state import state_of
from msalint.runtime.mask_ways import MaskWays, call_masks
from msalint.runtime.request import Request
from msalint.runtime.subject import Subject, caller, fresh, in_mode
from msalint.runtime.tracer import Tracer
from msalint.shapes.vocabulary import says


class NotApplicable(Exception):
    """The property says nothing about this module; the message says why."""


_OF_ONE = frozenset("q k v query key value queries keys values".split())
"""Names under which a module of self-attention takes one tensor three times."""


class Experiment:
    """Runs a module in float64 if it can, in float32 if not, always on the same inputs for the same seed."""

    def __init__(self, subject: Subject, request: Request) -> None:
        self.subject, self.request = subject, request
        self.sizes, self.kind = subject.sizes, subject.kind
        self.text = request.call
        self.inputs = dict(subject.inputs)
        tensors = [name for name, value in subject.inputs.items() if _is_data(name, value, self.text)]
        if not tensors:
            raise NotApplicable("it takes no tensor of tokens")
        self.main = main_name(tensors)
        self.data = tensors
        shape = subject.inputs[self.main].shape
        # query, key and value of self-attention are one and the same; a memory that was handed over is not.
        main = subject.inputs[self.main]
        self.same = [
            name
            for name in tensors
            if subject.inputs[name].shape == shape and not self.text
            if name == self.main
            or name in _OF_ONE
            or torch.equal(subject.inputs[name], main)
            or not (request.values or _of_two(name, self.main))
        ]
        self.kept = state_of(None)
        """What runs change of what the module keeps; put back before each run of it."""
        self.noisy = False
        """Its output is drawn at random, as that of a variational encoder is."""
        self.precision = torch.float64
        self.module, self.dtype = self._widened(subject.target)
        self.parameters = _parameter_names(subject.target)
        examples = {name: value for name, value in request.values.items() if is_mask(name, value)}
        docs = docs_of(subject.target)
        self.masks = MaskWays(self.parameters, self.text, docs, examples, request.mask_true, self.dtype)
        self._hide_nothing(examples)

    def _hide_nothing(self, examples: Mapping[str, Any]) -> None:
        """Masks that were handed over say how masks are taken; the plain run is one in which every key is seen."""
        optional = _optional_parameters(self.subject.target)
        tokens = self.tokens(0)
        allowed = torch.ones(tokens.shape[0], tokens.shape[1], tokens.shape[1], dtype=torch.bool)
        for name in examples:
            if name in optional:
                del self.inputs[name]
            else:
                self.inputs.update(self.masks.all_seen(name, allowed))

    @property
    def others(self) -> list[str]:
        """Further sequences that it reads beside the main one: a memory, a target."""
        batch, rank = self.subject.inputs[self.main].shape[0], self.subject.inputs[self.main].dim()
        tensors = [name for name in self.data if name != self.main and not {name, self.main} <= _OF_ONE]
        values = [(name, self.subject.inputs[name]) for name in tensors]
        return [name for name, value in values if value.dim() == rank and value.shape[0] == batch]

    @property
    def beside(self) -> list[str]:
        """Whole numbers for each token beside the main input: segments, kinds, ids."""
        shape = self.subject.inputs[self.main].shape[:2]
        return [
            name
            for name, value in self.inputs.items()
            if isinstance(value, Tensor)
            and not value.is_floating_point()
            and value.shape == shape
            and name != self.main
            if not is_mask_name(name)
        ]

    def need_batch(self) -> None:
        """Raises `NotApplicable` where there is one sample and no axis for another."""
        if self.kind == "unbatched":
            raise NotApplicable("its input has no batch axis")

    def _widened(self, target: Any) -> tuple[Any, torch.dtype]:
        wide = in_mode(self.pristine(), training=False).double() if isinstance(target, nn.Module) else target
        self.module, self.dtype = wide, torch.float64
        try:
            with Tracer() as tracer:
                self._run_and_note()
        except Exception:
            self.precision = torch.float32
        else:
            # A softmax in float32 by choice: masks and tolerances have to follow the narrower dtype.
            used = {op.dtype for op in tracer.ops} & {torch.float32, torch.float16, torch.bfloat16}
            self.precision = max(used, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float64)
        if self.precision == torch.float64:
            return wide, torch.float64
        self.module = in_mode(self.pristine(), training=False) if isinstance(target, nn.Module) else target
        self.dtype = torch.float32
        with contextlib.suppress(Exception):
            self._run_and_note()
        return self.module, torch.float32

    def _run_and_note(self) -> None:
        """Run once, and note what that changes of what the module keeps."""
        before = state_of(self.module)
        self.kept = state_of(None)
        self.run(self.tokens(0))
        if isinstance(self.module, nn.Module):
            self.kept = before.changed(self.module)
            self.kept.put_back(self.module)

    def pristine(self) -> nn.Module:
        """A copy of the module, in its own dtype, as it was before it first ran."""
        module: nn.Module = copied(self.subject.target)
        self.subject.state.changed(module).put_back(module)
        return module

    @property
    def is_ids(self) -> bool:
        return not self.subject.inputs[self.main].is_floating_point()

    @property
    def vocab(self) -> int:
        """How many ids there are to draw from: as many as the first embedding has rows."""
        parts = self.subject.target.modules() if isinstance(self.subject.target, nn.Module) else ()
        table = next((part for part in parts if isinstance(part, nn.Embedding)), None)
        if table is not None:
            return table.num_embeddings
        return max(int(self.subject.inputs[self.main].max()) + 1, self.sizes.vocab)

    @property
    def padding_id(self) -> int | None:
        """The id that stands for no token, by an attribute or argument such as `pad_token_id`, None if none does."""
        values = dict(self.subject.inputs)
        if isinstance(self.subject.target, nn.Module):
            for part in self.subject.target.modules():
                if not isinstance(part, nn.Embedding):
                    values.update(vars(part))
        named = ((name, value) for name, value in values.items() if type(value) is int and says(name, "pad", "padding"))
        return next((value for name, value in named if not says(name, "size")), None)

    @property
    def tolerance(self) -> float:
        """Rounding of a few hundred operations on values of order one, of a few in a dtype of half the bits."""
        info = torch.finfo(self.precision)
        return (2.0**9 if info.bits >= 32 else 2.0**3) * info.eps

    def source(self) -> str:
        try:
            target = self.subject.target
            return inspect.getsource(type(target) if isinstance(target, nn.Module) else target)
        except (OSError, TypeError):
            return ""

    # --- inputs and outputs, always seen as (batch, seq, ...) ---------------------------------------------------------

    def tokens(self, seed: int, batch: int | None = None, seq: int | None = None) -> Tensor:
        """The main input for a seed, of the sizes asked."""
        generator = torch.Generator().manual_seed(seed)
        shape = list(self.to_rows(self.subject.inputs[self.main]).shape)
        shape[0], shape[1] = batch or shape[0], seq or shape[1]
        if self.is_ids:
            ids = torch.randint(self.vocab, shape, generator=generator)
            return ids if self.padding_id is None else torch.where(ids == self.padding_id, (ids + 1) % self.vocab, ids)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def disturbed(self, tokens: Tensor, seed: int) -> Tensor:
        """Other tokens everywhere."""
        if self.is_ids:
            return (tokens + 1 + seed) % self.vocab
        generator = torch.Generator().manual_seed(1000 + seed)
        return tokens + 2 * torch.randn(tokens.shape, generator=generator, dtype=tokens.dtype)

    def run(self, tokens: Tensor, masks: Mapping[str, Any] | None = None, module: Any = None) -> Tensor:
        """The output for these tokens and mask arguments, as (batch, seq, ...) if it has tokens."""
        found = first_tensor(self.output(tokens, masks, module))
        if found is None:
            raise NotApplicable("its output holds no tensor")
        return self.to_rows(found) if found.dim() == self.from_rows(tokens).dim() else found

    def output(self, tokens: Tensor, masks: Mapping[str, Any] | None = None, module: Any = None) -> Any:
        """All that it gives, as it gives it."""
        target = self.module if module is None else module
        if self.kept and target is self.module:
            self.kept.put_back(target)
        dtype = _dtype_of(target, self.dtype)
        given: dict[str, Any] = {}
        for name, value in fresh(self.inputs).items():
            if name in (self.main, *self.same):
                value = self.from_rows(tokens)
            value = moved(value, dtype=dtype)
            if isinstance(value, Tensor):
                value = self._fitted(name, value, tokens)
            elif isinstance(value, list) and len(value) == self.sizes.batch:
                value = value[: tokens.shape[0]]
            given[name] = value
        if self.text:
            batch, seq = tokens.shape[:2]
            given.update(call_masks(torch.ones(batch, seq, seq, dtype=torch.bool)))
        given.update(masks or {})
        return caller(target, self.text, given)() if self.text else target(**given)

    def _fitted(self, name: str, value: Tensor, tokens: Tensor) -> Tensor:
        """Masks, positions and second sequences cut to the batch and length of the tokens."""
        if name in (self.main, *self.same) or not value.dim():
            return value
        if is_mask_name(name) or not value.is_floating_point():
            sizes = {self.sizes.batch: tokens.shape[0], self.sizes.seq: tokens.shape[1]}
            for axis, size in enumerate(value.shape):
                value = value.narrow(axis, 0, min(sizes.get(size, size), size))
            return value
        axis = 1 if self.kind in ("seq_first", "ids_seq_first") and value.dim() > 1 else 0
        return (
            value.narrow(axis, 0, min(tokens.shape[0], self.sizes.batch))
            if value.shape[axis] == self.sizes.batch
            else value
        )

    def to_rows(self, tensor: Tensor) -> Tensor:
        """What the module takes or gives, as (batch, seq, ...)."""
        if self.kind == "unbatched" and tensor.dim() == 2:
            return tensor.unsqueeze(0)
        return self._swapped(tensor)

    def from_rows(self, tensor: Tensor) -> Tensor:
        """(batch, seq, ...) as the module takes it."""
        return tensor.squeeze(0) if self.kind == "unbatched" else self._swapped(tensor)

    def _swapped(self, tensor: Tensor) -> Tensor:
        if self.kind in ("seq_first", "ids_seq_first") and tensor.dim() >= 2:
            return tensor.transpose(0, 1)
        if self.kind == "channels_first" and tensor.dim() == 3:
            return tensor.transpose(1, 2)
        return tensor.transpose(1, 2) if self.kind == "heads" and tensor.dim() == 4 else tensor

    def is_of_scores(self, tokens: Tensor, output: Tensor) -> bool:
        """Whether a function takes scores and gives weights: tokens stand on two axes of both."""
        square = {tokens.shape[1], tokens.shape[-1], output.shape[-1]}
        return not isinstance(self.module, nn.Module) and len(square) == 1 and output.shape == tokens.shape

    def is_tokenwise(self, output: Tensor, tokens: Tensor) -> bool:
        return output.dim() >= 3 and tuple(output.shape[:2]) == tuple(tokens.shape[:2])

    def is_pooled(self, output: Tensor, tokens: Tensor) -> bool:
        """One row a sample: what hidden tokens hold must not reach it."""
        return self.kind != "unbatched" and output.dim() == 2 and output.shape[0] == tokens.shape[0]

    def tokenwise(self, seed: int) -> tuple[Tensor, Tensor]:
        """Tokens and their output. Raises `NotApplicable` if the output has no place for each token."""
        if self.kind in IMAGES:
            raise NotApplicable("its input is no row of tokens")
        tokens = self.tokens(seed)
        output = self.run(tokens)
        if not self.is_tokenwise(output, tokens):
            raise NotApplicable(f"its output {tuple(output.shape)} has no place for each token")
        return tokens, output

    def influence(
        self, masks: Mapping[str, Any] | None = None, seed: int = 0, scale: float = 1.0, module: Any = None
    ) -> Tensor:
        """(seq, seq), True at [i, j] where the output of token i depends on token j. `scale` makes values smaller."""
        tokens = self.tokens(seed) if scale == 1.0 else self.tokens(seed) * scale
        output = self.run(tokens, masks, module)
        columns = []
        for place in range(tokens.shape[1]):
            other = tokens.clone()
            changed = self.disturbed(tokens, seed)[:, place]
            other[:, place] = changed if scale == 1.0 else changed * scale
            change = (self.run(other, masks, module) - output).abs().flatten(2).amax(dim=2).amax(dim=0)
            columns.append(~(change <= self.tolerance))
        return torch.stack(columns, dim=1)

    def awake(self) -> Any:
        """The module, as a copy with noise in weights that are all zero, if it has such: a gate that starts closed."""
        if not isinstance(self.module, nn.Module) or all(bool(p.any()) for p in self.module.parameters()):
            return self.module
        self.kept.put_back(self.module)
        return awakened(copied(self.module))

    @contextmanager
    def training(self) -> Iterator[nn.Module]:
        """A copy of the module in training mode."""
        if not isinstance(self.module, nn.Module):
            raise NotApplicable("it is a function, which has no training mode")
        self.kept.put_back(self.module)
        yield in_mode(copied(self.module), training=True)


def awakened(module: nn.Module) -> nn.Module:
    """The module itself, with noise in place of the parameters that are zero throughout."""
    for parameter in module.parameters():
        if parameter.numel() and not bool(parameter.any()):
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
            parameter.data.copy_(0.1 * noise)
    return module


def _of_two(name: str, main: str) -> bool:
    """Whether these are a source and a target, which are two sequences."""
    return says(name, "src", "source") and says(main, "tgt", "target")


def first_tensor(output: Any) -> Tensor | None:
    """The first floating tensor in an output of any make."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() else None
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, (tuple, list)):
        return next((found for item in output if (found := first_tensor(item)) is not None), None)
    return (
        next((value for value in vars(output).values() if isinstance(value, Tensor)), None)
        if hasattr(output, "__dict__")
        else None
    )


def _is_data(name: str, value: Any, text: str | None) -> bool:
    return is_data(name, value) and (text is None or re.search(rf"\b{name}\b", text) is not None)


def _parameter_names(target: Any) -> list[str]:
    try:
        return list(inspect.signature(target.forward if isinstance(target, nn.Module) else target).parameters)
    except (TypeError, ValueError):
        return []


def _optional_parameters(target: Any) -> set[str]:
    try:
        parameters = inspect.signature(target.forward if isinstance(target, nn.Module) else target).parameters
    except (TypeError, ValueError):
        return set()
    return {name for name, parameter in parameters.items() if parameter.default is not parameter.empty}


def _dtype_of(target: Any, default: torch.dtype) -> torch.dtype:
    if isinstance(target, nn.Module):
        floating = next((p.dtype for p in target.parameters() if p.is_floating_point()), None)
        return floating or default
    return default
