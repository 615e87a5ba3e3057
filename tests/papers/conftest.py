import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)
