"""Forms generated from schemas, and messages beside their fields."""

import json

import pytest
from playwright.sync_api import expect

from browser.screen import Screen, Visit
from e2e.modules import Journal

pytestmark = [pytest.mark.browser, pytest.mark.requirement("FR-EXPLORER-004")]


def fill_order(screen: Screen) -> None:
    screen.open("orders.create")
    screen.field("name").fill("Ada")
    screen.field("sku").fill("ABC-1")
    screen.field("Form of payment").select_option(label="Invoice")


def test_a_form_sends_nested_objects_lists_alternatives_maps_null_and_defaults(visit: Visit) -> None:
    screen = visit()
    fill_order(screen)
    expect(screen.field("quantity")).to_have_value("1")
    expect(screen.field("days")).to_have_value("30")
    screen.field("days").fill("14")
    screen.button("Add to items").click()
    screen.field("sku").nth(1).fill("XYZ-2")
    screen.field("quantity").nth(1).fill("3")
    screen.field("priority").select_option("high")
    screen.button("Send null for discount").click()
    screen.button("Add an entry to labels").click()
    screen.field("Key of entry key1").fill("colour")
    screen.page.keyboard.press("Enter")
    screen.field("colour").fill("green")
    screen.run()
    assert json.loads(screen.raw_result())["received"] == {
        "customer": {"name": "Ada", "vip": False},
        "items": [{"sku": "ABC-1", "quantity": 1}, {"sku": "XYZ-2", "quantity": 3}],
        "payment": {"method": "invoice", "days": 14},
        "priority": "high",
        "discount": None,
        "labels": {"colour": "green"},
    }


def test_form_and_json_are_two_views_of_the_same_arguments(visit: Visit) -> None:
    screen = visit()
    fill_order(screen)
    screen.button("Add to items").click()
    screen.field("sku").nth(1).fill("XYZ-2")
    screen.button("Move items 2 up").click()
    screen.tab("JSON").click()
    arguments = json.loads(screen.by("raw-json").input_value())
    assert [item["sku"] for item in arguments["items"]] == ["XYZ-2", "ABC-1"]
    del arguments["items"][0]
    arguments["payment"] = {"method": "card", "number": "4242"}
    screen.by("raw-json").fill(json.dumps(arguments))
    screen.tab("Form").click()
    expect(screen.field("sku")).to_have_value("ABC-1")
    expect(screen.field("number")).to_have_value("4242")


def test_missing_values_are_named_beside_their_fields_and_nothing_is_sent(visit: Visit, journal: Journal) -> None:
    screen = visit()
    screen.open("orders.create")
    screen.start()
    name = screen.field("name")
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description("Required")
    expect(screen.by("result")).to_have_attribute("data-status", "idle")
    assert journal.lines == []


def test_what_only_the_server_knows_is_shown_beside_the_field_too(visit: Visit) -> None:
    screen = visit()
    screen.open("math.divide")
    screen.field("dividend").fill("1")
    screen.field("divisor").fill("13")
    screen.run("failed")
    expect(screen.by("field-problem")).to_contain_text("thirteen is not lucky")
    expect(screen.field("divisor")).to_have_attribute("aria-invalid", "true")
    expect(screen.by("result-error")).to_contain_text("The server refused the arguments")
    screen.field("divisor").fill("2")
    expect(screen.by("field-problem")).to_have_count(0)
    screen.run()
    assert json.loads(screen.raw_result()) == {"quotient": 0.5}


def test_the_server_judges_what_is_sent_against_the_forms_advice(visit: Visit) -> None:
    screen = visit()
    fill_order(screen)
    screen.field("sku").fill("lower-1")
    screen.start()
    expect(screen.by("field-problem")).to_have_count(1)
    screen.button("Send anyway").click()
    screen.expect_status("failed")
    expect(screen.by("result-error")).to_contain_text("Input validation failed")
    expect(screen.by("field-problem").filter(has_text="pattern")).not_to_have_count(0)


def test_a_module_that_fails_says_no_more_than_the_server_lets_out(visit: Visit) -> None:
    screen = visit()
    screen.open("math.divide")
    screen.field("dividend").fill("1")
    screen.field("divisor").fill("0")
    screen.run("failed")
    expect(screen.by("result-error")).to_contain_text("The tool failed")
    expect(screen.by("result-error")).to_contain_text("Internal error occurred")
    expect(screen.by("result-error")).not_to_contain_text("division")
