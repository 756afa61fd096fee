"""The page of rivals: tables, intervals, first places and speed ratios."""

from __future__ import annotations

import json

import pytest

from benchmarks.rivals.page import replaced, write_page
from benchmarks.rivals.summary import spread, summarise, verdict

DATA = "scale-free-30"


class TestPage:
    @pytest.fixture
    def results(self, tmp_path):
        """Two tools on two seeds, ours better and slower, and a third that timed out."""
        folder = tmp_path / "results"
        folder.mkdir()
        for seed, quality in ((0, 0.9), (1, 0.92)):
            for name, seconds, gap in (("edgegraft", 2.0, 0.0), ("mean-field", 1.0, 0.1)):
                outcome = {"variant": "", "average_precision": quality - gap}
                if name == "edgegraft":
                    outcome |= {"f1_own_cut": 0.9, "own_edges": 12, "held_out": 20.0 + seed}
                self.put(folder, name, seed, status="done", cpu_s=seconds, wall_s=seconds,
                         peak_mb=100.0, versions={"numpy": "2"}, machine="a machine",
                         outcomes=[outcome])  # fmt: skip
        self.put(folder, "eaDCA", 0, status="timed out", limit_s=600.0)
        self.put(folder, "plgpm", 0, status="failed", message="ValueError: a | b")
        return folder

    @staticmethod
    def put(folder, name, seed, **figures):
        result = {"rival": name, "data": DATA, "seed": seed, **figures}
        (folder / f"{name}-{seed}.json").write_text(json.dumps(result))

    def test_tables_are_written_between_the_markers_and_the_rest_is_kept(self, tmp_path, results):
        pytest.importorskip("matplotlib")
        page = tmp_path / "docs" / "rivals.md"
        page.parent.mkdir()
        markers = "<!-- begin {0} -->\nSTALE\n<!-- end {0} -->\n"
        page.write_text(f"before\n{markers.format('tables')}{markers.format('tools')}after\n")
        for _ in range(2):  # writing twice changes nothing
            write_page(results, [DATA], page)
        text = page.read_text()
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "STALE" not in text
        assert text.count("| edgegraft | 2.00 | 100 | 0.910 ± 0.127 |") == 1
        assert "| eaDCA | timed out (600 s) |" in text
        assert "| plgpm | failed: ValueError: a / b |" in text
        assert (tmp_path / "docs" / "images" / "rivals.png").stat().st_size > 0

    def test_first_places_and_speed_are_reported(self, results):
        stored = [json.loads(path.read_text()) for path in results.glob("*.json")]
        sentences = verdict(summarise(stored, DATA))
        assert (
            "first; none of the others is as good. The best, mean-field, has 0.810" in sentences[0]
        )
        assert "no other tool provides one" in sentences[1]
        for each in stored:
            if each["rival"] == "mean-field":
                each["outcomes"][0]["average_precision"] = 0.95
        sentences = verdict(summarise(stored, DATA))
        assert "**not first**: mean-field has 0.950 to our 0.910; 0.5 times as fast" in sentences[0]
        assert "less than 10" in sentences[0]

    def test_tools_are_compared_on_the_seeds_that_both_have(self, results):
        """A tool that ran only on one easy seed is not first because of that."""
        stored = [json.loads(path.read_text()) for path in results.glob("*.json")]
        easy = min(each["seed"] for each in stored if each["rival"] == "mean-field")
        kept = [each for each in stored if each["rival"] != "mean-field" or each["seed"] == easy]
        for each in kept:
            if each["seed"] == easy and each.get("outcomes"):
                score = {"edgegraft": 0.99, "mean-field": 0.98}.get(each["rival"], 0.0)
                each["outcomes"][0]["average_precision"] = score
        sentences = verdict(summarise(kept, DATA))
        assert "Average precision: first; none" in sentences[0]
        assert "mean-field, has 0.980 to our 0.990" in sentences[0]

    def test_seeds_that_we_lack_do_not_count(self, results):
        for name, scores in (("edgegraft-dense", [18.0]), ("sklearn-l2", [19.0, 11.0])):
            for seed, score in enumerate(scores):
                self.put(results, name, seed, status="done", cpu_s=1.0, wall_s=1.0, peak_mb=1.0,
                         versions={}, outcomes=[{"variant": "", "held_out": score}])  # fmt: skip
        stored = [json.loads(path.read_text()) for path in results.glob("*.json")]
        assert "19.000 to our 18.000" in verdict(summarise(stored, DATA))[-1]

    def test_time_on_a_gpu_is_wall_clock_time(self, results):
        outcome = {"variant": "", "average_precision": 0.5}
        self.put(results, "edgeDCA-gpu", 0, status="done", cpu_s=1.0, wall_s=9.0, peak_mb=1.0,
                 versions={}, outcomes=[outcome])  # fmt: skip
        stored = [json.loads(path.read_text()) for path in results.glob("*.json")]
        (line,) = [each for each in summarise(stored, DATA) if each.rival == "edgeDCA-gpu"]
        assert line.figures["cpu_s"].mean == 9.0

    def test_the_model_of_all_pairs_is_judged_by_its_predictions_only(self, results):
        for name, score in (("edgegraft-dense", 18.0), ("sklearn-l2", 19.0)):
            self.put(results, name, 0, status="done", cpu_s=1.0, wall_s=1.0, peak_mb=1.0,
                     versions={}, outcomes=[{"variant": "", "held_out": score}])  # fmt: skip
        stored = [json.loads(path.read_text()) for path in results.glob("*.json")]
        sentences = verdict(summarise(stored, DATA))
        assert (
            "`edgegraft` against one model: **not first**: sklearn-l2 has 19.000" in sentences[-2]
        )
        assert "`edgegraft-dense` against one model: first; none" in sentences[-1]
        assert "19.000 to our 18.000" in sentences[-1]

    def test_a_page_without_markers_is_refused(self):
        with pytest.raises(ValueError, match="begin tables"):
            replaced("nothing here", "tables", "text")

    def test_one_seed_has_no_interval(self):
        assert spread([2.0]) == (2.0, None)
        mean, half = spread([1.0, 2.0, 3.0])
        assert (mean, round(half, 3)) == (2.0, 2.484)
