from threadpoolctl import threadpool_info, threadpool_limits

from fewkern.backend.threads import threads_for


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_small_steps_run_on_one_thread_and_large_ones_as_they_would():
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) <= {2}
        with threads_for(1000):
            assert set(blas_threads()) <= {1}
        assert set(blas_threads()) <= {2}
        with threads_for(10**9):
            assert set(blas_threads()) <= {2}
