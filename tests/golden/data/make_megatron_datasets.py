"""Writes megatron_datasets.json: what Megatron core 0.12 itself makes of small corpora.

Run with a Python that has torch, numpy and megatron-core 0.12.0 (with its helpers compiled):
    python make_megatron_datasets.py megatron_datasets.json
Corpora: sequence i of corpus k has LENGTHS[k][i] tokens, token j is (37 k + 11 i + 3 j) % 89 + 1, the last is EOD (0).
"""
import hashlib
import json
import os
import sys
import tempfile

import numpy
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig, MockGPTDataset
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.megatron_tokenizer import MegatronTokenizer
from megatron.core.datasets.utils import compile_helpers, get_blend_from_list  # noqa: F401

EOD = 0
LENGTHS = {
    "a": [(7 * i * i + 13 * i) % 23 + 1 for i in range(60)],
    "b": [(5 * i * i + 3 * i) % 41 + 2 for i in range(37)],
    "c": [(11 * i * i + i) % 17 + 1 for i in range(101)],
}


class _NullTokenizer(MegatronTokenizer):
    def __init__(self, vocab_size, pad):
        super().__init__(None, vocab_size=vocab_size)
        self._pad = pad

    def tokenize(self, text):
        raise NotImplementedError

    @property
    def vocab(self):
        raise NotImplementedError

    @property
    def inv_vocab(self):
        raise NotImplementedError

    @property
    def vocab_size(self):
        return 8192

    @property
    def eod(self):
        return EOD

    @property
    def pad(self):
        if self._pad is None:
            raise NotImplementedError
        return self._pad


def write_corpora():
    for k, (name, lengths) in enumerate(LENGTHS.items()):
        builder = IndexedDatasetBuilder(f"{name}.bin", dtype=numpy.uint16)
        for i, length in enumerate(lengths):
            tokens = [(37 * k + 11 * i + 3 * j) % 89 + 1 for j in range(length)]
            tokens[-1] = EOD
            builder.add_item(torch.tensor(tokens))
            builder.end_document()
        builder.finalize(f"{name}.idx")


def md5(data):
    return hashlib.md5(data).hexdigest()


CASES = [
    dict(name="one prefix", data_path=["a"], split="90, 8, 2", sizes=[50, 6, 2], sequence_length=16, seed=1234),
    dict(name="one prefix, several epochs", data_path=["b"], split="80,15,5", sizes=[200, 20, 7], sequence_length=13,
         seed=7),
    dict(name="one prefix, last epoch apart", data_path=["c"], split="1", sizes=[64, 0, 0], sequence_length=16, seed=42),
    dict(name="one prefix with weight", data_path=["2", "a"], split="90,5,5", sizes=[40, 3, 2], sequence_length=9,
         seed=1),
    dict(name="weights", data_path=["0.3", "a", "1e-1", "b", "0.65", "c"], split="90,5,5", sizes=[600, 300, 200],
         sequence_length=8, seed=1234),
    dict(name="weights that need normalising", data_path=["3", "a", "7", "b"], split="80,10,10", sizes=[500, 250, 100],
         sequence_length=16, seed=99),
    dict(name="no weights, all of it", data_path=["a", "b", "c"], split="70,20,10", sizes=[100000, 100000, 100000],
         sequence_length=8, seed=5),
    dict(name="no weights, part of it", data_path=["a", "b", "c"], split="70,20,10", sizes=[60, 20, 5],
         sequence_length=8, seed=5),
    dict(name="no weights, no size", data_path=["a", "b", "c"], split="70,20,10", sizes=[None, None, None],
         sequence_length=8, seed=5),
    dict(name="paths of single splits", per_split=[["0.4", "a", "0.6", "b"], ["c"], ["a", "b", "c"]],
         sizes=[300, 12, 30], sequence_length=8, seed=1234),
    dict(name="resets and eod mask", data_path=["a"], split="80,20,0", sizes=[30, 5, 0], sequence_length=24, seed=3,
         reset_position_ids=True, reset_attention_mask=True, eod_mask_loss=True),
    dict(name="pad that occurs in the data", data_path=["b"], split="80,20,0", sizes=[30, 5, 0], sequence_length=24,
         seed=3, reset_position_ids=True, eod_mask_loss=True, pad=5),
    dict(name="mock data", mock=True, split="1,1,1", sizes=[9, 4, 2], sequence_length=32, seed=1234),
]


def run(case, cache):
    tokenizer = _NullTokenizer(8191, case.get("pad"))
    kwargs = {}
    if case.get("mock"):
        kwargs = dict(split=case["split"])
    elif "per_split" in case:
        kwargs = dict(blend_per_split=[get_blend_from_list(x) for x in case["per_split"]])
    else:
        kwargs = dict(blend=get_blend_from_list(case["data_path"]), split=case["split"])
    config = GPTDatasetConfig(
        random_seed=case["seed"], sequence_length=case["sequence_length"], path_to_cache=cache, tokenizer=tokenizer,
        reset_position_ids=case.get("reset_position_ids", False),
        reset_attention_mask=case.get("reset_attention_mask", False),
        eod_mask_loss=case.get("eod_mask_loss", False), create_attention_mask=True, **kwargs)
    cls = MockGPTDataset if case.get("mock") else GPTDataset
    datasets = BlendedMegatronDatasetBuilder(cls, case["sizes"], lambda: True, config).build()
    result = dict(case)
    result["splits"] = []
    for dataset in datasets:
        if dataset is None:
            result["splits"].append(None)
            continue
        items = []
        for i in list(range(min(6, len(dataset)))) + [len(dataset) - 1]:
            # One shared loss mask is modified in place when no flag is set: start every item afresh.
            inner = dataset.datasets if hasattr(dataset, "datasets") else [dataset]
            for d in inner:
                d.masks_and_position_ids_are_cached = False
            item = dataset[i]
            record = dict(index=i, tokens=item["tokens"].tolist(), labels=item["labels"].tolist(),
                          loss_mask=[int(x) for x in item["loss_mask"]], position_ids=item["position_ids"].tolist())
            # First position each token may look at.
            visible = ~item["attention_mask"][0]
            record["doc_start"] = [int(row.int().argmax()) for row in visible]
            if "dataset_id" in item:
                record["dataset_id"] = int(item["dataset_id"])
            items.append(record)
        result["splits"].append(dict(size=len(dataset), items=items))
    result["cache"] = {f: md5(open(os.path.join(cache, f), "rb").read()) for f in sorted(os.listdir(cache))}
    return result


def main():
    target = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{folder}/group")
        write_corpora()
        results = [run(case, f"cache{i}") for i, case in enumerate(CASES)]
        corpora = {f: md5(open(f, "rb").read()) for f in ("a.bin", "a.idx", "b.bin", "b.idx", "c.bin", "c.idx")}
        descriptions = {}
        for i in (0, 4, 8, 9, 12):
            names = [f for f in sorted(os.listdir(f"cache{i}")) if f.endswith("description.txt")]
            descriptions[CASES[i]["name"]] = {f: open(f"cache{i}/{f}").read() for f in names}
    with open(target, "w") as out:
        json.dump(dict(lengths=LENGTHS, corpora=corpora, cases=results, descriptions=descriptions), out,
                  separators=(",", ":"))
        out.write("\n")


main()
