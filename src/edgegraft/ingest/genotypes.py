"""Genotypes: PLINK ``.bed`` files (with ``.bim`` and ``.fam``), and VCF or BCF files.

A column is a variant, a row a sample, and a cell the number of copies of an allele: of the first
allele of the ``.bim`` file, or of all alternative alleles of a VCF file. Variants have the states
that occur. Codes come straight from the two bits of a ``.bed`` file, which is mapped, some variants
at a time; a VCF file is read by cyvcf2 (the extra ``genotypes``).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edgegraft.core.atomic import suffix_of
from edgegraft.core.types import Integers
from edgegraft.errors import DataError, EncodingWarning, FileFormatError, import_extra, listing
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import TableSource, explained
from edgegraft.table import PackedTable, Schema, Variable
from edgegraft.table.arrow import decode_table
from edgegraft.table.packed import Cells, empty_cells
from edgegraft.table.schema import Kind

SUFFIXES = (".bed", ".vcf", ".bcf")

_MAGIC, _BY_SAMPLE = b"\x6c\x1b\x01", b"\x6c\x1b\x00"
_COPIES = np.array([2, 3, 1, 0], np.uint8)  # of the two bits; 3 is a missing cell
_OF_BYTE = _COPIES[(np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3]
_BLOCK_CELLS = 1 << 24  # decoded at a time
_MISSING = 3


def is_genotypes(path: object) -> bool:
    """Return whether a path is that of a file of genotypes.

    >>> is_genotypes("cohort.bed"), is_genotypes("cohort.vcf.gz"), is_genotypes("cohort.csv")
    (True, True, False)
    """
    return isinstance(path, str | Path) and suffix_of(Path(path)) in SUFFIXES


def genotype_source(path: Path, options: ReadOptions) -> TableSource:
    """Return the genotypes of a file as labels, for what needs single columns or a schema."""
    table = _read(path, replace(options, columns=None, drop=None))
    names = list(table.schema.names)

    def convert(columns: list[str]) -> object:
        chosen = [table.schema.index(name) for name in columns]
        return decode_table(Schema(table.schema[i] for i in chosen), table.codes(chosen))

    source = TableSource(names, convert, options.batch_rows)
    source.where = f"'{path}'"
    source.select(names)
    return source


def read_genotypes(path: Path, options: ReadOptions, *, stacklevel: int = 2) -> PackedTable:
    """Return the genotypes of a file; those of variants that `options` leave out are not decoded.

    Of other options only kinds count: genotypes are nominal unless asked to be ordinal.
    """
    table = _read(path, options)
    constant = [table.schema.names[i] for i in np.flatnonzero(table.schema.n_states == 1)]
    if constant:
        warnings.warn(
            EncodingWarning(
                f"{len(constant):,} of the {table.n_variables:,} variants of '{path}' have one "
                f"genotype only and tell nothing: {listing(constant, 3)}"
            ),
            stacklevel=stacklevel,
        )
    return table


def _read(path: Path, options: ReadOptions) -> PackedTable:
    if not path.exists():
        raise FileNotFoundError(f"there is no file '{path}'")
    if suffix_of(path) == ".bed":
        return _read_bed(path, options)
    return _read_vcf(path, options)


def _read_bed(path: Path, options: ReadOptions) -> PackedTable:
    fam, bim = path.with_suffix(".fam"), path.with_suffix(".bim")
    for beside, what in ((fam, "samples"), (bim, "variants")):
        if not beside.exists():
            raise FileNotFoundError(f"'{path}' needs the file '{beside}', which names its {what}")
    with fam.open() as file:
        n_rows = sum(1 for line in file if line.strip())
    names = _names_of(bim)
    if not n_rows or not names:
        raise DataError(f"'{path}' has {n_rows} samples and {len(names)} variants")
    each = -(-n_rows // 4)
    size, expected = path.stat().st_size, 3 + each * len(names)
    with path.open("rb") as beginning:
        start = beginning.read(3)
    if start == _BY_SAMPLE:
        raise FileFormatError(
            f"'{path}' is in the old order of samples: write it again with `plink --make-bed`"
        )
    if start != _MAGIC:
        raise FileFormatError(
            f"'{path}' is not a PLINK .bed file: it begins with {start.hex(' ')}, expected 6c 1b 01"
        )
    if size != expected:
        raise FileFormatError(
            f"'{path}' has {size:,} bytes, expected {expected:,} for the {n_rows:,} samples of "
            f"'{fam.name}' and the {len(names):,} variants of '{bim.name}': a file is truncated, "
            "or they do not belong together"
        )
    packed = np.memmap(path, np.uint8, "r", 3, (len(names), each))
    chosen = _chosen(names, options)

    def blocks() -> Iterator[Cells]:
        at_once = max(1, _BLOCK_CELLS // n_rows)
        for first in range(0, len(chosen), at_once):
            part = packed[chosen[first : first + at_once]]
            yield _OF_BYTE[part].reshape(len(part), -1)[:, :n_rows]

    return _assemble([names[i] for i in chosen], blocks(), n_rows, options)


def _names_of(bim: Path) -> list[str]:
    """Return the names of variants: their ids, or place and alleles if these are not unique."""
    found, places = [], []
    with bim.open() as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) < 6:
                raise FileFormatError(
                    f"'{bim}', line {number}: {len(parts)} fields, expected 6 (chromosome, id, "
                    "position in morgans, position, two alleles)"
                )
            found.append(parts[1])
            places.append(":".join((parts[0], *parts[3:6])))
    return _unique(found, places, bim)


def _unique(ids: Sequence[str], places: Sequence[str], path: Path) -> list[str]:
    seen = Counter(ids)
    names = [
        place if name in (".", "0") or seen[name] > 1 else name
        for name, place in zip(ids, places, strict=True)
    ]
    again = [name for name, count in Counter(names).items() if count > 1]
    if again:
        raise DataError(
            f"'{path}' has variants of the same id, position and alleles: {listing(again, 3)}; "
            "remove the copies, for instance with `plink2 --rm-dup`"
        )
    return names


def _read_vcf(path: Path, options: ReadOptions) -> PackedTable:
    cyvcf2 = import_extra("cyvcf2", "genotypes", f"reading '{path}'")
    ids, places, columns = [], [], []
    with explained(path, "VCF"):
        with_samples = cyvcf2.VCF(str(path))
        n_rows = len(with_samples.samples)
        for variant in with_samples:
            places.append(
                f"{variant.CHROM}:{variant.POS}:{variant.REF}:{','.join(variant.ALT) or '.'}"
            )
            if "GT" not in variant.FORMAT:
                raise DataError(f"'{path}': variant {places[-1]} has no genotypes (GT)")
            ids.append(variant.ID or ".")
            columns.append(_copies(variant.genotype.array()))
    if not n_rows or not columns:
        raise DataError(f"'{path}' has {n_rows} samples and {len(columns)} variants")
    names = _unique(ids, places, path)
    chosen = _chosen(names, options)
    blocks = (columns[i][None] for i in chosen)
    return _assemble([names[i] for i in chosen], blocks, n_rows, options)


def _copies(alleles: Integers) -> Cells:
    """Return the alternative alleles of each sample: -1 is a missing one, -2 no allele at all."""
    called = alleles[:, :-1]  # the last column is the phase
    copies = (called > 0).sum(axis=1)
    unknown = (called == -1).any(axis=1) | (called == -2).all(axis=1) | (copies >= _MISSING)
    return np.where(unknown, _MISSING, copies).astype(np.uint8)


def _chosen(names: list[str], options: ReadOptions) -> Integers:
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[name] for name in options.choose(names)], np.int64)


def _assemble(
    names: list[str], blocks: Iterator[Cells], n_rows: int, options: ReadOptions
) -> PackedTable:
    """Return the table of variants, each with the numbers of copies that occur as its states."""
    room = Schema.from_states(np.full(len(names), 3), names)
    cells = empty_cells(room, n_rows)
    occurring = np.empty(len(names), np.int64)  # bit k: somebody has k copies
    first = 0
    for block in blocks:
        own = slice(first, first + len(block))
        bits = sum(((block == k).any(axis=1).astype(np.int64) << k) for k in range(3))
        occurring[own] = bits
        cells[own, :n_rows] = np.take_along_axis(_CODES[bits], block, axis=1)
        first += len(block)
    kinds: list[Kind] = [options.kind_for(name) or "nominal" for name in names]
    schema = Schema(
        Variable(
            name, _STATES[bits], ordered=kind != "nominal", kind=kind, reason="copies of an allele"
        )
        for name, bits, kind in zip(names, occurring.tolist(), kinds, strict=True)
    )
    return PackedTable(schema, cells, n_rows)


#: Of each set of numbers of copies (bit k: k copies occur), the states and the codes of numbers.
_STATES = [tuple(k for k in range(3) if bits >> k & 1) or (0,) for bits in range(8)]
_CODES = np.array(
    [
        [states.index(k) if k in states else len(states) for k in range(3)] + [len(states)]
        for states in _STATES
    ],
    np.uint8,
)
