"""Tiles give what LAPACK gives, and a wrong product or factor is refused, not believed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import lapack
from threadpoolctl import threadpool_info, threadpool_limits

from leakscope import kernels
from leakscope._numerics import cholesky, eigenvectors, probes, products
from leakscope._numerics.cores import side_by_side


def positive_definite(size):
    root = np.random.default_rng(size).normal(size=(size, size + 3))
    return root @ root.T + 0.5 * np.eye(size)


@pytest.fixture
def small_tiles(monkeypatch):
    """Sizes that a test can afford take the way of the largest."""
    monkeypatch.setattr(cholesky, "ONE_PIECE", 0)
    monkeypatch.setattr(products, "ONE_PIECE", 0)
    monkeypatch.setattr(products, "TILE", 32)
    monkeypatch.setattr(cholesky, "TILE", 32)
    monkeypatch.setattr(probes, "PROBED_FROM", 1)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 150])
def test_tiles_give_what_lapack_gives(size, small_tiles):
    matrix = positive_definite(size)
    kept = matrix.copy()
    factor = cholesky.factorise(matrix)
    np.testing.assert_array_equal(matrix, kept)
    np.testing.assert_allclose(np.tril(factor.packed), np.linalg.cholesky(matrix), atol=1e-11)
    half = cholesky.inverse_factor(factor)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(half.inverse_diagonal(), np.diagonal(inverse), rtol=1e-9)
    whole = cholesky.inverse(half)
    # The matrix itself still stands in the other triangle.
    np.testing.assert_array_equal(np.triu(whole.packed, 1), np.triu(matrix, 1))
    np.testing.assert_allclose(whole.full(), inverse, rtol=1e-7, atol=1e-10)


def test_overwriting_uses_no_second_array(small_tiles):
    matrix = positive_definite(80)
    factor = cholesky.factorise(matrix, overwrite=True)
    assert np.shares_memory(factor.packed, matrix)
    assert np.shares_memory(cholesky.inverse(factor, overwrite=True).packed, matrix)


def test_an_indefinite_matrix_is_refused_with_its_minor(small_tiles):
    matrix = np.eye(100)
    matrix[70, 70] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="order 71"):
        cholesky.factorise(matrix)


@pytest.mark.parametrize("rows", [5, 32, 100])
def test_products_of_rows(rows, small_tiles):
    rng = np.random.default_rng(rows)
    left, right = rng.normal(size=(rows, 7)), rng.normal(size=(41, 7))
    found = products.row_products(left)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, np.einsum("ik,jk->ij", left, left), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        products.row_products(left, right), np.einsum("ik,jk->ij", left, right), atol=1e-12
    )


def test_a_kernel_is_symmetric_in_tiles(small_tiles):
    X = np.random.default_rng(0).normal(size=(90, 3))
    for kernel in (kernels.rbf(1.0), kernels.matern(length_scale=1.0), kernels.linear()):
        found = kernel(X)
        np.testing.assert_array_equal(found, found.T)


class TestWrongAnswersAreRefused:
    """One entry that is off by a hundred-millionth of the others is enough."""

    @staticmethod
    def damaged(routine, place=(50, 20)):
        def wrong(packed, *arguments, **options):
            found = routine(packed, *arguments, **options)
            packed[place] += 1e-6 * abs(packed[place]) + 1e-6
            return found

        return wrong

    def test_factor(self, small_tiles, monkeypatch):
        routine = self.damaged(cholesky.cholesky_in_place)
        monkeypatch.setattr(cholesky, "cholesky_in_place", routine)
        with pytest.raises(probes.WrongProductError, match=r"Cholesky factor .*OPENBLAS_NUM_TH"):
            cholesky.factorise(positive_definite(80))

    def test_inverse_factor(self, small_tiles, monkeypatch):
        factor = cholesky.factorise(positive_definite(80))
        routine = self.damaged(cholesky.triangular_inverse_in_place)
        monkeypatch.setattr(cholesky, "triangular_inverse_in_place", routine)
        with pytest.raises(probes.WrongProductError, match="inverse of the Cholesky factor"):
            cholesky.inverse_factor(factor)

    def test_inverse(self, small_tiles, monkeypatch):
        half = cholesky.inverse_factor(cholesky.factorise(positive_definite(80)))
        routine = self.damaged(cholesky.gram_in_place)
        monkeypatch.setattr(cholesky, "gram_in_place", routine)
        with pytest.raises(probes.WrongProductError, match="inverse of the kernel matrix"):
            cholesky.inverse(half)

    def test_solution(self, small_tiles, monkeypatch):
        factor = cholesky.factorise(positive_definite(80))

        class Wrong:
            @staticmethod
            def dpotrs(packed, right, **options):
                solution, info = lapack.dpotrs(packed, right, **options)
                solution[50] += 1e-6 * abs(solution[50])
                return solution, info

        monkeypatch.setattr(cholesky, "_lapack", Wrong)
        with pytest.raises(probes.WrongProductError, match="solution of the kernel's equations"):
            cholesky.solve(factor, np.ones((80, 2)))

    def test_product(self, small_tiles):
        left = np.random.default_rng(1).normal(size=(80, 5))
        wrong = left @ left.T
        wrong[3, 4] += 1e-7
        with pytest.raises(probes.WrongProductError, match="1 rows"):
            products._probe(wrong, left, left)

    @pytest.mark.parametrize("damaged", [0, 1])
    def test_eigenvalues_and_eigenvectors(self, damaged, small_tiles, monkeypatch):
        routine = scipy.linalg.eigh

        def wrong(matrix, **options):
            found = routine(matrix, **options)
            found[damaged][40] *= 1.0 + 1e-6
            return found

        matrix = positive_definite(80)
        eigenvectors.symmetric_eigen(matrix)
        monkeypatch.setattr(scipy.linalg, "eigh", wrong)
        with pytest.raises(probes.WrongProductError, match="eigen"):
            eigenvectors.symmetric_eigen(matrix)

    @pytest.mark.parametrize("driver", ["evd", "evr"])
    def test_one_number(self, driver):
        values, vectors = eigenvectors.symmetric_eigen(np.array([[-2.5]]), driver)
        np.testing.assert_array_equal(values, [-2.5])
        np.testing.assert_array_equal(np.abs(vectors), [[1.0]])

    def test_close_eigenvalues_are_let_pass(self):
        # A tangent kernel of Adult's columns: evr's vectors were 1.5e-11 from right angles.
        rng = np.random.default_rng(0)
        turned = np.linalg.qr(rng.normal(size=(1200, 1200)))[0]
        values = np.r_[np.full(600, 1.0), 1.0 + 1e-13 * np.arange(300), np.logspace(0, 6, 300)]
        matrix = (turned * values) @ turned.T
        for driver in ("evd", "evr"):
            found = eigenvectors.symmetric_eigen(0.5 * (matrix + matrix.T), driver)[0]
            np.testing.assert_allclose(found[-1], 1e6, rtol=1e-9)

    def test_not_a_number(self, small_tiles):
        left = np.ones((5, 2))
        wrong = np.full((5, 5), np.nan)
        with pytest.raises(probes.WrongProductError, match="5 rows"):
            products._probe(wrong, left, left)


def test_rounding_is_let_pass_on_a_badly_conditioned_matrix(small_tiles):
    X = np.linspace(0.0, 1.0, 200)[:, None]
    matrix = kernels.rbf(0.3)(X) + 1e-9 * np.eye(200)
    cholesky.inverse(cholesky.factorise(matrix))


def test_the_library_is_named():
    assert "threads" in probes.blas_in_use()


def blas_threads():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_library_has_one_thread_inside_and_its_own_number_afterwards(threads):
    with threadpool_limits(threads, user_api="blas"):
        seen = []
        with side_by_side() as for_each:
            for_each(lambda _: seen.append(blas_threads()), range(3))
        assert seen == 3 * [{1}]
        assert blas_threads() == {threads}


def test_what_goes_wrong_in_a_tile_is_told_and_the_threads_come_back():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), side_by_side() as for_each:
            for_each(lambda place: 1 // place, [1, 0, 2])
        assert blas_threads() == {2}


def test_more_threads_give_the_same_factor_to_the_bit(small_tiles):
    matrix, found = positive_definite(150), []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(cholesky.inverse(cholesky.factorise(matrix)).packed)
    np.testing.assert_array_equal(*found)
