"""Readers of genotypes: PLINK ``.bed`` files (with ``.bim`` and ``.fam``), VCF and BCF files.

A column is a variant, a row a sample, and a cell the number of copies of an allele: of the first
allele of the ``.bim`` file, or of all alternative alleles of a VCF file. Variants have the states
that occur. Codes come straight from the two bits of a ``.bed`` file, which is mapped, some variants
at a time. Genotypes are nominal unless they are asked to be ordinal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from gzip import GzipFile
from io import SEEK_END
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from edgegraft.core.types import Integers
from edgegraft.errors import DataError, FileFormatError, import_extra, listing
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, explained
from edgegraft.table import PackedTable, Schema, Variable
from edgegraft.table.packed import Cells, empty_cells
from edgegraft.table.schema import Kind

_MAGIC, _BY_SAMPLE = b"\x6c\x1b\x01", b"\x6c\x1b\x00"
_COPIES = np.array([2, 3, 1, 0], np.uint8)  # of the two bits; 3 is a missing cell
_OF_BYTE = _COPIES[(np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3]
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_BLOCK_CELLS = 1 << 24  # decoded at a time
_MISSING = 3

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
    n_rows = sum(1 for _ in _lines_of(fam))
    variants = list(_lines_of(bim))
    names = _unique([v[1] for v in variants], [":".join((v[0], *v[3:])) for v in variants], bim)
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
            if n_rows % 4 and (part[:, -1] >> 2 * (n_rows % 4)).any():
                raise FileFormatError(
                    f"'{path}' has cells of more samples than the {n_rows:,} of '{fam.name}': a "
                    "line of that is missing, or they do not belong together"
                )
            yield _OF_BYTE[part].reshape(len(part), -1)[:, :n_rows]

    return GenotypeSource(path, names, n_rows, blocks, options)


#: Of the two files beside a .bed file: their fields, and what the fields must match that a header
#: or a file in the other's place does not.
_BESIDE = {
    ".fam": (
        "family, id, father, mother, sex, phenotype",
        {4: re.compile(r"-?\d+|[MFU.]|NA", re.IGNORECASE)},
    ),
    ".bim": (
        "chromosome, id, position in morgans, position, two alleles",
        {2: re.compile(r"[-+.\dE]+", re.IGNORECASE), 3: re.compile(r"-?\d+")},
    ),
}


def _lines_of(path: Path) -> Iterator[list[str]]:
    """Yield the six fields of each line of a file beside a .bed file."""
    what, patterns = _BESIDE[path.suffix]
    with explained(path, f"PLINK {path.suffix}"), path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != 6:
                raise FileFormatError(
                    f"'{path}', line {number}: {len(parts)} fields, expected 6 ({what})"
                )
            for place, pattern in patterns.items():
                if not pattern.fullmatch(parts[place]):
                    raise FileFormatError(
                        f"'{path}', line {number}: field {place + 1} is {parts[place]!r:.40}, "
                        f"expected a number ({what}); is it a header, or another file?"
                    )
            yield parts


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
    _check_whole(path)
    ids, places, columns = list[str](), list[str](), list[Cells]()
    with explained(path, "VCF"):
        file = cyvcf2.VCF(str(path))
        n_rows = len(file.samples)
        for variant in file:
            # First of all: other fields of a line that could not be parsed crash the process.
            try:
                columns.append(_copies(variant.genotype.array()))
            except Exception as error:
                raise FileFormatError(
                    f"'{path}': variant {len(ids) + 1} is damaged or has no genotypes (GT)"
                ) from error
            ids.append(variant.ID or ".")
            alleles = f"{variant.REF}:{','.join(variant.ALT) or '.'}"
            places.append(f"{variant.CHROM}:{variant.POS}:{alleles}")
        if any(Path(f"{path}{suffix}").exists() for suffix in (".tbi", ".csi")):
            indexed = file.num_records
            if indexed != len(ids):
                raise FileFormatError(
                    f"'{path}' has {len(ids):,} variants, and its index {indexed:,}: the file is "
                    "truncated, or the index is an old one"
                )
    names = _unique(ids, places, path)
    return GenotypeSource(
        path, names, n_rows, lambda chosen: (columns[i][None] for i in chosen), options
    )


def _check_whole(path: Path) -> None:
    """Refuse a file of compressed blocks without the last, and rows of more samples than names.

    The library that reads it takes the first for the end of the file, and ignores the second.
    """
    with explained(path, "VCF"), path.open("rb") as file:
        start = file.read(16)
        if start[:4] == _BGZF_END[:4] and start[12:14] == _BGZF_END[12:14]:
            file.seek(-min(len(_BGZF_END), path.stat().st_size), SEEK_END)
            if file.read() != _BGZF_END:
                raise FileFormatError(
                    f"'{path}' lacks the block that ends a file: it is truncated; fetch it again"
                )
        if path.suffix == ".bcf":
            return
        file.seek(0)
        with GzipFile(fileobj=file) if start[:2] == _BGZF_END[:2] else file as lines:
            n_named, rows = 0, (line for line in lines if line[:2] != b"##")
            for line in islice(rows, 2):
                n_cells = line.count(b"\t") + 1
                if line.startswith(b"#"):
                    n_named = n_cells
                elif n_named and n_cells > n_named:
                    raise FileFormatError(
                        f"'{path}': its first variant has {n_cells} fields, and its header names "
                        f"{n_named}: is it separated by tabs?"
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
