"""The error of everything that must be there before a start."""

from streaming.setup.errors import SetupError


def test_the_remedy_is_indented_below_the_problem():
    error = SetupError("There is no Java.", "Install it.\nThen run make again.")
    assert str(error) == "There is no Java.\n  Install it.\n  Then run make again."
    assert (error.problem, error.args) == ("There is no Java.", ("There is no Java.",))
