"""The drug-sensitivity data: the reduced files, and the originals' formats."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.experiments import fig3
from hubbub.experiments.gdsc import GENES, load_gdsc


def write_originals(folder: Path, rng: np.random.Generator) -> np.ndarray:
    """Small files of the originals' format: genes in rows, repeated columns, drugs by cell line."""
    lines = ["906826", "687983", "910927"]
    values = rng.uniform(2, 12, size=(len(GENES), 3))
    header = "\t".join(["GENE_SYMBOLS", "GENE_title", *(f"DATA.{line}" for line in lines), "DATA.906826.1"])
    rows = [
        f"{gene}\ttitle\t" + "\t".join(f"{v:.6f}" for v in [*row, row[0]])
        for gene, row in zip(GENES, values, strict=True)
    ]
    other = "TSPAN6\ttetraspanin 6\t1\t2\t3\t1"
    (folder / "Cell_line_RMA_proc_basalExp.txt").write_text("\n".join([header, other, *rows]) + "\n")
    (folder / "v17_fitted_dose_response.csv").write_text(
        "DATASET_VERSION,IC50_RESULTS_ID,COSMIC_ID,CELL_LINE_NAME,DRUG_ID,DRUG_NAME,LN_IC50,AUC\n"
        "17,1,906826,A,1001,x,1.5,0.9\n17,2,687983,B,1001,x,-0.5,0.9\n17,3,910927,C,1001,x,0.25,0.9\n"
        "17,4,906826,A,1003,y,2.0,0.9\n17,5,111111,Z,1003,y,9.0,0.9\n"
    )
    return values


def test_originals_are_read(tmp_path: Path, rng: np.random.Generator):
    values = write_originals(tmp_path, rng)
    data = load_gdsc(tmp_path)
    assert data.drugs == ("Drug_1001", "Drug_1003")
    order = [1, 0, 2]  # cell lines by id
    centred = values.T[order] - values.T[order].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(data.features, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_array_equal(data.responses, [[-0.5, np.nan], [1.5, 2.0], [0.25, np.nan]])


def test_rows_of_a_drug_are_the_measured_lines_with_a_centred_target(tmp_path: Path, rng: np.random.Generator):
    write_originals(tmp_path, rng)
    rows = load_gdsc(tmp_path).rows(0)
    assert rows.shape == (3, 11)
    assert rows[:, -1].sum() == pytest.approx(0.0)
    np.testing.assert_allclose(np.linalg.norm(rows[:, :-1], axis=1), 1.0)


def test_missing_files_and_genes_are_one_line(tmp_path: Path, rng: np.random.Generator):
    with pytest.raises(InvalidInput, match="data must be a folder with expression.csv.gz"):
        load_gdsc(tmp_path)
    write_originals(tmp_path, rng)
    path = tmp_path / "Cell_line_RMA_proc_basalExp.txt"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("KRAS")))
    with pytest.raises(InvalidInput, match="data must have the expression of JAK2, .*got none of KRAS"):
        load_gdsc(tmp_path)
    path.write_text("nothing\n")
    with pytest.raises(InvalidInput, match="data must hold GENE_SYMBOLS"):
        load_gdsc(tmp_path)


@pytest.mark.parametrize("damage", ["not gzip", "no id", "text"])
def test_damaged_reduced_files_are_one_line(tmp_path: Path, damage: str):
    header, row = ",".join(["COSMIC_ID", *GENES]), ",".join(["1", *["2"] * 10])
    if damage == "no id":
        header = header.replace("COSMIC_ID", "ID")
    if damage == "text":
        row = row.replace("2", "NA", 1)
    content = f"{header}\n{row}\n".encode()
    (tmp_path / "expression.csv.gz").write_bytes(content if damage == "not gzip" else gzip.compress(content))
    (tmp_path / "ln_ic50.csv.gz").write_bytes(gzip.compress(b"COSMIC_ID,Drug_1\n1,0.5\n"))
    with pytest.raises(InvalidInput, match="data must be readable expression and response files, got data=") as caught:
        load_gdsc(tmp_path)
    assert "\n" not in str(caught.value)


def test_drug_with_too_few_cell_lines_is_named(tmp_path: Path, rng: np.random.Generator):
    write_originals(tmp_path, rng)
    with pytest.raises(
        InvalidInput, match="data must have at least 150 cell lines for every drug, got 1 for Drug_1003"
    ):
        fig3.cells("sound", 0, 1, tmp_path)


def test_reduced_files_are_read(gdsc_folder: Path):
    data = load_gdsc(gdsc_folder)
    assert data.features.shape == (954, 10)
    assert data.responses.shape == (954, 265)
    np.testing.assert_allclose(np.linalg.norm(data.features, axis=1), 1.0)
    assert 0.15 < np.isnan(data.responses).mean() < 0.2
