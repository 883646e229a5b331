"""Drug sensitivity of cancer cell lines (GDSC): the data of the paper's third experiment.

Two kinds of folder are understood: the reduced files `expression.csv.gz` and `ln_ic50.csv.gz` (COSMIC_ID
and a column per gene or drug), or the originals of cancerrxgene.org: the RMA-processed expression
(`*RMA*.txt`, genes in rows, `DATA.<COSMIC_ID>` in columns) and the fitted dose response
(`*fitted_dose_response*.csv`, a row per drug and cell line).
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput

GENES = ("JAK2", "BRAF", "KRAS", "TP53", "EGFR", "FLT3", "PIK3CA", "IDH1", "KIT", "CTNNB1")
"""The ten genes most often mutated in cancer: the paper's features."""


@dataclass(frozen=True)
class DrugData:
    """Unit-length expression rows, and ln(IC50) per drug with NaN where it was not measured."""

    features: Floats
    responses: Floats
    drugs: tuple[str, ...]

    def rows(self, drug: int) -> Floats:
        """(n, 11): the cell lines measured for a drug, the target centred.

        Centring is part of the paper's set-up (it assumes centred data), not of the private method.
        """
        measured = np.isfinite(self.responses[:, drug])
        target = self.responses[measured, drug]
        return np.column_stack([self.features[measured], target - target.mean()])


def load_gdsc(folder: Path) -> DrugData:
    """Read either kind of folder, or say in one line what is wrong with it."""
    try:
        return _load(folder)
    except InvalidInput:
        raise
    except (ValueError, KeyError, TypeError, EOFError, OSError, csv.Error) as error:
        raise InvalidInput(
            f"data must be readable expression and response files, got data={folder}: {type(error).__name__} {error}; "
            "unpack archives, and compare with the files of cancerrxgene.org"
        ) from None


def _load(folder: Path) -> DrugData:
    """Cell lines present in both files, in the order of their ids."""
    reduced = folder / "expression.csv.gz", folder / "ln_ic50.csv.gz"
    if all(path.is_file() for path in reduced):
        expression, response = _wide(reduced[0]), _wide(reduced[1])
    else:
        rma, fitted = _find(folder, "*RMA*.txt"), _find(folder, "*fitted_dose_response*.csv")
        expression, response = _original_expression(rma), _original_response(fitted)
    for line, genes in expression.items():
        missing = [gene for gene in GENES if gene not in genes]
        if missing:
            raise InvalidInput(
                f"data must have the expression of {', '.join(GENES)}, got none of {missing[0]} for {line} in {folder}"
            )
    lines = sorted(set(expression) & set(response))
    if not lines:
        raise InvalidInput(f"data must have cell lines in common, got none in data={folder}; check the two files")
    drugs = tuple(sorted({drug for line in lines for drug in response[line]}))
    X = np.array([[expression[line][gene] for gene in GENES] for line in lines])
    Y = np.array([[response[line].get(drug, np.nan) for drug in drugs] for line in lines])
    return DrugData(unit_rows(X), Y, drugs)


def unit_rows(X: Floats) -> Floats:
    """Each row centred and scaled to length one: something a client can do alone."""
    centred = X - X.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True))


Table = dict[str, dict[str, float]]


def _wide(path: Path) -> Table:
    """COSMIC_ID, then a column per gene or drug; empty cells are left out."""
    with _text(path) as file:
        return {row.pop("COSMIC_ID"): _numbers(row) for row in csv.DictReader(file)}


def _original_expression(path: Path) -> Table:
    """GENE_SYMBOLS, GENE_title, then a column DATA.<COSMIC_ID> per cell line; genes in rows."""
    table: Table = {}
    with _text(path) as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row.get("GENE_SYMBOLS") in GENES:
                for column, value in row.items():
                    if column and column.startswith("DATA.") and value:
                        line = column.removeprefix("DATA.").split(".")[0]  # repeated columns end in .1
                        table.setdefault(line, {})[row["GENE_SYMBOLS"]] = float(value)
    if not table:
        raise InvalidInput(f"data must hold GENE_SYMBOLS and DATA.<id> columns, got none in {path}; check the file")
    return table


def _original_response(path: Path) -> Table:
    """A row per drug and cell line, with COSMIC_ID, DRUG_ID and LN_IC50."""
    table: Table = {}
    with _text(path) as file:
        for row in csv.DictReader(file):
            if row.get("LN_IC50"):
                table.setdefault(row["COSMIC_ID"], {})[f"Drug_{row['DRUG_ID']}"] = float(row["LN_IC50"])
    if not table:
        raise InvalidInput(f"data must hold COSMIC_ID, DRUG_ID and LN_IC50 columns, got none in {path}; check the file")
    return table


def _numbers(row: Mapping[str, str]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if value not in ("", None)}


def _find(folder: Path, pattern: str) -> Path:
    found = [*folder.glob(pattern), *folder.glob(f"{pattern}.gz")] if folder.is_dir() else []
    if not found:
        raise InvalidInput(
            f"data must be a folder with expression.csv.gz and ln_ic50.csv.gz, or with the originals "
            f"(RMA expression as .txt, fitted dose response as .csv) from cancerrxgene.org, got data={folder}"
        )
    return found[0]


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as file:
        yield file
