import pytest

from tests.apps.serving import browser


@pytest.fixture(scope="module")
def page():
    with browser.browser() as opened:
        yield opened
