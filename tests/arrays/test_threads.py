"""Limits of BLAS threads, in processes of their own: tasks of other tests may still run in threads of this one."""

import os
import subprocess
import sys

import pytest

HEAD = """
import numpy
import scipy.linalg
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from threadpoolctl import threadpool_info, threadpool_limits
from fewkern.arrays.blocks import one_thread, threads_for

def blas_threads():
    found = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    assert found
    return found
"""
STEPS = """
with threadpool_limits(2, user_api="blas"):
    with threads_for(1000), one_thread():
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with threads_for(10**9):
        assert blas_threads() == {2}
    try:
        with one_thread():
            raise ValueError
    except ValueError:
        assert blas_threads() == {2}
"""
SIDE_BY_SIDE = """
first_in, both_in, first_out, second_out = Barrier(2), Barrier(2), Barrier(2), Barrier(2)

def first():
    with one_thread():
        first_in.wait()
        both_in.wait()
    first_out.wait()

def second():
    first_in.wait()
    with one_thread():
        both_in.wait()
        first_out.wait()
    with one_thread():
        assert blas_threads() == {1}, blas_threads()
    second_out.wait()  # and lives on, as threads of a pool do

with ThreadPoolExecutor(2) as pool:
    before = blas_threads()
    tasks = [pool.submit(first), pool.submit(second)]
    second_out.wait()
    for task in tasks:
        task.result()
    assert blas_threads() == before, blas_threads()
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}, blas_threads()
"""


@pytest.mark.parametrize("code", [STEPS, SIDE_BY_SIDE], ids=["steps", "tasks"])
def test_limits_are_taken_back(code):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", HEAD + code], check=True, timeout=60, env=environment)
