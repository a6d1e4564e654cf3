"""The public tables: read where they are, proved, and explained where they are not."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from tessella.datasets import data_folders, load_census, load_eia, load_tarragona, public
from tessella.exceptions import BadTableError, DataNotFoundError

ROWS = [["NAME", "A", "B"], ["Light, Power & Co", "100000", "-3"], ["x", "2", "0.5"]]


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A small file in the place of Tarragona, so that these tests need no public table."""
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path))
    file = public.PublicFile(
        name="tarragona.csv", thing="Tarragona", about="2 records", sha256=public.fingerprint(ROWS)
    )
    monkeypatch.setattr(public, "TARRAGONA", file)
    return tmp_path / "tarragona.csv"


def write(path: Path, **how: object) -> None:
    with path.open("w", newline="") as stream:
        csv.writer(stream, **how).writerows(ROWS)


@pytest.mark.parametrize(
    "how",
    [
        {"lineterminator": "\n"},
        {"lineterminator": "\r\n"},
        {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"},
    ],
)
def test_the_same_table_is_recognised_however_it_was_written(made_up, how):
    write(made_up, **how)
    table = load_tarragona()
    assert list(table.columns) == ["NAME", "A", "B"]
    assert table["A"].tolist() == [100000, 2]
    assert table["B"].tolist() == [-3, 0.5]
    assert table["NAME"][0] == "Light, Power & Co"


def test_numbers_as_r_writes_them_are_recognised(made_up):
    made_up.write_text('"NAME","A","B"\n"Light, Power & Co",1e+05,-3\n"x",2,0.5\n')
    assert load_tarragona()["A"].tolist() == [100000, 2]


@pytest.mark.parametrize("text", ["", "NAME,A,B\n", "NAME,A,B\nx,2,0.5\n", "\x00\xff"])
def test_another_table_under_the_name_is_refused(made_up, text):
    made_up.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadTableError, match="is not the public table Tarragona") as error:
        load_tarragona()
    assert public.fingerprint(ROWS) in str(error.value)
    assert "sdcMicro" in str(error.value)


def test_one_changed_digit_is_noticed(made_up):
    write(made_up)
    made_up.write_text(made_up.read_text().replace("100000", "100001"))
    with pytest.raises(BadTableError, match="SHA-256"):
        load_tarragona()


@pytest.mark.parametrize("load", [load_tarragona, load_census, load_eia])
def test_a_missing_table_is_explained(tmp_path, monkeypatch, load):
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(DataNotFoundError) as error:
        load()
    text = str(error.value)
    for part in (str(tmp_path / "data"), ".rda", "sdcTools/sdcMicro", "write.csv", "SHA-256"):
        assert part in text
    assert isinstance(error.value, FileNotFoundError)


def test_folders_are_those_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "roaming"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for platform, user in [
        ("linux", tmp_path / "xdg"),
        ("win32", tmp_path / "roaming"),
        ("darwin", tmp_path / "Library" / "Application Support"),
    ]:
        monkeypatch.setattr(sys, "platform", platform)
        assert data_folders() == [tmp_path / "own", user / "tessella"]
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("TESSELLA_DATA")
    assert data_folders() == [tmp_path / ".local" / "share" / "tessella"]


def test_the_users_folder_is_searched_after_tessella_data(made_up, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    (tmp_path / "xdg" / "tessella").mkdir(parents=True)
    write(tmp_path / "xdg" / "tessella" / "tarragona.csv")
    assert len(load_tarragona()) == 2  # TESSELLA_DATA has no such file
    made_up.write_text("another")
    with pytest.raises(BadTableError):
        load_tarragona()


def test_a_plain_file_has_its_own_sha256():
    """What the error message names can be checked with sha256sum."""
    import hashlib

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(ROWS)
    assert public.fingerprint(ROWS) == hashlib.sha256(text.getvalue().encode()).hexdigest()


def test_the_real_tables_have_the_literatures_shapes(tarragona, census, eia):
    assert (tarragona.shape, census.shape, eia.shape) == ((834, 13), (1080, 13), (4092, 11))


def test_census_obeys_its_rules(census):
    table = load_census()
    assert (table["PTOTVAL"] == table["PEARNVAL"] + table["POTHVAL"]).all()
    assert (table["FEDTAX"] <= table["TAXINC"]).all()
    assert (table["TAXINC"] <= table["AGI"]).all()
    assert (census > 0).all()


def test_eia_has_its_names_and_almost_obeys_its_rules(eia):
    table = load_eia(literature=False)
    assert table.shape == (4092, 15)
    assert list(load_eia().columns) == [
        name for name in table if name not in ("UTILNAME", "STATE", "YEAR", "MONTH")
    ]
    parts = table[["RESREVENUE", "COMREVENUE", "INDREVENUE", "OTHREVENUE"]].sum(axis=1)
    assert (parts == table["TOTREVENUE"]).mean() == pytest.approx(0.939, abs=0.001)
