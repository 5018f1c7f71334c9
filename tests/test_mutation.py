"""Code that nobody would write goes through too: clean modules with statements moved, dropped and names mixed up."""

from __future__ import annotations

import ast
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msalint.check import lint_source

MUTANTS = 4
"""Mutants of one module; each is mutated further than the one before."""
LONG = 10.0
"""Seconds of processor time that no mutant may take."""

CLEAN = sorted((Path(__file__).resolve().parents[1] / "fixtures" / "clean").glob("[!p]*.py"))

Mutation = Callable[[ast.Module, random.Random], None]


def _bodies(tree: ast.Module) -> list[list[ast.stmt]]:
    """The statement lists inside definitions that have something to lose."""
    found = []
    for node in list(ast.walk(tree))[1:]:
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list) and len(body) > 1:
                found.append(body)
    return found


def shuffled(tree: ast.Module, draw: random.Random) -> None:
    """The statements of two bodies in another order."""
    for body in draw.sample(bodies := _bodies(tree), min(2, len(bodies))):
        draw.shuffle(body)


def dropped(tree: ast.Module, draw: random.Random) -> None:
    """One statement gone."""
    for body in draw.sample(bodies := _bodies(tree), min(1, len(bodies))):
        body.pop(draw.randrange(len(body)))


def repeated(tree: ast.Module, draw: random.Random) -> None:
    """One statement twice."""
    for body in draw.sample(bodies := _bodies(tree), min(1, len(bodies))):
        body.append(draw.choice(body))


def moved(tree: ast.Module, draw: random.Random) -> None:
    """A statement of one body in another: a forward's line in `__init__`, a method in a loop."""
    bodies = _bodies(tree)
    if len(bodies) > 1:
        source, target = draw.sample(bodies, 2)
        statement = draw.choice(source)
        if not any(
            target in (getattr(part, "body", None), getattr(part, "orelse", None)) for part in ast.walk(statement)
        ):
            target.insert(draw.randrange(len(target)), statement)


def renamed(tree: ast.Module, draw: random.Random) -> None:
    """One use of a name is another name's."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if names:
        draw.choice(names).id = draw.choice(names).id


def attributes_renamed(tree: ast.Module, draw: random.Random) -> None:
    """One attribute or method is another one: `x.softmax` for `x.view`."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    if attributes:
        draw.choice(attributes).attr = draw.choice(attributes).attr


def arguments_mixed(tree: ast.Module, draw: random.Random) -> None:
    """The arguments of one call in another order, or one too few."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    if calls:
        call = draw.choice(calls)
        draw.shuffle(call.args)
        if draw.random() < 0.5:
            call.args.pop()


def numbers_changed(tree: ast.Module, draw: random.Random) -> None:
    """One number is another: 0, a negative one, a huge one, a fraction."""
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) in (int, float)]
    if numbers:
        draw.choice(numbers).value = draw.choice([0, 1, -1, -7, 2**70, 0.5, float("1e308")])


MUTATIONS: tuple[Mutation, ...] = (
    shuffled,
    dropped,
    repeated,
    moved,
    renamed,
    attributes_renamed,
    arguments_mixed,
    numbers_changed,
)


def mutants(text: str, draw: random.Random, number: int) -> list[str]:
    """Modules that compile, each a few mutations further from `text` than the one before."""
    tree = ast.parse(text)
    made = []
    for _ in range(number):
        for _ in range(draw.randint(2, 6)):
            draw.choice(MUTATIONS)(tree, draw)
        made.append(ast.unparse(ast.fix_missing_locations(tree)))
    return [one for one in made if _parses(one)]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_mutants_go_through(path: Path) -> None:
    draw = random.Random(path.stem)
    made = mutants(path.read_text(encoding="utf-8"), draw, MUTANTS)
    assert made, "no mutant parses"
    for text in made:
        started = time.process_time()
        try:
            lint_source(text, path.name)
        except Exception as error:
            pytest.fail(f"{error}\n{getattr(error, 'detail', '')}\n{text}")
        spent = time.process_time() - started
        assert spent < LONG, f"{spent:.1f} s for\n{text}"
