"""Files that are made to do harm: bombs, spreadsheets and genotypes that are not what they say."""

from __future__ import annotations

import os
import random
import resource
import struct
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pyarrow as pa

from edgegraft.errors import DataError, MemoryBudgetError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import read_table

BITS = {2: 0, -1: 1, 1: 2, 0: 3}  # two bits of a number of copies
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
SECONDS = 20  # of processor time for one file
_SHEET = "xl/worksheets/sheet1.xml"


def read_apart(path: Path, limit: str = "16 MB") -> bytes:
    """Read a file in a fork, whose crash is that of the fork; return what its table says of itself.

    An error comes as its text; of a crash, a hang or an error that names no file nothing comes.
    """
    end, start = os.pipe()
    child = os.fork()
    if not child:
        said = b""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                used = int(time.process_time())
                resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, used + SECONDS))
                table = read_table(path, None, ReadOptions(max_memory=limit))
                said = repr(table.schema).encode() + b"%x" % zlib.crc32(table.codes().tobytes())
            except (DataError, MemoryBudgetError) as error:
                said = b"error: " * (path.name in str(error) or path.stem in str(error))
            except BaseException:  # noqa: BLE001 - this is what is looked for
                said = b""
        os.write(start, said[:4000])
        os._exit(0)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        said = pipe.read()
    return b"" if os.waitpid(child, 0)[1] else said


def outcome_of(said: bytes, expected: bytes | None = None) -> str:
    if said.startswith(b"error") or not said:
        return "refused" if said else "lost"
    return "survived" if expected in (None, said) else "lost"


# Bombs


def compressed(path: Path, kind: str, part: bytes, n: int) -> Path:
    with pa.CompressedOutputStream(str(path), kind) as out:
        for _ in range(n):
            out.write(part)
    return path


def sheet(path: Path, rows: str, dimension: str = "") -> Path:
    """Write a spreadsheet whose first sheet has rows of XML."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["a"])
    book.save(path)
    with ZipFile(path) as parts:
        all_parts = {name: parts.read(name) for name in parts.namelist()}
    size = f'<dimension ref="{dimension}"/>' if dimension else ""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = f'<worksheet xmlns="{space}">{size}<sheetData>{rows}</sheetData></worksheet>'
    with ZipFile(path, "w", ZIP_DEFLATED) as parts:
        for name, content in all_parts.items():
            parts.writestr(name, text if name == _SHEET else content)
    return path


def row_of(number: int, *cells: str) -> str:
    inside = "".join(f"<c r='{cell}{number}'><v>{k}</v></c>" for k, cell in enumerate(cells))
    return f'<row r="{number}">{inside}</row>'


def bombs(folder: Path) -> list[str]:
    """Read small files that become large, within 16 MB."""
    mega = 1 << 20
    contents = {
        "line": b"a" * mega,
        "cells": b"a," * (mega // 2),
        "rows": b"a,b\n" * (mega // 4),
        "blank": b"\n" * mega,
        "quote": b'"' + b"x\n" * (mega // 2),
    }
    files = [
        compressed(folder / f"{name}.csv.{suffix}", kind, part, 40)
        for suffix, kind in (("zst", "zstd"), ("gz", "gzip"))
        for name, part in contents.items()
    ]
    far = "".join(row_of(k, "A", "XFD") for k in range(1, 20_000))
    files += [
        sheet(
            folder / "size.xlsx", row_of(1, "A") + row_of(2, "A") + row_of(3, "A"), "A1:XFD1048576"
        ),
        sheet(folder / "far.xlsx", far),
        sheet(folder / "deep.xlsx", row_of(1, "A") + row_of(10**12, "A")),
        sheet(folder / "wide.xlsx", row_of(1, "A") + row_of(2, "ZZZZZZZZ")),
        sheet(folder / "many.xlsx", "<row/>" * 4_000_000),
    ]
    return [outcome_of(read_apart(path)) for path in files]


# Genotypes


def bgzf(text: bytes, block: int = 700) -> tuple[bytes, list[int]]:
    """Return text in compressed blocks, and where the blocks begin."""
    out, starts = b"", []
    for first in range(0, len(text), block):
        part = text[first : first + block]
        packer = zlib.compressobj(wbits=-15)
        data = packer.compress(part) + packer.flush()
        head = b"\x1f\x8b\x08\x04" + bytes(6) + b"\x06\x00BC\x02\x00"
        starts.append(len(out))
        size = struct.pack("<H", len(data) + 25)
        out += head[:9] + b"\xff" + head[10:] + size + data
        out += struct.pack("<II", zlib.crc32(part), len(part))
    return out + BGZF_END, [*starts, len(out)]


def vcf_text(copies: np.ndarray) -> str:
    n_rows, n = copies.shape
    samples = "\t".join(f"s{r}" for r in range(n_rows))
    genotypes = np.array(["0/0", "0/1", "1/1"])
    head = (
        "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
        f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{samples}\n"
    )
    lines = [f"1\t{10 + k}\trs{k}\tA\tG\t.\t.\t.\tGT\t" for k in range(n)]
    cells = ["\t".join(genotypes[copies[:, k]]) for k in range(n)]
    return head + "".join(f"{a}{b}\n" for a, b in zip(lines, cells, strict=True))


def tabix(path: Path, n_variants: int) -> None:
    """Write the index of a file of one contig, as far as it counts the variants."""
    pseudo = struct.pack("<IiQQQQ", 37450, 2, 0, 0, n_variants, 0)
    head = struct.pack("<8i", 1, 2, 1, 2, 0, ord("#"), 0, 2) + b"1\0"
    index = b"TBI\1" + head + struct.pack("<i", 1) + pseudo + struct.pack("<i", 0)
    path.with_name(path.name + ".tbi").write_bytes(bgzf(index)[0])


def write_bed(folder: Path, copies: np.ndarray) -> Path:
    """Write a .bed file with its .bim and .fam, as the format is published."""
    n_rows, n = copies.shape
    padded = np.zeros((-(-n_rows // 4) * 4, n), np.uint8)
    padded[:n_rows] = np.vectorize(BITS.get)(copies)
    four = padded.T.reshape(n, -1, 4) << np.array([0, 2, 4, 6], np.uint8)
    path = folder / "cohort.bed"
    path.write_bytes(b"\x6c\x1b\x01" + four.sum(axis=2).astype(np.uint8).tobytes())
    lines = [f"1\trs{k}\t0\t{10 + k}\tA\tG\n" for k in range(n)]
    path.with_suffix(".bim").write_text("".join(lines))
    path.with_suffix(".fam").write_text("".join(f"f{r} i{r} 0 0 1 -9\n" for r in range(n_rows)))
    return path


def damage_text(lines: list[str], chance: random.Random) -> list[str]:
    """Return lines of a file of variants with one fault."""
    at, kind = chance.randrange(4, len(lines)), chance.randrange(6)
    line = lines[at]
    tabs = [k for k, letter in enumerate(line) if letter == "\t"]
    place = chance.choice(tabs)
    changed = {
        0: [*lines[:4], line],
        1: [lines[3], line],
        2: [line[:place] + " " + line[place + 1 :]],
        3: [line.replace("\t", " ")],
        4: ["\n", line],
        5: [line[:place] + "\n"],
    }
    return [*lines[:at], *changed[kind], *lines[at + 1 :]]


def genotypes(folder: Path, n: int) -> list[str]:
    """Cut and damage genotype files; what is read must be what was written."""
    chance, outcomes = random.Random(0), []
    copies = np.random.default_rng(0).integers(0, 3, (14, 90))
    text = vcf_text(copies)
    whole, starts = bgzf(text.encode())
    path, packed = folder / "rows.vcf", folder / "rows.vcf.gz"
    path.write_text(text)
    packed.write_bytes(whole)
    expected = read_apart(path)
    assert expected.startswith(b"Schema")
    assert read_apart(packed) == expected
    for cut in [*starts[1:], *(chance.randrange(1, len(whole)) for _ in range(n))]:
        packed.write_bytes(whole[:cut])
        outcomes.append(outcome_of(read_apart(packed), expected))
    fewer = "".join(text.splitlines(keepends=True)[:-10]).encode()
    packed.write_bytes(bgzf(fewer)[0])
    tabix(packed, 90)
    outcomes.append(outcome_of(read_apart(packed), expected))
    packed.write_bytes(whole)
    assert read_apart(packed) == expected
    for _ in range(n):
        path.write_text("".join(damage_text(text.splitlines(keepends=True), chance)))
        outcomes.append(outcome_of(read_apart(path), expected))
    path.write_text(text.replace("s1\ts2", "s1 s2"))
    outcomes.append(outcome_of(read_apart(path), expected))
    return outcomes + plink(folder, copies)


def plink(folder: Path, copies: np.ndarray) -> list[str]:
    """Damage the two files beside a .bed file."""
    path, outcomes = write_bed(folder, copies), []
    fam, bim = path.with_suffix(".fam"), path.with_suffix(".bim")
    expected = read_apart(path)
    assert expected.startswith(b"Schema")
    people, variants = fam.read_text(), bim.read_text()
    tries: list[tuple[Path, str | bytes]] = [
        (fam, "FID IID PAT MAT SEX PHENOTYPE\n" + people),
        (fam, people + "junk\n"),
        (fam, people + "# a remark of six words here\n"),
        (fam, variants),
        (fam, people.split("\n", 1)[1]),
        (fam, people.replace(" -9", "")),
        (fam, people.encode() + b"\xff\xfe"),
        (bim, "CHR SNP CM BP A1 A2\n" + variants),
        (bim, people),
        (bim, variants + "junk\n"),
        (bim, variants.replace("\t10\t", "\tx\t")),
        (bim, variants.encode() + b"\xff\xfe"),
        (bim, variants.replace("\tA\tG", "\tA\tG\tT")),
    ]
    for file, content in tries:
        before = file.read_bytes()
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        outcomes.append(outcome_of(read_apart(path), expected))
        file.write_bytes(before)
    return outcomes


ATTACKS: dict[str, Callable[[Path, int], list[str]]] = {
    "bombs": lambda folder, n: bombs(folder),
    "genotypes": genotypes,
}
