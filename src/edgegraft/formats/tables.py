"""Readers of tables of other programs: spreadsheets, SPSS files and genotypes.

Genotypes are PLINK ``.bed`` files (with ``.bim`` and ``.fam``), and VCF or BCF files. A column is a
variant, a row a sample, and a cell the number of copies of an allele: of the first allele of the
``.bim`` file, or of all alternative alleles of a VCF file. Variants have the states that occur.
Codes come straight from the two bits of a ``.bed`` file, which is mapped, some variants at a time.
Genotypes are nominal unless they are asked to be ordinal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgegraft.core.types import Integers
from edgegraft.errors import DataError, FileFormatError, import_extra, listing
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, check_names, explained
from edgegraft.table import PackedTable, Schema, Variable
from edgegraft.table.packed import Cells, empty_cells
from edgegraft.table.schema import Kind


def read_xlsx(path: Path, options: ReadOptions) -> pa.Table:
    """Return the first sheet of a spreadsheet."""
    openpyxl = import_extra("openpyxl", "files", "reading .xlsx")
    with explained(path, ".xlsx"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            grid = np.array(list(book.worksheets[0].iter_rows(values_only=True)), object)
        finally:
            book.close()
    blank = np.vectorize(lambda cell: cell is None or cell == "", otypes=[bool])
    grid = grid[~blank(grid).all(axis=1)] if grid.size else grid
    if not grid.size:
        raise DataError(f"the first sheet of '{path}' is empty")
    columns = [k for k in range(grid.shape[1]) if not blank(grid[:, k]).all()]
    names = [str("" if grid[0, k] is None else grid[0, k]).strip() for k in columns]
    names = [name or f"column_{k + 1}" for name, k in zip(names, columns, strict=True)]
    check_names(names, f"the header of '{path}'")
    typed = [_typed([None if cell == "" else cell for cell in grid[1:, k]]) for k in columns]
    return pa.table(typed, names=names)


def _typed(cells: list[Any]) -> Any:
    """Return cells as one type: numbers, booleans or dates if all are, otherwise text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        return _numbers(np.array([np.nan if cell is None else cell for cell in cells], np.float64))
    if len(kinds) > 1:
        cells = [None if cell is None else str(cell) for cell in cells]
    return pa.array(cells)


def _numbers(values: Any) -> Any:
    """Return numbers as integers if all are whole; NaN is missing."""
    gaps = np.isnan(values)
    if (gaps | (values == np.round(values))).all() and (np.abs(values[~gaps]) < 2**53).all():
        values = np.where(gaps, 0, values).astype(np.int64)
    return pa.array(values, mask=gaps)


def read_sav(path: Path, options: ReadOptions) -> pa.Table:
    """Return a file of SPSS, its value labels as categories."""
    pyreadstat = import_extra("pyreadstat", "files", "reading .sav")
    with explained(path, ".sav"):
        # What the author declared missing comes as it is, with the ranges that say so.
        cells, about = pyreadstat.read_sav(str(path), output_format="dict", user_missing=True)
    columns = {}
    for name, values in cells.items():
        gaps, labels = about.missing_ranges.get(name, ()), about.variable_value_labels.get(name, {})
        known = [None if _within(value, gaps) else value for value in list(values)]
        labels = {value: text for value, text in labels.items() if not _within(value, gaps)}
        columns[name] = _labelled(known, labels, about.variable_measure.get(name) == "ordinal")
    return pa.table(columns)


def _within(value: Any, gaps: Sequence[Mapping[str, Any]]) -> bool:
    return value is not None and any(gap["lo"] <= value <= gap["hi"] for gap in gaps)


def _labelled(values: Any, labels: Mapping[Any, str], ordered: bool) -> Any:
    """Return a column under its value labels, in the order of the values, if all have one."""
    cells = np.asarray(values, object).tolist()
    if not all(cell is None or isinstance(cell, int | float) for cell in cells):
        return pa.array([cell if cell != "" else None for cell in cells])
    array = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    gaps = np.isnan(array)
    known = sorted(labels)
    texts = [labels[value] for value in known]
    if not set(array[~gaps].tolist()) <= set(known) or len(set(texts)) < len(texts):
        return _numbers(array)
    codes = np.searchsorted(np.array(known, np.float64), np.where(gaps, 0.0, array))
    indices = pa.array(codes.astype(np.int32), mask=gaps)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts), ordered=ordered)


_MAGIC, _BY_SAMPLE = b"\x6c\x1b\x01", b"\x6c\x1b\x00"
_COPIES = np.array([2, 3, 1, 0], np.uint8)  # of the two bits; 3 is a missing cell
_OF_BYTE = _COPIES[(np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3]
_BLOCK_CELLS = 1 << 24  # decoded at a time
_MISSING = 3
_REASON = "copies of an allele"

#: Makes blocks of the copies of some variants, by their numbers; a block has variants as rows.
Blocks = Callable[[Integers], Iterator[Cells]]


class GenotypeSource(Source):
    """The variants of a file; those that are not asked for are not decoded."""

    def __init__(
        self, path: Path, names: list[str], n_rows: int, blocks: Blocks, options: ReadOptions
    ) -> None:
        if not n_rows or not names:
            raise DataError(f"'{path}' has {n_rows} samples and {len(names)} variants")
        self.where, self.names = f"'{path}'", names
        self.fields = pa.schema([(name, pa.int64()) for name in names])
        self._place = {name: i for i, name in enumerate(names)}
        self._n_rows, self._blocks, self._options = n_rows, blocks, options

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given variants as numbers of copies."""
        table = self._assemble(columns)
        yield from table.schema.decode(table.codes()).to_batches(self._options.batch_rows)

    def packed(self, options: ReadOptions, findings: Findings) -> PackedTable:
        """Return the variants that the options choose."""
        table = self._assemble(options.choose(self.names))
        constant = np.flatnonzero(table.schema.n_states == 1)
        findings.constant += [table.schema.names[i] for i in constant]
        return table

    def _assemble(self, names: Sequence[str]) -> PackedTable:
        """Return variants, each with the numbers of copies that occur as its states."""
        n_rows, kind_for = self._n_rows, self._options.kind_for
        room = Schema.from_states(np.full(len(names), 3), names)
        cells = empty_cells(room, n_rows)
        occurring = np.empty(len(names), np.int64)  # bit k: somebody has k copies
        first = 0
        for block in self._blocks(np.array([self._place[name] for name in names], np.int64)):
            own = slice(first, first + len(block))
            bits = sum(((block == k).any(axis=1).astype(np.int64) << k) for k in range(3))
            occurring[own] = bits
            cells[own, :n_rows] = np.take_along_axis(_CODES[bits], block, axis=1)
            first += len(block)
        kinds: list[Kind] = [kind_for(name) or "nominal" for name in names]
        schema = Schema(
            Variable(
                name,
                _STATES[bits],
                ordered=kind != "nominal",
                kind=kind,
                reason="copies of an allele",
            )
            for name, bits, kind in zip(names, occurring.tolist(), kinds, strict=True)
        )
        return PackedTable(schema, cells, n_rows)


def read_bed(path: Path, options: ReadOptions) -> GenotypeSource:
    """Open a PLINK file, which has its two bits per cell variant by variant."""
    fam, bim = path.with_suffix(".fam"), path.with_suffix(".bim")
    for beside, what in ((fam, "samples"), (bim, "variants")):
        if not beside.exists():
            raise FileNotFoundError(f"'{path}' needs the file '{beside}', which names its {what}")
    with fam.open() as file:
        n_rows = sum(1 for line in file if line.strip())
    names = _names_of(bim)
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

    def blocks(chosen: Integers) -> Iterator[Cells]:
        packed = np.memmap(path, np.uint8, "r", 3, (len(names), each))
        at_once = max(1, _BLOCK_CELLS // n_rows)
        for first in range(0, len(chosen), at_once):
            part = packed[chosen[first : first + at_once]]
            yield _OF_BYTE[part].reshape(len(part), -1)[:, :n_rows]

    return GenotypeSource(path, names, n_rows, blocks, options)


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


def read_vcf(path: Path, options: ReadOptions) -> GenotypeSource:
    """Read a VCF or BCF file."""
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
    names = _unique(ids, places, path)
    return GenotypeSource(
        path, names, n_rows, lambda chosen: (columns[i][None] for i in chosen), options
    )


def _copies(alleles: Integers) -> Cells:
    """Return the alternative alleles of each sample: -1 is a missing one, -2 no allele at all."""
    called = alleles[:, :-1]  # the last column is the phase
    copies = (called > 0).sum(axis=1)
    unknown = (called == -1).any(axis=1) | (called == -2).all(axis=1) | (copies >= _MISSING)
    return np.where(unknown, _MISSING, copies).astype(np.uint8)


#: Of each set of numbers of copies (bit k: k copies occur), the states and the codes of numbers.
_STATES = [tuple(k for k in range(3) if bits >> k & 1) or (0,) for bits in range(8)]
_CODES = np.array(
    [
        [states.index(k) if k in states else len(states) for k in range(3)] + [len(states)]
        for states in _STATES
    ],
    np.uint8,
)
