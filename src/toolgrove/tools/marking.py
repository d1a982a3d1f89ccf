"""Tags, which all agents share, and bookmarks, which belong to one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import islice

from toolgrove.errors import Unnamed
from toolgrove.tools.context import ToolContext
from toolgrove.tools.declaration import READS, SETS, Family
from toolgrove.tools.schema import COUNT, ID_LIST, PAGING, STRING, listing, names, node_id, record, text
from toolgrove.tree.effects import BookmarkChange
from toolgrove.tree.footprint import VIEW, of_node
from toolgrove.tree.tree import walk
from toolgrove.types import Arguments, Result

family = Family()
_LABEL = text("The bookmark's name.", minLength=1, maxLength=200)


@family.tool(
    SETS,
    arguments={
        "nodeId": node_id("The node to tag."),
        "tags": names("Tags to add."),
        "remove": names("Tags to take away."),
    },
    required=("nodeId", "tags"),
    returns={"nodeId": STRING, "tags": ID_LIST},
    rests_on=lambda tree, arguments: of_node(arguments["nodeId"]),
    example={"nodeId": "kitchen", "tags": ["urgent"]},
)
def tag_node(context: ToolContext, arguments: Arguments) -> Result:
    """Add tags to a node, or take some away; the answer has all its tags."""
    node = context.tree[arguments["nodeId"]]
    tags = (node.tags | frozenset(arguments["tags"])) - frozenset(arguments.get("remove", ()))
    context.limits.check("tags", len(tags), context.limits.tags)
    context.tree.tag(node, tags)
    return {"nodeId": node.id, "tags": sorted(tags)}


@family.tool(
    READS,
    arguments={"rootNodeId": node_id("Count at and below this node; the whole tree by default."), **PAGING},
    returns={"items": listing(record({"tag": STRING, "count": COUNT}, "tag", "count")), "nextPageToken": STRING},
    optional=("nextPageToken",),
    example={},
)
def list_tags(context: ToolContext, arguments: Arguments) -> Result:
    """List the tags there are, each with how many nodes carry it; the most common first."""
    tree = context.tree
    counts = {tag: len(held) for tag, held in tree.tagged.items()}
    if "rootNodeId" in arguments:
        counts = Counter(tag for node in walk(tree[arguments["rootNodeId"]]) for tag in node.tags)
    placed = sorted((-count, tag) for tag, count in counts.items())
    place = context.place(arguments)
    start = 0 if place is None else bisect_right(placed, (place[0], place[1]))
    items, more = context.page(
        arguments, islice(placed, start, None), list, lambda one: {"tag": one[1], "count": -one[0]}
    )
    return {"items": items, **more}


@family.tool(
    SETS,
    arguments={"nodeId": node_id("The node to remember."), "label": _LABEL},
    required=("nodeId", "label"),
    returns={"nodeId": STRING, "label": STRING},
    rests_on=lambda tree, arguments: VIEW | of_node(arguments["nodeId"]),
    example={"nodeId": "kitchen", "label": "start here"},
)
def bookmark(context: ToolContext, arguments: Arguments) -> Result:
    """Remember a node under a label of your own; an existing label moves to the node."""
    node, label = context.tree[arguments["nodeId"]], arguments["label"]
    own = context.workspace.bookmarks_of(context.caller)
    if own.get(label) != node.id:
        context.limits.check(
            "label", len({*own, label}), context.limits.bookmarks, "Remove bookmarks you no longer need."
        )
        context.changes.append(BookmarkChange(agent=context.caller.agent, label=label, node_id=node.id))
    return {"nodeId": node.id, "label": label}


@family.tool(
    READS,
    arguments={},
    returns={"items": listing(record({"label": STRING, "nodeId": STRING, "name": STRING}, "label", "nodeId"))},
    example={},
)
def list_bookmarks(context: ToolContext, arguments: Arguments) -> Result:
    """List your bookmarks by label."""
    own = context.workspace.bookmarks_of(context.caller)
    items = []
    for label, key in sorted(own.items()):
        name = context.tree[key].name
        items.append({"label": label, "nodeId": key, **({} if name is None else {"name": name})})
    return {"items": items}


@family.tool(
    SETS,
    arguments={"label": _LABEL},
    required=("label",),
    returns={"label": STRING, "nodeId": STRING},
    rests_on=lambda tree, arguments: VIEW,
    example={"label": "home"},
)
def remove_bookmark(context: ToolContext, arguments: Arguments) -> Result:
    """Forget a bookmark of yours."""
    own = context.workspace.bookmarks_of(context.caller)
    label = arguments["label"]
    if label not in own:
        raise Unnamed(kind="bookmark", name=label, known=list(own), where="list_bookmarks")
    context.changes.append(BookmarkChange(agent=context.caller.agent, label=label, node_id=None))
    return {"label": label, "nodeId": own[label]}
