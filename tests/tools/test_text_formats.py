"""Subtrees as Markdown, OPML, CSV, Mermaid and outlines: out and back in, and hostile texts, which can do nothing."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove

pytestmark = pytest.mark.anyio
FORMATS = ("outline", "markdown", "opml", "csv", "mermaid")
Shape = list[Any]


async def grown(document: dict[str, Any]) -> Hand:
    editor = await hand(Grove(config()))
    await editor.ok("import_merge", json=document, strategy="upsert")
    return editor


async def exported(editor: Hand, form: str, node: str = "root", **options: Any) -> str:
    answer = await editor.ok("export_subtree", nodeId=node, format=form, **options)
    assert "json" not in answer
    return str(answer["text"])


async def shape(editor: Hand, node: str = "root") -> Shape:
    """The names below a node, nested."""
    document = json.loads((await editor.ok("export_subtree", nodeId=node))["json"])
    return [names(child) for child in document.get("children", ())]


def names(item: dict[str, Any]) -> Shape:
    return [item["payload"].get("name") or item["nodeId"], [names(child) for child in item.get("children", ())]]


MARKUP = ["- item", "# head", "1. one", "*b* [l](u) `c` ~~s~~", "<br>", "&#10;", "&amp;", "\\", "\\n", "]]>"]
UNSEEN = [" ", "a\nb", "\tx", "\x00\x1f", "é\u2028\x85", "\ufeff", "\r", "\u202eabc"]
CELLS = ["=1+1", "'q", '"', "a,b;c", "true", "007", "-", "+", "…", "名前", "<!-- cut: 5 nodes are missing -->"]
ODD = [*MARKUP, *UNSEEN, *CELLS]
NAMES = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
TREES: st.SearchStrategy[Any] = st.recursive(
    st.tuples(NAMES, st.just([])), lambda inner: st.tuples(NAMES, st.lists(inner, max_size=3)), max_leaves=8
)
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), NAMES
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=3,
)


def document_of(tree: Any) -> dict[str, Any]:
    name, children = tree
    return {"payloadType": "T", "payload": {"name": name}, "children": [document_of(child) for child in children]}


@settings(max_examples=15, deadline=None)
@given(TREES)
def test_markdown_and_opml_keep_names_and_nesting(tree: Any) -> None:
    async def law() -> None:
        editor = await grown({**document_of(tree), "nodeId": "top"})
        expected = await shape(editor)
        for form in ("markdown", "opml"):
            text = await exported(editor, form, "top")
            other = await hand(Grove(config()))
            await other.ok("import_merge", text=text, format=form, payloadType="T", strategy="upsert")
            assert await shape(other) == expected, text
            ids = {"markdown": "- ", "opml": "<outline"}
            assert ids[form] in text

    anyio.run(law)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.one_of(NAMES, st.sampled_from(["name", "nodeId", "tags"])), VALUES, max_size=3),
            st.sets(NAMES.filter(bool), max_size=2),
            st.integers(0, 9),
            st.sampled_from(["T", "=T", "T, U"]),
        ),
        max_size=5,
    )
)
def test_csv_keeps_properties_tags_ids_and_order(rows: list[Any]) -> None:
    async def law() -> None:
        items: list[dict[str, Any]] = [{"nodeId": "@top", "payloadType": "T", "payload": {}}]
        for at, (payload, tags, above, kind) in enumerate(rows):
            parent = items[above % len(items)]["nodeId"]
            items.append(
                {"nodeId": f"-{at}", "parentId": parent, "payloadType": kind, "payload": payload, "tags": [*tags]}
            )
        editor = await grown({"items": items})
        text = await exported(editor, "csv", "@top")
        other = await hand(Grove(config()))
        await other.ok("import_merge", text=text, format="csv", strategy="replace")
        whole = [json.loads((await one.ok("export_subtree", nodeId="@top"))["json"]) for one in (editor, other)]
        assert whole[0] == whole[1], text
        again = await other.ok("import_merge", text=text, format="csv", strategy="upsert")
        assert (again["createdCount"], again["updatedCount"]) == (0, 0)

    anyio.run(law)


async def test_every_format_of_the_sample_reads_as_people_expect() -> None:
    _, editor = await sample()
    assert (await exported(editor, "markdown", "house")).splitlines() == [
        "- House",
        "  - Kitchen",
        "  - Living Room",
        "  - Bath Room",
    ]
    assert (await exported(editor, "outline", "house")).splitlines()[1].startswith("  kitchen Room {")
    mermaid = (await exported(editor, "mermaid", "house")).splitlines()
    assert mermaid[:4] == ["flowchart TD", '  n0["House"]', '  n1["Kitchen"]', "  n0 --> n1"]
    opml = ElementTree.fromstring(await exported(editor, "opml", "house"))
    assert [outline.get("text") for outline in opml.iter("outline")] == ["House", "Kitchen", "Living Room", "Bath Room"]
    csv = (await exported(editor, "csv", "house")).split("\r\n")
    assert csv[0].startswith("nodeId,parentId,payloadType,tags,name,")
    assert csv[2].startswith('kitchen,house,Room,"[""urgent""]",Kitchen,')


async def test_no_cell_of_a_table_is_a_formula_and_no_name_is_markup() -> None:
    evil = ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", '"];click n0 "javascript:x', "<script>x</script>"]
    editor = await grown(
        {
            "nodeId": "t",
            "payloadType": "T",
            "children": [{"payloadType": "T", "payload": {"name": one}} for one in evil],
        }
    )
    for line in (await exported(editor, "csv", "t")).split("\r\n")[1:-1]:
        for cell in line.replace('"', "").split(","):
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), line
    for form in ("markdown", "opml", "mermaid"):
        assert "<script" not in (await exported(editor, form, "t")).replace("\\<script", "").replace("&lt;", "")
    assert '"]' not in "".join(line[:-2] for line in (await exported(editor, "mermaid", "t")).splitlines())


async def test_headings_numbers_and_continued_lines_of_a_markdown_text_are_understood() -> None:
    text = (
        "# Plan\n\n1. Buy\n   milk\n   * oat\n\t* soy\n2) Rest\n\n## Later\n- [x] Sleep **well**\n<!-- a comment -->\n"
    )
    editor = await hand(Grove(config()))
    await editor.ok("import_merge", text=text, format="markdown", payloadType="Task", strategy="upsert")
    assert await shape(editor) == [
        ["Plan", [["Buy milk", [["oat", []], ["soy", []]]], ["Rest", []], ["Later", [["[x] Sleep **well**", []]]]]]
    ]


async def test_a_long_line_of_blanks_takes_no_longer_than_any_other() -> None:
    editor = await hand(Grove(config()))
    blanks = " " * 50_000
    text = f"# a{blanks}b ##\n- c{blanks}d\n<!--{blanks}-->\n# #\n"
    await editor.ok("import_merge", text=text, format="markdown", payloadType="T", strategy="upsert")
    assert (await shape(editor))[0] == [f"a{blanks}b", [[f"c{blanks}d", []]]]
    unclosed = 'name\n"' + '""' * 50_000 + "x"
    error = await editor.refused("import_merge", text=unclosed, format="csv", payloadType="T", strategy="upsert")
    assert error["line"] == 2


async def test_a_text_that_meets_nodes_by_path_keeps_their_types_properties_and_tags() -> None:
    _, editor = await sample()
    await editor.ok("tag_node", nodeId="kitchen", tags=["urgent"])
    before = await editor.tree()
    text = await exported(editor, "markdown", "house")
    for strategy in ("upsert", "replace", "skip"):
        into = {"parentNodeId": "property", "matchBy": "path", "payloadType": "X", "format": "markdown"}
        done = await editor.ok("import_merge", text=text, strategy=strategy, **into)
        assert (done["createdCount"], done["updatedCount"], done["removedCount"]) == (0, 0, 0)
        assert await editor.tree() == before
    done = await editor.ok("import_merge", text=text + "  - Attic\n", strategy="upsert", **into)
    attic = await editor.ok("get_node", nodeId=done["created"][0])
    assert (attic["parentId"], attic["payloadType"], attic["payload"]) == ("house", "X", {"name": "Attic"})


@pytest.mark.parametrize("form", ["json", *FORMATS])
async def test_a_text_that_was_cut_says_so_and_replaces_nothing(form: str) -> None:
    children = [{"nodeId": f"c{at}", "payloadType": "T", "payload": {"name": f"Child {at}"}} for at in range(500)]
    editor = await grown({"nodeId": "t", "payloadType": "T", "payload": {"name": "Top"}, "children": children})
    field = "json" if form == "json" else "text"
    cut = await editor.ok("export_subtree", nodeId="t", format=form, maxTokens=1_000)
    assert len(json.dumps(cut)) / 4 <= 1_000
    assert '"cut"' in cut[field] if form == "json" else f"cut: {cut['cut']['nodes']} nodes are missing" in cut[field]
    assert sum(f"Child {at}" in cut[field] for at in (0, 499)) == 1
    whole = await editor.ok("export_subtree", nodeId="t", format=form, maxTokens=10**6)
    assert "cut" not in whole
    assert whole[field] == (await editor.ok("export_subtree", nodeId="t", format=form))[field]
    if form in ("outline", "mermaid"):
        return
    given = {"json": cut["json"]} if form == "json" else {"text": cut["text"], "format": form, "payloadType": "T"}
    error = await editor.refused("import_merge", **given, strategy="replace", matchBy="path")
    assert "was cut" in error["message"]
    await editor.ok("import_merge", **given, strategy="upsert", matchBy="path")
    assert len(await shape(editor, "t")) == 500


BOMB = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><opml><body><outline text="&b;"/></body></opml>'
OUTSIDE = '<!DOCTYPE l SYSTEM "file:///etc/passwd"><opml><body><outline text="x"/></body></opml>'
DEEP = "<opml><body>" + '<outline text="x">' * 6_000 + "</outline>" * 6_000 + "</body></opml>"


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("opml", BOMB, "DTD"),
        ("opml", OUTSIDE, "DTD"),
        ("opml", "<opml><body><outline text='x'>", "well-formed"),
        ("opml", "<opml><body/></opml>", "no node"),
        ("opml", DEEP, "5000 levels deep"),
        ("markdown", "just a sentence", "Line 1"),
        ("markdown", "", "no node"),
        ("csv", 'name\n"open', "never closed"),
        ("csv", "name,name\na,b", "twice"),
        ("csv", "name\na,b", "2 cells for 1 columns"),
        ("csv", "name\n", "no row"),
        ("csv", "nodeId,payloadType\na,T\na,T", "more than once"),
        ("csv", "nodeId,parentId,payloadType\na,b,T\nb,a,T", "circle"),
        ("csv", "tags,payloadType\n[1],T", "tags"),
    ],
)
async def test_a_text_that_cannot_be_read_is_refused_with_its_line_and_changes_nothing(
    form: str, text: str, words: str
) -> None:
    editor = await hand(Grove(config()))
    error = await editor.refused("import_merge", text=text, format=form, payloadType="T", strategy="upsert")
    assert error["code"] == "invalid_argument"
    assert words in error["message"]
    assert await shape(editor) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either json, or text"),
        ({"json": {"payloadType": "T"}, "text": "- a", "format": "markdown"}, "either json, or text"),
        ({"text": "- a"}, "in which format"),
        ({"text": "- a", "format": "markdown"}, "payloadType"),
        ({"text": "name\na", "format": "csv"}, "payloadType"),
    ],
)
async def test_an_import_says_what_it_needs(arguments: dict[str, Any], words: str) -> None:
    editor = await hand(Grove(config()))
    assert words in (await editor.refused("import_merge", **arguments, strategy="upsert"))["message"]


async def test_a_text_is_bounded_in_nodes() -> None:
    editor = await hand(Grove(config(workspace={"limits": {"importNodes": 3}})))
    for form, text in (("markdown", "- a\n" * 4), ("csv", "name\na\na\na\na")):
        error = await editor.refused("import_merge", text=text, format=form, payloadType="T", strategy="upsert")
        assert "3" in error["message"]


async def test_a_table_written_by_hand_is_understood() -> None:
    editor = await hand(Grove(config()))
    text = '\ufeffname,hours,tags,note\r\nPaint,3,red; big,NaN\r\n\'007,2.5,,"two\nlines"\r\n'
    await editor.ok("import_merge", text=text, format="csv", payloadType="Task", strategy="upsert")
    document = json.loads((await editor.ok("export_subtree", nodeId="root"))["json"])
    assert [child["payload"] for child in document["children"]] == [
        {"name": "Paint", "hours": 3, "note": "NaN"},
        {"name": "007", "hours": 2.5, "note": "two\nlines"},
    ]
    assert document["children"][0]["tags"] == ["big", "red"]
