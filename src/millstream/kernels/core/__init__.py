"""Parts of all kernels: the contract, arrays, keys, time, order, and state in chunks."""
