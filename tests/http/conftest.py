"""Fixtures of the HTTP tests: one shared server, its scripted model, fresh banks."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from stack import Stack  # noqa: E402


@pytest.fixture(scope="session")
def stack():
    """The server most tests share: scripted model, default settings."""
    s = Stack().start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture(scope="session")
def extractive_stack():
    """A server without any model: the built-in provider."""
    s = Stack(llm=False).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def own_stack():
    """A maker of servers with settings of one's own, stopped after the test:
    own_stack(settings={...}, llm=True, worker=True, env={...})."""
    made = []

    def make(**kw):
        s = Stack(**kw).start()
        made.append(s)
        return s

    yield make
    reports = [line for s in made for line in s.stop()]
    assert not reports, "\n".join(reports)


@pytest.fixture
def api(stack):
    return stack.api()


@pytest.fixture
def llm(stack):
    """The scripted model of the shared server, with nothing recorded and no rules."""
    stack.llm.reset()
    yield stack.llm
    stack.llm.reset()


@pytest.fixture
def bank(stack, llm):
    """A fresh bank id; the bank is not made yet."""
    return stack.bank()


@pytest.fixture
def plain_bank(extractive_stack):
    """A fresh bank id on the server without a model."""
    return extractive_stack.bank()
