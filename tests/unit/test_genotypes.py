"""Genotypes: made up, and read from PLINK and VCF files."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pytest

from edgegraft import GraftedMRF
from edgegraft.datasets import make_genotypes
from edgegraft.errors import DataError, EncodingWarning, FileFormatError
from edgegraft.ingest import pack
from edgegraft.ingest.rows import open_rows
from tests.cli.running import edgegraft as run_command

BITS = {2: 0, -1: 1, 1: 2, 0: 3}  # two bits of a number of copies
X = np.array([[0, 2, 0], [1, 0, 0], [2, -1, 0], [1, 2, 0], [0, 0, 0], [-1, 2, 0]])


def write_bed(folder, codes, ids):
    """Write a .bed file with its .bim and .fam, as the format is published."""
    n_rows, n = codes.shape
    padded = np.zeros((-(-n_rows // 4) * 4, n), np.uint8)
    padded[:n_rows] = np.vectorize(BITS.get)(codes)
    four = padded.T.reshape(n, -1, 4) << np.array([0, 2, 4, 6], np.uint8)
    path = folder / "cohort.bed"
    path.write_bytes(b"\x6c\x1b\x01" + four.sum(axis=2).astype(np.uint8).tobytes())
    lines = [f"1\t{name}\t0\t{100 + k}\tA\tG\n" for k, name in enumerate(ids)]
    path.with_suffix(".bim").write_text("".join(lines))
    path.with_suffix(".fam").write_text("".join(f"f{r} i{r} 0 0 1 -9\n" for r in range(n_rows)))
    return path


def write_vcf(path, lines, n_samples=3):
    samples = "\t".join(f"s{r}" for r in range(n_samples))
    text = (
        "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
        f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{samples}\n"
    ) + "".join("\t".join(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_bed_files_give_the_copies_of_the_first_allele(tmp_path):
    path = write_bed(tmp_path, X, ["rs1", "rs2", "rs3"])
    with pytest.warns(EncodingWarning, match="constant columns: 'rs3'"):
        table = pack(path)
    assert [v.categories for v in table.schema] == [(0, 1, 2), (0, 2), (0,)]
    np.testing.assert_array_equal(table.codes(), np.where(X == 2, [2, 1, 2], X))
    assert table.n_missing.tolist() == [1, 1, 0]
    again = pack(str(path), schema=table.schema)
    np.testing.assert_array_equal(again.codes(), table.codes())
    few = pack(path, columns=["rs2", "rs1"], drop=["rs1"], kinds="ordinal")
    assert few.schema.names == ("rs2",)
    assert few.schema["rs2"].kind == "ordinal"
    with pytest.raises(DataError, match="names column 'rs9', which the table lacks"):
        pack(path, drop=["rs9"])


def test_names_are_places_where_ids_are_not_unique(tmp_path):
    path = write_bed(tmp_path, X[:, :2], [".", "."])
    assert pack(path).schema.names == ("1:100:A:G", "1:101:A:G")
    path.with_suffix(".bim").write_text("1 a 0 5 A G\n1 a 0 5 A G\n")
    with pytest.raises(DataError, match=r"same id, position and alleles: '1:5:A:G'"):
        pack(path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-1]), "8 bytes, expected 9 for the 6 samples"),
        (lambda p: p.write_bytes(b"abc" + p.read_bytes()[3:]), "begins with 61 62 63"),
        (lambda p: p.write_bytes(b"\x6c\x1b\x00" + p.read_bytes()[3:]), "order of samples"),
        (lambda p: p.with_suffix(".bim").write_text("1 a 0\n"), "line 1: 3 fields, expected 6"),
    ],
)
def test_damaged_bed_files_are_refused(tmp_path, damage, message):
    path = write_bed(tmp_path, X, ["a", "b", "c"])
    damage(path)
    with pytest.raises(FileFormatError, match=message):
        pack(path)


def test_a_bed_file_needs_its_neighbours(tmp_path):
    path = write_bed(tmp_path, X, ["a", "b", "c"])
    path.with_suffix(".fam").unlink()
    with pytest.raises(FileNotFoundError, match=r"cohort\.fam.*samples"):
        pack(path)


@pytest.mark.skipif(sys.platform == "win32", reason="cyvcf2 has no wheels there")
@pytest.mark.parametrize("name", ["rows.vcf", "rows.vcf.gz"])
def test_vcf_files(tmp_path, name):
    row = "1", "10", "rs1", "A", "G", ".", ".", ".", "GT"
    lines = [
        (*row, "0/0", "0|1", "1/1"),
        (*row[:1], "11", ".", "A", "G,T", *row[5:], "1/2", "./.", "0/2"),
        (*row[:1], "12", "rs3", "A", "G", *row[5:], "0", "1", "./1"),
    ]
    table = pack(write_vcf(tmp_path / name, lines))
    assert table.schema.names == ("rs1", "1:11:A:G,T", "rs3")
    assert [v.categories for v in table.schema] == [(0, 1, 2), (1, 2), (0, 1)]
    np.testing.assert_array_equal(table.codes(), [[0, 1, 0], [1, -1, 1], [2, 0, -1]])


@pytest.mark.skipif(sys.platform == "win32", reason="cyvcf2 has no wheels there")
def test_what_is_not_vcf_is_refused(tmp_path, capfd):
    path = tmp_path / "rows.vcf"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileFormatError, match=r"rows\.vcf' cannot be read as VCF"):
        pack(path)


def test_blocks_of_genotypes_are_linked():
    data = make_genotypes(60, 1500, block_size=15, related=0.3, random_state=1)
    assert data.X.dtype == np.uint8
    assert set(np.unique(data.X)) == {0, 1, 2}
    np.testing.assert_allclose(data.X.mean(axis=0) / 2, data.carriers / 16, atol=0.06)
    assert (data.carriers <= 8).all()
    assert (data.carriers == 1).sum() > (data.carriers == 8).sum()  # rare alleles are common
    squared = np.corrcoef(data.X.T) ** 2
    same = data.block[:, None] == data.block
    np.fill_diagonal(same, False)
    apart = data.block[:, None] != data.block
    assert squared[same].mean() > 10 * squared[apart].mean()
    children = np.flatnonzero(data.parents[:, 0] >= 0)
    assert len(children) == 450
    assert (data.parents[children, 0] != data.parents[children, 1]).all()
    own, mother = data.X[children].astype(int), data.X[data.parents[children, 0]].astype(int)
    assert np.abs(own - mother).max() == 1  # a child shares a haplotype with each parent
    np.testing.assert_array_equal(
        make_genotypes(60, 1500, block_size=15, related=0.3, random_state=1).X, data.X
    )
    with pytest.raises(ValueError, match="related must lie between 0 and 1"):
        make_genotypes(3, related=2.0)


def test_networks_of_genotype_files(tmp_path):
    data = make_genotypes(16, 600, block_size=8, random_state=0)
    path = write_bed(tmp_path, data.X.astype(int), [f"v{k}" for k in range(16)])
    with open_rows(path) as opened:
        assert opened.rows.n_rows == 600
    model = GraftedMRF(random_state=0).fit(str(path))
    assert len(model.edges_)
    assert all(data.block[i] == data.block[j] for i, j in model.edges_)
    done = run_command("learn", str(path), "-o", str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
