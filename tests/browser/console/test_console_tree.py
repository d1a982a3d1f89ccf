"""The workspace in the browser: opened piece by piece, searched, changed, and followed while agents change it."""

import re

import pytest
from playwright.sync_api import Route, expect

from browser.console.hand import Hand, branch
from browser.console.page import ConsolePage, Visit

pytestmark = pytest.mark.browser


def test_nodes_open_as_they_are_asked_for(visit: Visit, house: str, writer: Hand) -> None:
    writer.plant(branch("crowd", *(branch(f"crowd-{number}") for number in range(450))))
    page = visit("tree", "writer")
    expect(page.row(house)).to_be_visible()
    expect(page.row(f"{house}-kitchen")).to_have_count(0)
    page.open_node(house)
    expect(page.row(f"{house}-kitchen")).to_be_visible()
    page.row(house).get_by_test_id("twist").click()
    expect(page.row(f"{house}-kitchen")).to_have_count(0)
    page.go("tree", "writer", "crowd")
    page.expect_node("crowd")
    page.open_node("crowd")
    expect(page.row("crowd-0")).to_be_visible()
    in_page = page.by("tree-row").count()
    assert in_page < 80, "only the rows in sight are in the page"
    tree = page.by("tree")
    tree.focus()
    for _ in range(2):
        page.page.keyboard.press("End")
        more = page.by("load-more")
        if more.count():
            more.click()
            expect(page.page.locator("[data-testid=load-more]", has_text="Loading")).to_have_count(0)
    page.show_node("writer", "crowd-449")
    expect(page.row("crowd-449")).to_have_attribute("aria-setsize", "450")


def test_a_node_that_was_never_opened_can_be_linked_to(visit: Visit, house: str) -> None:
    page = visit("tree", "writer", f"{house}-bath")
    page.expect_node(f"{house}-bath")
    expect(page.value("size")).to_have_text("6")
    expect(page.page.get_by_role("navigation", name="Way to the node")).to_contain_text(house)


def test_the_tree_is_walked_with_the_keyboard(visit: Visit, house: str) -> None:
    page = visit("tree", "writer", house)
    page.expect_node(house)
    press = page.page.keyboard.press
    page.by("tree").focus()
    press("ArrowRight")
    expect(page.row(f"{house}-kitchen")).to_be_visible()
    press("ArrowRight")
    press("ArrowDown")
    expect(page.by("tree")).to_have_attribute("aria-activedescendant", f"row-{house}-bath")
    press("Enter")
    page.expect_node(f"{house}-bath")
    press("ArrowLeft")
    expect(page.by("tree")).to_have_attribute("aria-activedescendant", f"row-{house}")
    press("ArrowLeft")
    expect(page.row(f"{house}-bath")).to_have_count(0)
    press("/")
    expect(page.by("dsl")).to_be_focused()


def test_nodes_are_found_by_a_query_and_its_faults_are_pointed_at(visit: Visit, house: str) -> None:
    page = visit("tree", "writer")
    query = page.by("dsl")
    query.fill("size > > 3")
    query.press("Enter")
    error = page.by("query-error")
    expect(error).to_be_visible()
    lines = error.inner_text().splitlines()
    caret = next(line for line in lines if line.strip() == "^")
    pointed = lines[lines.index(caret) - 1]
    assert pointed[caret.index("^")] == ">"
    query.fill(f"@type = Room and size > 8 and @id startswith {house}")
    query.press("Enter")
    hits = page.by("hit")
    expect(hits).to_have_count(2)
    hits.filter(has_text="hall").click()
    expect(page.by("node")).to_have_attribute("data-node", f"{house}-hall")
    page.button("Back to the tree").click()
    page.expect_node(f"{house}-hall")


def test_properties_are_set_one_by_one_and_together(visit: Visit, house: str, writer: Hand) -> None:
    kitchen = f"{house}-kitchen"
    page = visit()
    page.show_node("writer", kitchen)
    page.edit("status", "done")
    expect(page.value("status")).to_have_text("done")
    expect(page.button("Edit status")).to_be_focused()
    page.button("Edit size").click()
    page.field("Value of size").fill("{")
    page.button("Save").click()
    expect(page.by("property-form")).to_contain_text("Not JSON")
    page.field("Value of size").fill("14.50")
    page.button("Save").click()
    expect(page.value("size")).to_have_text(re.compile(r"14\.50?"))
    page.by("add-property").click()
    page.field("Name").fill("colour")
    page.field("Value").fill("blue")
    page.button("Save").click()
    expect(page.value("colour")).to_have_text("blue")
    page.by("edit-json").click()
    text = page.field("Properties as JSON")
    text.fill(text.input_value().replace('"blue"', '["red", "green"]'))
    page.button("Save").click()
    expect(page.value("colour")).to_contain_text("green")
    assert writer.payload(kitchen) == {"name": kitchen, "status": "done", "size": 14.5, "colour": ["red", "green"]}


def test_nodes_are_added_moved_tagged_removed_and_brought_back(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("writer", house)
    page.by("node-add").click()
    page.field("Type").fill("Task")
    page.field("name").fill("Paint the door")
    page.field("hours").fill("3")
    page.by("add-dialog").get_by_role("button", name="Add", exact=True).click()
    expect(page.by("node")).not_to_have_attribute("data-node", house)
    expect(page.by("node")).to_contain_text("Paint the door")
    task = page.by("node").get_attribute("data-node") or ""
    assert writer.payload(task) == {"name": "Paint the door", "hours": 3}
    page.by("node-move").click()
    page.by("move-dialog").get_by_role("textbox").fill(f"{house}-hall")
    page.by("move-target").click()
    page.expect_node(task)
    assert writer.ok("get_node", nodeId=task)["parentId"] == f"{house}-hall"
    page.field("Add a tag").fill("urgent")
    page.page.keyboard.press("Enter")
    expect(page.by("tags")).to_contain_text("urgent")
    assert [hit["nodeId"] for hit in writer.ok("query_by_tag", tag="urgent")["items"]] == [task]
    page.button("Remove the tag urgent").click()
    expect(page.by("tags")).not_to_contain_text("urgent")
    page.by("undo").click()
    expect(page.by("tags")).to_contain_text("urgent")
    page.by("redo").click()
    expect(page.by("tags")).not_to_contain_text("urgent")
    page.show_node("writer", f"{house}-bath")
    page.button("Move up").click()
    expect(page.button("Move up")).to_be_disabled()
    rooms = [room["nodeId"] for room in writer.ok("list_children", nodeId=house)["items"]]
    assert rooms == [f"{house}-bath", f"{house}-kitchen", f"{house}-hall"]


def test_a_removal_waits_for_an_approval_and_then_happens_once(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("writer", f"{house}-bath")
    page.by("node-remove").click()
    page.by("remove-dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.by("notice")).to_have_attribute("data-kind", "approval")
    page.page.get_by_role("link", name="Look at it first").click()
    expect(page.by("approval-arguments")).to_contain_text(f"{house}-bath")
    page.by("approve").click()
    expect(page.by("decided")).to_be_visible()
    page.page.go_back()
    expect(page.by("notice")).to_contain_text("Approved")
    page.by("again").click()
    expect(page.by("notice")).to_have_count(0)
    expect(page.row(f"{house}-bath")).to_have_count(0)
    assert writer.refused("get_node", nodeId=f"{house}-bath")["code"] == "not_found"
    page.by("undo").click()
    expect(page.row(f"{house}-bath")).to_be_visible()


def test_a_person_who_is_asked_at_once_answers_in_the_tree(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("asker", f"{house}-bath")
    page.by("node-remove").click()
    page.by("remove-dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.by("question")).to_contain_text(f"{house}-bath")
    page.by("question").get_by_role("radio", name="true").check()
    page.button("Answer").click()
    expect(page.row(f"{house}-bath")).to_have_count(0)
    assert writer.refused("get_node", nodeId=f"{house}-bath")["code"] == "not_found"


def test_snapshots_are_taken_compared_and_gone_back_to(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    page.tab("Snapshots").click()
    page.field("Label of the new snapshot").fill(f"before {house}")
    page.button("Take").click()
    expect(page.by("snapshot").filter(has_text=f"before {house}")).to_be_visible()
    writer.ok("update_payload_property", nodeId=f"{house}-kitchen", propertyName="status", newValue="done")
    writer.ok("move_node", nodeId=f"{house}-bath", newParentId=f"{house}-hall")
    added = writer.ok("add_child", parentNodeId=house, payloadType="Room", payloadProps={"name": "Attic"})["nodeId"]
    page.field("From").select_option(label=f"before {house}")
    page.by("compare").click()
    entries = page.by("diff-entry")
    kinds = {(house_id, kind) for house_id, kind in _entries(page)}
    assert kinds == {(f"{house}-kitchen", "changed"), (f"{house}-bath", "moved"), (added, "added")}
    expect(entries.filter(has_text="kitchen")).to_contain_text("open")
    expect(entries.filter(has_text="kitchen")).to_contain_text("done")
    page.button(f"Restore before {house}").click()
    page.by("restore-dialog").get_by_role("button", name="Restore", exact=True).click()
    page.tab("Node").click()
    expect(page.value("status")).to_have_text("open")
    assert writer.refused("get_node", nodeId=added)["code"] == "not_found"


def _entries(page: ConsolePage) -> list[tuple[str, str]]:
    expect(page.by("difference")).to_be_visible()
    script = "all => all.map(one => [one.dataset.node, one.dataset.kind])"
    return [(str(node), str(kind)) for node, kind in page.by("diff-entry").evaluate_all(script)]


def test_a_long_comparison_names_every_node(visit: Visit, house: str, writer: Hand) -> None:
    attic = f"{house}-attic"
    boxes = [branch(f"{attic}-{number}", name=f"Box {number}") for number in range(45)]
    writer.ok("import_merge", json=branch(house, branch(attic, *boxes, name="Attic"), type="House"), strategy="upsert")
    page = visit()
    page.show_node("writer", house)
    page.tab("Snapshots").click()
    page.field("Label of the new snapshot").fill(attic)
    page.button("Take").click()
    moves = [{"op": "move", "at": f"{attic}-{number}", "parentId": f"{house}-hall"} for number in range(45)]
    sets = [{"op": "set", "at": f"{attic}-{number}", "path": "full", "value": True} for number in range(45)]
    writer.ok("apply_changes", changes=[*moves, *sets])
    page.field("From").select_option(attic)
    page.by("compare").click()
    moved = page.page.locator('[data-testid=diff-entry][data-kind="moved"]')
    expect(moved).to_have_count(45)
    assert [
        text for text in moved.all_inner_texts() if not text.startswith("Box ") or "from Attic to" not in text
    ] == []


def test_what_agents_do_shows_at_once_with_who_did_it(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("reader", house)
    page.open_node(house)
    writer.ok("update_payload_property", nodeId=f"{house}-hall", propertyName="name", newValue="Great hall")
    expect(page.row(f"{house}-hall")).to_contain_text("Great hall")
    expect(page.row(f"{house}-hall").get_by_test_id("tree-mark")).to_contain_text("writer · update_payload_property")
    added = writer.ok("add_child", parentNodeId=house, payloadType="Room", payloadProps={"name": "Attic"})["nodeId"]
    expect(page.row(added)).to_be_visible()
    writer.ok("move_node", nodeId=f"{house}-bath", newParentId=f"{house}-hall")
    expect(page.row(f"{house}-bath")).to_have_count(0)
    expect(page.row(f"{house}-hall").locator(".tree-count")).to_have_text("1")
    writer.ok("undo")
    expect(page.row(f"{house}-bath")).to_be_visible()
    page.tab("Changes").click()
    expect(page.by("changes").locator("li")).to_have_count(4)


def test_a_reader_is_offered_nothing_that_it_may_not_do(visit: Visit, house: str) -> None:
    page = visit()
    page.show_node("reader", f"{house}-kitchen")
    expect(page.value("status")).to_have_text("open")
    for name in ("Edit status", "Add", "Move", "Remove"):
        expect(page.button(name)).to_have_count(0)
    expect(page.by("undo")).to_be_disabled()


def test_a_change_by_someone_else_is_not_overwritten_unseen(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    kitchen = f"{house}-kitchen"
    page.show_node("writer", kitchen)
    page.button("Edit status").click()
    writer.ok("update_payload_property", nodeId=kitchen, propertyName="status", newValue="sold")
    expect(page.by("changed-meanwhile")).to_be_visible()
    page.field("Value of status").fill("mine")
    page.button("Save").click()
    expect(page.by("notice")).to_have_attribute("data-kind", "conflict")
    expect(page.by("notice")).to_contain_text("by writer")
    assert writer.payload(kitchen)["status"] == "sold"
    expect(page.value("status")).to_have_text("sold")
    page.by("again").click()
    expect(page.value("status")).to_have_text("mine")
    page.button("Edit status").click()
    writer.ok("update_payload_property", nodeId=f"{house}-hall", propertyName="status", newValue="sold")
    page.field("Value of status").fill("still mine")
    page.button("Save").click()
    expect(page.value("status")).to_have_text("still mine")
    expect(page.by("notice")).to_have_count(0)


def test_an_answer_that_got_lost_is_asked_for_again_without_a_second_effect(
    visit: Visit, house: str, writer: Hand
) -> None:
    page = visit()
    page.show_node("writer", house)
    lost: list[str] = []

    def lose(route: Route) -> None:
        if not lost and "add_child" in (route.request.post_data or ""):
            lost.append("once")
            route.fetch()
            route.abort("connectionreset")
        else:
            route.continue_()

    page.page.route("**/agents/writer/mcp", lose)
    page.by("node-add").click()
    page.field("Type").fill("Room")
    page.by("add-dialog").get_by_label("Properties").fill('{"name": "Attic"}')
    page.by("add-dialog").get_by_role("button", name="Add", exact=True).click()
    expect(page.by("notice")).to_have_attribute("data-kind", "unknown")
    page.by("again").click()
    expect(page.by("notice")).to_have_count(0)
    names = [room["payload"]["name"] for room in writer.ok("list_children", nodeId=house)["items"]]
    assert names.count("Attic") == 1
    assert {"ERR_CONNECTION_RESET" in line for line in page.noise} == {True}
    page.forgive_refusals()


def test_the_tree_is_edited_as_in_an_editor(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    press = page.page.keyboard.press
    rooms = [f"{house}-{room}" for room in ("kitchen", "bath", "hall")]

    def order(*ids: str) -> None:
        expect(page.row(house)).to_be_visible()
        wanted = re.compile(".*".join(re.escape(f"{one}Room") for one in ids), re.DOTALL)
        expect(page.by("tree")).to_contain_text(wanted)
        assert [one["nodeId"] for one in writer.ok("list_children", nodeId=house)["items"]] == list(ids)

    page.by("tree").focus()
    press("Alt+ArrowDown")
    order(rooms[1], rooms[0], rooms[2])
    press("F2")
    page.by("name-field").fill("Larder")
    press("Enter")
    expect(page.row(rooms[0])).to_contain_text("Larder")
    assert writer.payload(rooms[0])["name"] == "Larder"
    expect(page.by("tree")).to_be_focused()
    press("F2")
    page.by("name-field").fill("Never")
    press("Escape")
    expect(page.row(rooms[0])).to_contain_text("Larder")
    page.row(rooms[2]).drag_to(page.row(rooms[1]), target_position={"x": 60, "y": 2})
    expect(page.row(rooms[2])).to_have_attribute("aria-posinset", "1")
    page.row(rooms[2]).drag_to(page.row(rooms[0]), target_position={"x": 60, "y": 15})
    expect(page.row(rooms[2])).to_have_count(0)
    assert writer.ok("get_node", nodeId=rooms[2])["parentId"] == rooms[0]
    page.row(rooms[1]).click(button="right")
    expect(page.by("context-menu")).to_contain_text("Rename")
    page.page.get_by_role("menuitem", name="Move down").click()
    expect(page.row(rooms[1])).to_have_attribute("aria-posinset", "2")


def test_several_nodes_are_chosen_and_moved_together_never_into_themselves(
    visit: Visit, house: str, writer: Hand
) -> None:
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    page.row(f"{house}-bath").click(modifiers=["Control"])
    for room in ("kitchen", "bath"):
        expect(page.row(f"{house}-{room}")).to_have_attribute("aria-selected", "true")
    page.row(f"{house}-bath").click(button="right")
    page.page.get_by_role("menuitem", name="Move all…", exact=True).click()
    expect(page.by("move-dialog")).to_contain_text("Move 2 nodes")
    targets = page.by("move-target")
    expect(targets.first).to_be_visible()
    offered = {target.get_attribute("data-node") for target in targets.all()}
    assert f"{house}-hall" in offered
    assert not offered & {f"{house}-kitchen", f"{house}-bath", house}
    page.page.locator(f'[data-testid=move-target][data-node="{house}-hall"]').click()
    expect(page.row(f"{house}-kitchen")).to_have_count(0)
    below = [one["nodeId"] for one in writer.ok("list_children", nodeId=f"{house}-hall")["items"]]
    assert below == [f"{house}-kitchen", f"{house}-bath"]
    page.by("tree").focus()
    page.row(house).click()
    page.page.keyboard.press("Delete")
    expect(page.by("remove-dialog")).to_contain_text("everything below")
    page.button("Keep it").click()


def test_undo_names_what_it_takes_back_and_asks_before_it_takes_back_the_agents_own_change(
    visit: Visit, house: str, writer: Hand
) -> None:
    writer.ok("update_payload_property", nodeId=f"{house}-bath", propertyName="name", newValue="Sauna")
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    page.edit("name", "Larder")
    expect(page.row(f"{house}-kitchen")).to_contain_text("Larder")
    page.by("undo").hover()
    expect(page.by("undo")).to_have_attribute("title", re.compile(r"Undo: rename Larder, by you, \d+ s ago"))
    page.by("undo").click()
    expect(page.row(f"{house}-kitchen")).to_contain_text(f"{house}-kitchen")
    expect(page.by("toast")).to_contain_text("Undo: rename")
    page.by("toast-action").click()
    expect(page.row(f"{house}-kitchen")).to_contain_text("Larder")
    page.by("undo").click()
    expect(page.row(f"{house}-kitchen")).to_contain_text(f"{house}-kitchen")
    page.by("undo").click()
    expect(page.by("undo-dialog")).to_contain_text("rename Sauna, made by writer")
    page.button("Keep it").click()
    assert writer.payload(f"{house}-bath")["name"] == "Sauna"
    page.by("undo").click()
    page.by("undo-dialog").get_by_role("button", name="Undo it").click()
    expect(page.row(f"{house}-bath")).to_contain_text(f"{house}-bath")


def test_an_undo_that_was_agreed_to_takes_back_that_change_or_none(visit: Visit, house: str, writer: Hand) -> None:
    writer.ok("update_payload_property", nodeId=f"{house}-bath", propertyName="name", newValue="Sauna")
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    page.by("undo").click()
    expect(page.by("undo-dialog")).to_contain_text("rename Sauna")
    writer.ok("update_payload_property", nodeId=f"{house}-hall", propertyName="name", newValue="Lobby")
    page.by("undo-dialog").get_by_role("button", name="Undo it").click()
    expect(page.by("notice")).to_contain_text("another change in the meantime, so nothing was done")
    assert [writer.payload(f"{house}-{room}")["name"] for room in ("bath", "hall")] == ["Sauna", "Lobby"]


def test_what_an_agent_took_back_is_not_done_again_without_a_question(visit: Visit, house: str, writer: Hand) -> None:
    writer.ok("update_payload_property", nodeId=f"{house}-bath", propertyName="name", newValue="Sauna")
    writer.ok("undo")
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    page.by("redo").click()
    expect(page.by("undo-dialog")).to_contain_text(f"rename {house}-bath, undone by writer")
    page.button("Leave it").click()
    assert writer.payload(f"{house}-bath")["name"] == f"{house}-bath"
    page.by("redo").click()
    page.button("Redo it").click()
    expect(page.by("toast")).to_contain_text("Redo: rename")
    assert writer.payload(f"{house}-bath")["name"] == "Sauna"


def test_a_node_tells_its_history_and_who_last_set_what(visit: Visit, house: str, writer: Hand) -> None:
    writer.ok("update_payload_property", nodeId=f"{house}-bath", propertyName="size", newValue=7)
    page = visit()
    page.show_node("writer", f"{house}-bath")
    page.edit("status", "closed")
    page.tab("History").click()
    expect(page.by("happening").first).to_contain_text("you, as writer")
    expect(page.by("happening").first).to_contain_text("status: open closed")
    expect(page.by("happening").nth(1)).to_contain_text("size: 6 7")
    expect(page.page.locator('[data-testid=blame][data-property="size"]')).to_contain_text("writer,")
    expect(page.page.locator('[data-testid=blame][data-property="status"]')).to_contain_text("you, as writer")
    page.by("happening").nth(1).get_by_role("link", name="update_payload_property").click()
    expect(page.page).to_have_url(re.compile("#/calls/"))


def test_keys_undo_and_redo_as_in_an_editor(visit: Visit, house: str, writer: Hand) -> None:
    page = visit()
    page.show_node("writer", f"{house}-hall")
    page.edit("name", "Lobby")
    row = page.row(f"{house}-hall")
    expect(row).to_contain_text("Lobby")
    page.by("tree").press("Control+z")
    expect(row).to_contain_text(f"{house}-hall")
    page.by("tree").press("Control+Shift+z")
    expect(row).to_contain_text("Lobby")
    assert writer.payload(f"{house}-hall")["name"] == "Lobby"
    page.go("tree", "writer", "nobody-has-this-id")
    expect(page.by("toast")).to_contain_text("There is no node nobody-has-this-id")


def test_what_is_chosen_together_is_counted_and_acted_on_from_one_bar(visit: Visit, house: str) -> None:
    page = visit()
    page.show_node("writer", f"{house}-kitchen")
    page.row(f"{house}-bath").click(modifiers=["Control"])
    expect(page.by("chosen-bar")).to_contain_text("2 nodes chosen")
    page.by("chosen-bar").get_by_role("button", name="Move…", exact=True).click()
    expect(page.by("move-dialog")).to_contain_text("2 nodes")
    page.page.keyboard.press("Escape")
    page.by("chosen-bar").get_by_role("button", name="Clear").click()
    expect(page.by("chosen-bar")).to_have_count(0)


def test_the_tree_is_searched_while_one_types_and_the_query_is_completed(
    visit: Visit, house: str, writer: Hand
) -> None:
    page = visit("tree", "writer")
    query = page.by("dsl")
    query.press_sequentially(f"{house}-ki")
    expect(page.by("hit")).to_have_count(1)
    query.fill("")
    expect(page.row("root")).to_be_visible()
    query.press_sequentially("@type = Ro")
    offers = page.by("offer")
    expect(offers.filter(has_text="Room")).to_be_visible()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    expect(query).to_have_value(re.compile("@type = Ro(om|ot)"))
    expect(page.by("hits")).to_have_attribute("data-state", "found")
