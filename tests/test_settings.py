"""Settings: the closest file wins, unknown keys and wrong types are errors that help."""

from __future__ import annotations

from pathlib import Path

import pytest

from msalint.settings import DEFAULT_EXCLUDE, Selection, Settings, SettingsError, SettingsFinder, load, position_of


def toml(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def loaded(tmp_path: Path, body: str) -> Settings:
    settings = load(toml(tmp_path / "pyproject.toml", "[tool.msalint]\n" + body))
    assert settings is not None
    return settings


def complaint(tmp_path: Path, body: str) -> str:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, body)
    return str(caught.value)


def test_every_key_is_read(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        select = ["MSA1", "error"]
        extend-select = ["note"]
        ignore = ["MSA101"]
        exclude = ["third_party"]
        extend-exclude = ["old/*.py"]
        target-torch = "2.4"
        [tool.msalint.per-file-ignores]
        "tests/*" = ["MSA401"]
        """,
    )
    assert settings.selections == (Selection(("MSA1", "error"), ("note",), ("MSA101",)),)
    assert settings.exclude == ("third_party", "old/*.py")
    assert settings.target_torch == "2.4"
    assert settings.per_file_ignores == (("tests/*", ("MSA401",)),)
    assert settings.root == str(tmp_path)


def test_extend_exclude_keeps_the_defaults(tmp_path: Path) -> None:
    assert set(loaded(tmp_path, 'extend-exclude = ["old"]').exclude) == {*DEFAULT_EXCLUDE, "old"}


@pytest.mark.parametrize(
    ("key", "meant"), [("selct", "select"), ("extend_select", "extend-select"), ("per-file-ignore", "per-file-ignores")]
)
def test_an_unknown_key_is_told_with_what_was_meant(tmp_path: Path, key: str, meant: str) -> None:
    message = complaint(tmp_path, f'{key} = ["MSA1"]')
    assert message == f"{tmp_path}/pyproject.toml: unknown key `{key}`, did you mean `{meant}`?"


def test_an_unknown_key_close_to_nothing_is_told_plainly(tmp_path: Path) -> None:
    assert complaint(tmp_path, "verbosity = 3").endswith("unknown key `verbosity`")


@pytest.mark.parametrize(
    "body",
    [
        'select = "MSA1"',
        "ignore = [1]",
        "exclude = 3",
        'select = [""]',
        "target-torch = 2.4",
        'target-torch = "new"',
        'per-file-ignores = ["MSA1"]',
        'per-file-ignores = { "a.py" = "MSA1" }',
        "select = [",
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_naming_the_file(tmp_path: Path, body: str) -> None:
    assert str(tmp_path / "pyproject.toml") in complaint(tmp_path, body)


def test_a_table_of_another_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="must be a table"):
        load(toml(tmp_path / "pyproject.toml", "[tool]\nmsalint = 3\n"))


def test_the_closest_file_wins(tmp_path: Path) -> None:
    toml(tmp_path / "pyproject.toml", '[tool.msalint]\nignore = ["MSA1"]\n')
    toml(tmp_path / "a" / "msalint.toml", 'ignore = ["MSA2"]\n')
    (tmp_path / "a" / "b").mkdir()
    finder = SettingsFinder()
    assert finder.for_folder(tmp_path / "a" / "b").selections[0].ignore == ("MSA2",)
    assert finder.for_folder(tmp_path / "a").selections[0].ignore == ("MSA2",)
    assert finder.for_folder(tmp_path).selections[0].ignore == ("MSA1",)


def test_msalint_toml_wins_over_pyproject_of_the_same_folder(tmp_path: Path) -> None:
    toml(tmp_path / "pyproject.toml", '[tool.msalint]\nignore = ["MSA1"]\n')
    toml(tmp_path / "msalint.toml", 'ignore = ["MSA2"]\n')
    assert SettingsFinder().for_folder(tmp_path).selections[0].ignore == ("MSA2",)


def test_a_pyproject_without_our_table_is_passed_over(tmp_path: Path) -> None:
    toml(tmp_path / "msalint.toml", 'ignore = ["MSA2"]\n')
    toml(tmp_path / "a" / "pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    assert SettingsFinder().for_folder(tmp_path / "a").root == str(tmp_path)


def test_without_any_file_the_defaults_hold(tmp_path: Path) -> None:
    settings = SettingsFinder().for_folder(tmp_path)
    assert settings.file is None and settings.selections == ()


def test_the_place_of_an_entry_is_found(tmp_path: Path) -> None:
    path = toml(tmp_path / "msalint.toml", 'select = [\n  "MSA1",\n  "MSA77",\n]\n')
    assert position_of(str(path), "MSA77") == (3, 3)
    assert position_of(str(path), "MSA88") == (1, 1)
