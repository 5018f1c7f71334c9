"""`@shape_checked`: what it refuses, what its messages say, and what it must not disturb."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

from jaxtyping import Bool, Float, Int  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from msalint.runtime import ShapeError, check_package, shape_checked  # noqa: E402
from msalint.runtime.import_hook import AlreadyImported  # noqa: E402
from msalint.runtime.tracer import trace  # noqa: E402

ROOT = Path(__file__).parents[2]


@shape_checked
def scores_of(q: Float[Tensor, "*lead seq d_k"], k: Float[Tensor, "*lead keys d_k"]) -> Float[Tensor, "*lead seq keys"]:
    return q @ k.mT


@shape_checked(dims="d_model = num_heads * d_k, head = num_heads, vocab")
class Heads(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_k: int) -> None:
        super().__init__()
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_k
        self.__hidden = nn.Linear(d_model, d_model)

    def forward(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch head seq d_k"]:
        y: Float[Tensor, "batch seq head d_k"]
        y = self.__hidden(x).unflatten(-1, (self.num_heads, -1))
        return y.transpose(1, 2)

    def logits(self, table: Float[Tensor, "vocab d_model"]) -> None:
        pass

    @staticmethod
    def pool(x: Float[Tensor, "batch seq width"]) -> Float[Tensor, "batch width"]:
        return x.mean(1)


@shape_checked
class Derived(nn.Module):
    """Takes a width and heads, derives the head width: the product has to hold without being declared."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads

    def forward(self, x: Float[Tensor, "batch head seq d_k"]) -> Float[Tensor, "batch head seq d_k"]:
        return x


def message_of(call: Callable[[], Any]) -> str:
    with pytest.raises(ShapeError) as caught:
        call()
    return str(caught.value)


def test_two_arguments_disagree_and_both_are_named() -> None:
    text = message_of(lambda: scores_of(torch.zeros(2, 3, 5, 7), torch.zeros(2, 3, 5, 8)))
    assert text.startswith("scores_of: argument `k` does not fit: axis 3 is 8, not d_k = 7")
    assert "d_k   = 7  from axis 3 of argument `q`" in text
    assert 'q  Float[Tensor, "*lead seq d_k"]   float32 (2, 3, 5, 7)' in text
    assert "got       float32 (2, 3, 5, 8)" in text


def test_leading_axes_have_to_agree() -> None:
    assert "*lead = (2, 3)" in message_of(lambda: scores_of(torch.zeros(2, 3, 5, 7), torch.zeros(2, 1, 5, 7)))


def test_a_wrong_dtype_is_told_as_such() -> None:
    assert "it is int64 (5, 7)" in message_of(lambda: scores_of(torch.zeros(5, 7).long(), torch.zeros(5, 7)))


def test_the_class_sizes_hold_in_a_call() -> None:
    text = message_of(lambda: Heads(21, 3, 7)(torch.zeros(2, 5, 20)))
    assert "axis 2 is 20, not d_model = 21" in text
    assert "d_model = 21  from self.num_heads * self.d_k" in text


def test_a_relation_is_broken_in_init() -> None:
    assert "self.d_model is 20, but self.num_heads * self.d_k is 21" in message_of(lambda: Heads(20, 3, 7))


def test_a_relation_is_broken_later() -> None:
    module = Heads(21, 3, 7)
    module.num_heads = 7
    assert "self.num_heads * self.d_k is 49" in message_of(lambda: module(torch.zeros(2, 5, 21)))


def test_a_derived_head_width_is_a_relation_by_itself() -> None:
    assert "self.embed_dim is 20, but self.num_heads * self.head_dim is 18" in message_of(lambda: Derived(20, 3))


def test_an_alias_attribute_gives_the_axis_its_size() -> None:
    text = message_of(lambda: Derived(21, 3)(torch.zeros(2, 5, 3, 7)))
    assert "axis 1 is 5, not head = 3" in text
    assert "from self.num_heads" in text


def test_a_pinned_axis_keeps_the_size_of_its_first_tensor() -> None:
    module = Heads(21, 3, 7)
    module.logits(torch.zeros(11, 21))
    text = message_of(lambda: module.logits(torch.zeros(12, 21)))
    assert "not vocab = 11" in text
    assert "at the first call of Heads.logits" in text
    Heads(21, 3, 7).logits(torch.zeros(12, 21))


def test_a_local_is_checked_behind_its_assignment() -> None:
    module = Heads(21, 3, 7)
    module._Heads__hidden = nn.Linear(21, 42)
    assert "local `y` does not fit: axis 3 is 14, not d_k = 7" in message_of(lambda: module(torch.zeros(2, 5, 21)))


def test_a_result_is_checked() -> None:
    @shape_checked
    def transposed(x: Float[Tensor, "a b"]) -> Float[Tensor, "a b"]:
        return x.mT

    assert "the return value does not fit: axis 0 is 3, not a = 2" in message_of(lambda: transposed(torch.zeros(2, 3)))


def test_static_methods_and_plain_hints_are_checked() -> None:
    assert "it has 2 axes, not 3" in message_of(lambda: Heads.pool(torch.zeros(2, 3)))
    assert "argument `num_heads`" in message_of(lambda: Heads(21, "3", 7))  # type: ignore[arg-type]


def test_unions_try_every_alternative_and_forget_what_failed() -> None:
    @shape_checked
    def masked(m: Bool[Tensor, "batch 1 seq"] | Bool[Tensor, "seq"] | None, x: Float[Tensor, "seq"]) -> None:
        return None

    masked(None, torch.zeros(5))
    masked(torch.zeros(5).bool(), torch.zeros(5))
    masked(torch.zeros(2, 1, 5).bool(), torch.zeros(5))
    assert "not seq = 5" in message_of(lambda: masked(torch.zeros(5).bool(), torch.zeros(6)))


@pytest.mark.parametrize(
    ("hint", "shape", "fits"),
    [
        ("#batch seq", (1, 5), True),
        ("seq+1 seq", (6, 5), True),
        ("seq+1 seq", (5, 5), False),
        ("_ 4", (9, 4), True),
        ("_ 4", (9, 5), False),
        ("... d", (1, 2, 3), True),
        ("", (), True),
        ("", (1,), False),
    ],
)
def test_every_kind_of_axis(hint: str, shape: tuple[int, ...], fits: bool) -> None:
    def taking(x: Any) -> None:
        return None

    taking.__annotations__["x"] = Float[Tensor, hint]
    checked = shape_checked(taking)
    if fits:
        checked(torch.zeros(shape))
    else:
        message_of(lambda: checked(torch.zeros(shape)))


def test_broadcast_axes_may_be_one_before_and_after_they_are_bound() -> None:
    @shape_checked
    def f(a: Float[Tensor, "#n"], b: Float[Tensor, "#n"], c: Float[Tensor, "n"]) -> None:
        return None

    f(torch.zeros(1), torch.zeros(4), torch.zeros(4))
    message_of(lambda: f(torch.zeros(1), torch.zeros(4), torch.zeros(1)))


def test_lists_and_tuples_are_checked_item_by_item() -> None:
    @shape_checked
    def f(pair: tuple[Float[Tensor, "n"], Int[Tensor, "n"]], rest: list[Float[Tensor, "n"]]) -> None:
        return None

    f((torch.zeros(2), torch.zeros(2).long()), [torch.zeros(2)] * 3)
    assert "item 1: axis 0 is 3" in message_of(lambda: f((torch.zeros(2), torch.zeros(3).long()), []))
    assert "item 0: axis 0 is 3" in message_of(lambda: f((torch.zeros(2), torch.zeros(2).long()), [torch.zeros(3)]))


def test_off_gives_the_object_back() -> None:
    def f(x: Float[Tensor, "n"]) -> None:
        return None

    assert shape_checked(mode="off")(f) is f


def test_off_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Float[Tensor, "n"]) -> None:
        return None

    monkeypatch.setenv("MSALINT_RUNTIME", "off")
    assert shape_checked(f) is f
    monkeypatch.setenv("MSALINT_RUNTIME", "sometimes")
    with pytest.raises(ValueError, match="sometimes"):
        shape_checked(f)


def test_once_stops_after_a_call_that_passed() -> None:
    @shape_checked(mode="once")
    def f(x: Float[Tensor, "n 3"]) -> None:
        return None

    message_of(lambda: f(torch.zeros(2, 4)))
    f(torch.zeros(2, 3))
    f(torch.zeros(2, 4))


def test_compile_has_no_graph_break() -> None:
    module = Heads(21, 3, 7)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    x = torch.randn(2, 5, 21)
    assert torch.equal(compiled(x), module(x))


def _replica(module: nn.Module) -> Any:
    """What DataParallel makes of a module for each GPU: the same class, another object, never initialised."""
    replicate: Any = module._replicate_for_data_parallel
    return replicate()


def test_deepcopy_pickle_autocast_and_replicas() -> None:
    module = Heads(21, 3, 7)
    x = torch.randn(2, 5, 21)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), _replica(module)):
        if other._parameters or other._modules:
            other._modules = module._modules
        assert torch.equal(other(x), module(x))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(x).dtype == torch.bfloat16
    assert pickle.loads(pickle.dumps(scores_of)) is scores_of


def test_the_rebuilt_body_keeps_its_lines() -> None:
    ops = trace(lambda: Heads(21, 3, 7)(torch.zeros(2, 5, 21)))
    unflatten = next(op for op in ops if op.name == "Tensor.unflatten")
    line = Path(__file__).read_text().splitlines()[unflatten.line - 1]
    assert "unflatten" in line
    assert unflatten.filename == __file__
    assert unflatten.caller.endswith("forward")


def test_an_error_of_the_body_passes_through() -> None:
    @shape_checked
    def f(x: Float[Tensor, "n"]) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(torch.zeros(2))
    with pytest.raises(TypeError, match="missing 1 required"):
        f()  # type: ignore[call-arg]


MODULE = """
from torch import Tensor, nn
from jaxtyping import Float

def double(x: Float[Tensor, "a b"]) -> Float[Tensor, "b a"]:
    return x

class Net(nn.Module):
    def forward(self, x: Float[Tensor, "batch d"]):
        y: Float[Tensor, "d batch"] = x
        return y
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "shapely_pkg").mkdir()
    (tmp_path / "shapely_pkg" / "__init__.py").write_text("")
    (tmp_path / "shapely_pkg" / "net.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "shapely_pkg"
    for name in [name for name in sys.modules if name.startswith("shapely_pkg")]:
        del sys.modules[name]


def test_a_package_is_checked_by_the_import_hook(package: str) -> None:
    with check_package(package):
        net = importlib.import_module(f"{package}.net")
    message_of(lambda: net.double(torch.zeros(2, 3)))
    assert "local `y`" in message_of(lambda: net.Net()(torch.zeros(2, 3)))
    with pytest.raises(AlreadyImported, match="before its first import"):
        check_package(package)


def test_a_package_outside_the_hook_is_left_alone(package: str) -> None:
    with check_package("some_other_package"):
        net = importlib.import_module(f"{package}.net")
    net.double(torch.zeros(2, 3))


def run_pytest(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "shapely_mod.py").write_text(MODULE)
    (tmp_path / "test_it.py").write_text(
        "import shapely_mod, torch\ndef test_it():\n    shapely_mod.double(torch.zeros(2, 3))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "msalint.runtime.pytest_plugin", *options, str(tmp_path)]
    return subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


def test_the_pytest_option_turns_the_checks_on(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "--msalint-shapes=shapely_mod")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "ShapeError: double: the return value does not fit" in run.stdout
    assert run_pytest(tmp_path).returncode == 0


def test_the_pytest_plugin_alone_does_not_import_torch() -> None:
    code = "import sys, msalint.runtime.pytest_plugin; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
