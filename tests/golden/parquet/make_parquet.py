"""Writes the Parquet files of tests/io/parquet_rows_test.cpp with pyarrow: make_parquet.py [FOLDER]

1000 rows; what each holds is a formula that the test knows too.
"""
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def text(i):
    if i % 7 == 3:
        return None
    if i % 5 == 0:
        return ""
    return f"row {i} " + "é😀" * (i % 11)


def main(folder):
    rows = range(1000)
    table = pa.table({
        "id": pa.array(rows, pa.int64()),
        "text": pa.array([text(i) for i in rows], pa.string()),
        "lang": pa.array(["de" if i % 3 else "fr" for i in rows], pa.string()),
        "meta": pa.array([{"source": f"s{i}"} if i % 4 else None for i in rows],
                         pa.struct([("source", pa.string())])),
        "tags": pa.array([["a", "b"][:i % 3] for i in rows], pa.list_(pa.string())),
    })
    # Dictionary pages, several row groups, several pages in each.
    pq.write_table(table, os.path.join(folder, "dictionary.parquet"), row_group_size=300, data_page_size=1000,
                   write_batch_size=50, compression="zstd", write_page_checksum=True)
    # Plain values, pages of the second version, one row group.
    pq.write_table(table, os.path.join(folder, "plain.parquet"), use_dictionary=False, data_page_version="2.0",
                   data_page_size=2000, write_batch_size=100, compression="snappy", write_page_checksum=True)
    pq.write_table(table.slice(0, 0), os.path.join(folder, "empty.parquet"))


main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
