"""Reports in a browser: what is pointed at, clicked, folded, searched; on a desktop and on a phone."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.unit.report import models

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no Chromium with its driver on this machine"),
]

DESKTOP, PHONE = (1440, 1000), (390, 844)
FUNCTIONS = 200


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def halving(folder: Path) -> Path:
    static = sg.to_static(models.halve, backend="eager")
    path: Path = static.explain(torch.ones(3, 4), torch.tensor(1.0)).to_html(folder / "halve.html")
    return path


@pytest.fixture(scope="module")
def large(folder: Path) -> Path:
    """A report on a model of 200 functions, each with a branch."""
    text = "import torch\n\n\n" + "\n\n\n".join(
        f"def layer_{i}(x, rate={i}.0):\n    h = torch.tanh(x) * rate\n    if h.sum() > {i}:\n        h = h.relu()\n"
        f"    return x + h"
        for i in range(FUNCTIONS)
    )
    calls = "\n".join(f"    x = layer_{i}(x)" for i in range(FUNCTIONS))
    file = folder / "large_model.py"
    file.write_text(f"{text}\n\n\ndef model(x):\n{calls}\n    return x\n")
    spec = importlib.util.spec_from_file_location("large_model", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path: Path = sg.to_static(module.model, backend="eager").explain(torch.ones(3)).to_html(folder / "large.html")
    return path


def show(browser: Any, path: Path, size: tuple[int, int] = DESKTOP, *, script: bool = True) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size is PHONE},
    )
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())
    if script:  # the driver does not wait reliably after scripts were switched off
        until(browser, lambda b: b.execute_script("return document.readyState") == "complete")


def until(browser: Any, holds: Callable[[Any], bool]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(holds)


def line(browser: Any, text: str) -> Any:
    """The line of the source that has this text."""
    (found,) = (each for each in all_of(browser, ".ln") if text in each.get_attribute("textContent"))
    return found


def all_of(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def texts(browser: Any, selector: str) -> list[str]:
    return [each.get_attribute("textContent") for each in all_of(browser, selector)]


def keys(browser: Any, *pressed: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*pressed).perform()


def found(browser: Any, expected: str) -> None:
    """Wait until the search says this."""
    until(browser, lambda b: b.find_element("id", "found").text == expected)


def test_a_line_that_is_clicked_shows_its_operations(browser: Any, halving: Path) -> None:
    show(browser, halving)
    line(browser, "x = x + i").find_element("css selector", "code").click()
    lit = texts(browser, ".op.hi code")
    assert [each.strip() for each in lit] == ["add = sub + 0", "add_1 = add + 1", "add_2 = add_1 + 2"]
    found(browser, "1 of 3")
    assert len(all_of(browser, ".op.picked")) == 1


def test_an_operation_that_is_clicked_shows_its_line(browser: Any, halving: Path) -> None:
    show(browser, halving)
    (operation,) = (each for each in all_of(browser, ".op") if "truediv.relu()" in each.text)
    operation.find_element("css selector", ".type").click()
    assert [each.split()[-1] for each in texts(browser, ".ln.hi")] == ["x.relu()"]
    assert [each.split()[-1] for each in texts(browser, ".ln.picked")] == ["x.relu()"]


def test_what_is_pointed_at_is_shown_on_both_sides(browser: Any, halving: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    show(browser, halving)
    ActionChains(browser).move_to_element(line(browser, "x - x.mean()").find_element("tag name", "code")).perform()
    assert len(all_of(browser, ".op.hi")) == 2
    (operation,) = (each for each in all_of(browser, ".op") if each.text.startswith("sub = "))
    ActionChains(browser).move_to_element(operation.find_element("css selector", ".type")).perform()
    assert len(all_of(browser, ".ln.hi")) == 1
    assert [each.strip() for each in texts(browser, ".op.hi2 > code b")] == ["x", "limit", "mean"]  # what it reads


def test_boxes_nest_as_the_regions_do(browser: Any, halving: Path) -> None:
    show(browser, halving)
    assert len(all_of(browser, ".region.top .arms.while > .region")) == 2
    assert len(all_of(browser, ".region.body .arms.if > .region")) == 2
    widths = {each.size["width"] > 150 for each in all_of(browser, ".arms.if > .region")}
    assert widths == {True}
    assert all_of(browser, ".op svg path, .op svg line")


def test_folding(browser: Any, halving: Path) -> None:
    show(browser, halving)
    body = browser.find_element("css selector", ".region.body")
    inside = body.find_element("css selector", ".op")
    assert inside.is_displayed()
    body.find_element("tag name", "summary").click()
    assert not inside.is_displayed()
    browser.find_element("css selector", "[data-unfold='#program']").click()
    assert inside.is_displayed()
    browser.find_element("css selector", "[data-fold='#source']").click()
    assert not line(browser, "steps = 0").is_displayed()


def test_search_by_keyboard(browser: Any, halving: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, halving)
    keys(browser, "/")
    assert browser.switch_to.active_element.get_attribute("id") == "q"
    keys(browser, *"relu")
    found(browser, "2 found")
    keys(browser, Keys.ENTER)
    found(browser, "1 of 2")
    assert "x.relu()" in "".join(texts(browser, ".ln.picked"))
    keys(browser, Keys.ENTER)
    found(browser, "2 of 2")
    assert "truediv.relu()" in "".join(texts(browser, ".op.picked"))
    keys(browser, Keys.ESCAPE)
    found(browser, "")
    assert not all_of(browser, ".hit, .picked, .hi")


def test_a_mark_finds_its_lines(browser: Any, halving: Path) -> None:
    show(browser, halving)
    browser.find_element("css selector", "[data-mark=specialised]").click()
    found(browser, "1 of 2")
    assert len(all_of(browser, ".ln.hit")) == 2


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_nothing_is_fetched(
    browser: Any, halving: Path, folder: Path, size: tuple[int, int], scheme: str
) -> None:
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    show(browser, halving, size)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script("return innerWidth") == size[0]
    outside = browser.execute_script(
        "return [...document.querySelectorAll('.ln, .op, .fact, h1')]"
        ".filter((each) => each.getBoundingClientRect().right > innerWidth + 1).length"
    )
    assert outside == 0
    assert browser.get_log("browser") == []
    asked = [entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent\"" in entry["message"]]
    assert [each for each in asked if "halve.html" not in each and "data:," not in each] == []
    shot = folder / f"{scheme}-{size[0]}.png"
    assert browser.save_screenshot(str(shot))
    assert shot.stat().st_size > 10_000


def test_on_a_phone_the_panes_stand_below_each_other(browser: Any, halving: Path) -> None:
    show(browser, halving, PHONE)
    source, program = (browser.find_element("id", name).rect for name in ("source", "program"))
    assert program["y"] >= source["y"] + source["height"]
    assert source["width"] > 340


def test_without_javascript_it_can_be_read(browser: Any, halving: Path) -> None:
    show(browser, halving, script=False)
    assert line(browser, "while x.norm() > limit:").is_displayed()
    assert not browser.find_element("css selector", ".search").is_displayed()
    number = line(browser, "x = x.relu()").find_element("css selector", "a.no")
    target = number.get_attribute("href").partition("#")[2]
    assert "truediv.relu()" in browser.find_element("id", target).text


def test_a_model_of_200_functions(browser: Any, large: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    assert large.stat().st_size < 3_000_000
    show(browser, large)
    assert len(all_of(browser, ".function")) == FUNCTIONS + 1
    assert len(all_of(browser, ".fold")) == FUNCTIONS
    assert not all_of(browser, ".fold[open], .function[open]")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    keys(browser, "/", *"layer_137", Keys.ENTER)
    found(browser, "1 of 4")  # its call, its name, its first line, and the fold of its operations
    assert [each.text for each in all_of(browser, ".function[open] > summary b")] == ["model"]
    keys(browser, Keys.ENTER, Keys.ENTER)
    assert [each.text for each in all_of(browser, ".function[open] > summary b")] == ["model", "layer_137"]
    keys(browser, Keys.ESCAPE)
    line(browser, "if h.sum() > 137:").find_element("css selector", "code").click()
    assert [each.text for each in all_of(browser, ".fold[open] > summary b")] == ["layer_137"]
    assert browser.get_log("browser") == []


def test_a_refused_call(browser: Any, folder: Path) -> None:
    explanation = sg.to_static(models.reads_a_file, backend="eager").explain(torch.ones(3))
    show(browser, explanation.to_html(folder / "refused.html"))
    (refused,) = all_of(browser, ".ln.refused")
    assert refused.is_displayed()
    assert "with open" in refused.text
    assert "SG305" in browser.find_element("id", "refusal").text
    assert browser.get_log("browser") == []
