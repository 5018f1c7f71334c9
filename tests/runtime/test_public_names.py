"""What `msalint.runtime` offers is what its names say, whatever was imported before."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

pytest.importorskip("torch")
pytest.importorskip("jaxtyping")

import msalint.runtime


def test_no_submodule_takes_the_place_of_a_public_name() -> None:
    modules = {found.name for found in pkgutil.iter_modules(msalint.runtime.__path__)}
    assert not modules & set(msalint.runtime.__all__)


@pytest.mark.parametrize("name", msalint.runtime.__all__)
def test_every_public_name_is_there(name: str) -> None:
    for found in pkgutil.iter_modules(msalint.runtime.__path__):
        if found.name != "pytest_plugin":
            importlib.import_module(f"msalint.runtime.{found.name}")
    assert callable(getattr(msalint.runtime, name))
    assert name in dir(msalint.runtime)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        msalint.runtime.nothing  # noqa: B018
