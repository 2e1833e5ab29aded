import pickle

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core.key_table import KeyTable


def test_a_null_is_a_key_of_its_own():
    keys = KeyTable()
    assert keys.of(pa.table({KEY: pa.array([0, None, 7, None, 0])})).tolist() == [0, 1, 2, 1, 0]
    assert keys.of(pa.table({KEY: pa.array([None, 7], pa.int64())})).tolist() == [1, 2]
    assert keys.table(np.array([1, 2, 0]))[KEY].to_pylist() == [None, 7, 0]


def test_without_key_columns_there_is_one_partition():
    keys = KeyTable()
    assert keys.of(pa.table({"a": [1, 2, 3]})).tolist() == [0, 0, 0]
    assert len(keys) == 1
    assert keys.table(np.array([0])) == {}


def test_columns_may_be_slices_in_several_pieces():
    keys = KeyTable()
    column = pa.chunked_array([pa.array([9, 9, None, 5])[1:], pa.array([None, 9], pa.int64())[:1]])
    assert keys.of(pa.table({KEY: column})).tolist() == [0, 1, 2, 1]


integers = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
pairs = st.lists(st.tuples(st.one_of(st.none(), integers), integers), max_size=200)


@settings(deadline=None)
@given(st.lists(pairs, max_size=5))
def test_codes_are_those_of_a_dictionary(batches):
    keys, expected = KeyTable(), {}
    for batch in batches:
        first, second = ([pair[i] for pair in batch] for i in (0, 1))
        table = pa.table({KEY: pa.array(first, pa.int64()), KEY2: pa.array(second, pa.int64())})
        wanted = [expected.setdefault(a if a is None else (a, b), len(expected)) for a, b in batch]
        assert keys.of(table).tolist() == wanted
        keys = pickle.loads(pickle.dumps(keys))
    assert len(keys) == len(expected)


def test_many_keys():
    keys = KeyTable()
    numbers = np.random.default_rng(0).permutation(100_000) * 1024
    assert np.array_equal(keys.codes(numbers), np.arange(100_000))
    assert np.array_equal(keys.codes(numbers[::-1].copy()), np.arange(100_000)[::-1])
