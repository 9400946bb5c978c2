import pytest

from tests.support import browser


@pytest.fixture(scope="module")
def page():
    with browser.browser() as opened:
        yield opened
