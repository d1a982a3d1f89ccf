"""A machine that drives all tools, several agents, stale versions, replays and limits against a nested-dict model."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import jsonschema_rs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from grove_kit import ManualClock
from naive_workspace import MUTATIONS, NaiveWorkspace, Refusal, flat
from toolgrove import Config, Grove
from toolgrove.store.audit import verify
from toolgrove.tools import DECLARATIONS

AGENTS: dict[str, dict[str, Any]] = {
    "ann": {"role": "editor"},
    "bob": {"role": "editor"},
    "tenant": {"role": "editor", "writeRoot": "n1"},
    "reader": {"role": "reader"},
    "frozen": {"role": "editor", "readOnly": True},
    "hasty": {"role": "editor", "rate": 5},
}
RULES = [
    {"id": "sized", "types": ["T"], "required": ["size"]},
    {"id": "few", "types": ["U"], "cardinality": {"max": 2}},
    {"id": "named", "severity": "warning", "types": ["T"], "required": ["name"]},
]
VALUES = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([1.0, True, False, None, "a", "B", "b c", "1", [1, "a"], {"kind": "x"}, [{"x": 1}, {"x": "b"}]]),
)
NAMES = st.sampled_from(["name", "size", "meta", "list", "a"])
PAYLOADS = st.dictionaries(NAMES, VALUES, max_size=3)
WRITTEN = st.sampled_from(["name", "size", "SIZE", "meta", "meta.kind", "meta.a.b", "list.x", "list"])
PATCHES = st.dictionaries(WRITTEN, VALUES, max_size=3)
DROPS: st.SearchStrategy[Any] = st.one_of(
    st.just({}), st.just({}), st.lists(WRITTEN, max_size=2).map(lambda paths: {"remove": paths})
)
PATHS = st.sampled_from(["name", "size", "SIZE", "meta.kind", "list.x", "list", "nothing"])
FILTERS = st.lists(PATHS.map(str.lower), max_size=2, unique=True)
QUERIES = st.sampled_from(
    [
        "size > 0",
        "//*[@depth = 2] | //a",
        "/*/*[@index >= 1]",
        "not exists size and @childCount > 0",
        "ancestor(size = 1) or descendant(name = a)",
        "@tag = red or @type = U",
        "#n1//*[size in (1, 2, a)]",
        "name contains B",
        "parent(@type = T) and size != 1",
    ]
)
PLAIN = st.fixed_dictionaries({"path": PATHS, "op": st.sampled_from(["eq", "contains"]), "value": VALUES})
ORDERED = st.one_of(
    st.fixed_dictionaries(
        {"path": PATHS, "op": st.sampled_from(["gt", "lt"]), "value": st.sampled_from([0, 1, 1.5, "a", "b"])}
    ),
    st.fixed_dictionaries(
        {"path": PATHS, "op": st.just("between"), "value": st.sampled_from([[0, 1], [2, 1], ["a", "c"], [1, "a"]])}
    ),
)
PREDICATES = st.recursive(
    PLAIN | ORDERED,
    lambda inner: st.lists(inner, min_size=1, max_size=2).flatmap(
        lambda parts: st.sampled_from([{"and": parts}, {"or": parts}])
    ),
    max_leaves=3,
)
LABELS = st.sampled_from(["x", "y"])
MAYBE = st.booleans()
COUNTED = st.sampled_from([{}, {"count": True}])
SCHEMAS = {name: jsonschema_rs.validator_for(dict(tool.spec.output_schema)) for name, tool in DECLARATIONS.items()}


def three(*tools: str) -> Any:
    return st.lists(st.sampled_from(tools), min_size=3, max_size=3)


def optional(**choices: Any) -> Any:
    return st.fixed_dictionaries({}, optional=choices)


class Workspace(RuleBasedStateMachine):
    """One grove and its model, side by side."""

    concurrency = "tree"
    long_after: float | None = None
    """For how many microseconds a call may stop the others; None leaves it as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.clock.wall = lambda: 1_800_000_000.0  # type: ignore[method-assign]
        config = {
            "agents": {
                name: {
                    "tools": ["*"],
                    "role": one["role"],
                    "readOnly": one.get("readOnly", False),
                    "writeRoot": one.get("writeRoot"),
                    "rateLimit": f"{one['rate']}/minute" if "rate" in one else None,
                }
                for name, one in AGENTS.items()
            },
            "workspace": {"rulesets": {"rules": RULES}, "concurrency": self.concurrency},
        }
        self.config = Config.model_validate(self.configured(config))
        self.grove = self.opened()
        self.model = NaiveWorkspace(AGENTS, RULES, self.concurrency)
        self.runner = asyncio.Runner()
        self.tokens: dict[int, str] = {}
        self.count = 0
        self.documents: list[Any] = []
        self.views: list[Any] = []

    def opened(self) -> Grove:
        grove = Grove(self.config, clock=self.clock)
        if self.long_after is not None:
            grove._tree_tools.long_after = self.long_after
        return grove

    def configured(self, config: dict[str, Any]) -> dict[str, Any]:
        """Where a machine with other settings changes them."""
        return config

    def teardown(self) -> None:
        self.runner.close()
        assert len(self.grove.audit) == self.count
        assert verify(self.grove.audit.lines()) is None

    def real(self, who: tuple[str, str], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.count += 1

        async def call() -> dict[str, Any]:
            agent = await self.grove.agent(who[0], session=who[1])
            return await agent.call(tool, arguments)

        return self.runner.run(call())

    # Comparing --------------------------------------------------------------------------------------

    def both(
        self, who: tuple[str, str], tool: str, arguments: dict[str, Any], token: int | None = None, **options: Any
    ) -> None:
        if tool in MUTATIONS and self.model.is_unsure(tool, arguments, token):
            return
        asked = {**copy.deepcopy(arguments), **options.get("real", {})}
        if tool in MUTATIONS and token is not None:
            asked["versionToken"] = self.tokens.get(token, "nonsense")
        before = copy.deepcopy(self.model.root)
        try:
            expected, seq = self.model.call(
                who, tool, {**copy.deepcopy(arguments), **options.get("naive", {})}, token, self.clock.now
            )
        except Refusal as refusal:
            answer = self.real(who, tool, asked)
            if refusal.code == "interleaved":
                self.take_over(who, tool, answer)
            else:
                self.refused(answer, refusal)
                assert before == self.model.root
            return
        answer = self.real(who, tool, asked)
        assert "error" not in answer, (tool, arguments, answer)
        self.agreed(who, tool, answer, expected, seq)
        if "nextPageToken" not in answer and tool == "export_subtree":
            self.documents.append(json.loads(answer["json"]))
        if tool == "export_view":
            self.views.append(expected["viewJson"])

    def agreed(self, who: Any, tool: str, answer: dict[str, Any], expected: dict[str, Any], seq: int) -> None:
        SCHEMAS[tool].validate(answer)
        answer = unnamed_groups(copy.deepcopy(answer))
        answer.pop("hint", None)
        if "sharedWith" in answer:
            answer["sharedWith"] = sorted(answer["sharedWith"])
        token = answer.pop("version")
        assert self.tokens.setdefault(seq, token) == token
        assert len(set(self.tokens.values())) == len(self.tokens)
        if "wouldChange" in answer:
            self.same_diff(answer.pop("wouldChange"), expected.pop("wouldChange"))
        if tool == "snapshot_diff":
            self.same_diff(answer, expected)
            return
        if tool == "changes_since":
            self.same_changes(answer, expected)
            return
        if tool in ("undo", "redo", "snapshot_restore", "import_merge"):
            self.same_roughly(tool, answer, expected)
            return
        if tool == "describe_tree":
            counted = {"types": "payloadType", "properties": "path", "tags": "tag"}
            for name, word in counted.items():
                entries = [{word: one[word], "count": one["count"]} for one in answer[name]]
                answer[name] = sorted(entries, key=lambda one: str(one[word]))
        if tool == "export_view":
            answer["viewJson"] = unnamed_groups(json.loads(answer["viewJson"]))
        if tool == "diff_subtree":
            answer = {name: sorted(answer[name], key=lambda one: one["nodeId"]) for name in answer}
            expected = {name: sorted(expected[name], key=lambda one: one["nodeId"]) for name in expected}
        if tool == "apply_changes" and "failed" in answer:
            answer["failed"] = [one["index"] for one in answer["failed"]]
        if tool == "update_nodes":
            for outcome in answer["outcomes"]:
                outcome.pop("error", None)
        if "nodeIds" in answer and tool != "remove_node":
            answer["nodeIds"] = sorted(answer["nodeIds"])
        assert json.dumps(answer, sort_keys=True) == json.dumps(expected, sort_keys=True), (tool, answer, expected)

    def same_diff(self, answer: dict[str, Any], expected: dict[str, Any]) -> None:
        for name in ("added", "removed", "moved", "changed"):
            got, wanted = (sorted(side[name], key=lambda one: one["nodeId"]) for side in (answer, expected))
            assert json.dumps(got, sort_keys=True) == json.dumps(wanted, sort_keys=True)
        told: dict[str, list[Any]] = {}
        for entry in answer["reordered"]:
            told.setdefault(entry["parentId"], []).append(entry)
        assert told.keys() == expected["order"].keys()
        for parent, entries in told.items():
            old, new = expected["order"][parent]
            assert [(old[one["oldIndex"]], new[one["newIndex"]]) for one in entries] == [
                (one["nodeId"],) * 2 for one in entries
            ]
            moved = {one["nodeId"] for one in entries}
            assert [key for key in old if key not in moved] == [key for key in new if key not in moved]

    def same_changes(self, answer: dict[str, Any], expected: dict[str, Any]) -> None:
        assert len(answer["items"]) == len(expected["items"])
        commits = {commit["seq"]: commit for commit in self.model.commits}
        for got, wanted in zip(answer["items"], expected["items"], strict=True):
            token = got.pop("version")
            assert self.tokens.setdefault(wanted["version"], token) == token
            assert (got["agent"], got["tool"]) == (wanted["agent"], wanted["tool"])
            if not commits[wanted["version"]]["fuzzy"]:
                assert sorted(got["nodeIds"]) == wanted["nodeIds"]

    def same_roughly(self, tool: str, answer: dict[str, Any], expected: dict[str, Any]) -> None:
        if tool in ("undo", "redo"):
            assert answer["tool"] == expected["tool"]
        elif tool == "snapshot_restore":
            answer["changed"].pop("reordered")
            assert answer == expected
        else:
            for side in (answer, expected):
                for name in ("created", "updated", "removed"):
                    side[name] = sorted(side[name])
            assert answer == expected

    def refused(self, answer: dict[str, Any], refusal: Refusal) -> None:
        assert "error" in answer, (answer, refusal.code)
        error = answer["error"]
        assert error["code"] == refusal.code, (error, refusal.code)
        if refusal.code == "rate_limited":
            assert abs(error["retryAfter"] - refusal.facts["retryAfter"]) < 0.01
        assert error.get("index") == refusal.facts.get("index")
        changed = refusal.facts.get("changed")
        if changed is not None and not any(commit["fuzzy"] for commit in self.model.commits) and len(changed) <= 50:
            assert set(error["changedNodeIds"]) == changed

    def take_over(self, who: Any, tool: str, answer: dict[str, Any]) -> None:
        """The caller's own change lies under those of others: it is taken back whole, or refused."""
        if "error" in answer:
            assert answer["error"]["reason"] in ("undo_blocked", "write_root"), answer
            return
        root, bookmarks = self.actual()
        seq = self.model.adopt(who, tool, root, bookmarks, answer["nodeIds"])
        assert self.tokens.setdefault(seq, answer["version"]) == answer["version"]

    def actual(self) -> tuple[Any, Any]:
        workspace = self.grove._workspace

        def nested(node: Any) -> Any:
            children = [nested(child) for child in (node.children or {}).values()]
            return {
                "nodeId": node.id,
                "payloadType": node.type,
                "payload": copy.deepcopy(node.payload),
                "tags": sorted(node.tags),
                "share": node.group,
                "children": children,
            }

        bookmarks = {name: dict(workspace.bookmarks.of(name)) for name in AGENTS}
        return nested(workspace.tree.root), bookmarks

    # Choosing ---------------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        return [*flat(self.model.root), "n1", "gone"]

    def writer(self, draw: Any) -> tuple[tuple[str, str], int | None, dict[str, Any]]:
        agent = draw(st.sampled_from(["ann"] * 4 + ["bob"] * 3 + ["tenant", "tenant", "reader", "frozen", "hasty"]))
        who = (agent, draw(st.sampled_from([agent, agent, "other"])))
        current = self.model.version(who)
        known = [seq for seq in self.tokens if seq <= self.model.seq]
        # Where most old versions are still good, most calls come with one.
        usual = [current] * 12 + known[-2:] if self.concurrency == "tree" else [current] * 3 + known[-8:]
        token = draw(st.sampled_from([*usual, None, 10_000]))
        if token == current and current not in self.tokens:
            self.both(who, "get_node", {"nodeId": "root"})
        more = draw(st.sampled_from([{}] * 8 + [{"dryRun": True}, {"idempotencyKey": "k"}, {"idempotencyKey": "k2"}]))
        return who, token, more

    def change(self, data: Any, tool: str, arguments: dict[str, Any]) -> None:
        who, token, more = self.writer(data.draw)
        self.both(who, tool, {**arguments, **more}, token)

    @initialize()
    def some_nodes(self) -> None:
        who = ("ann", "ann")
        for parent, kind in (("root", "T"), ("n1", "U"), ("n1", "T"), ("n2", "T"), ("root", "U")):
            self.both(who, "get_node", {"nodeId": "root"})
            form = {"parentNodeId": parent, "payloadType": kind, "payloadProps": {"name": "a", "size": 1}}
            self.both(who, "add_child", form, self.model.version(who))
        self.both(who, "snapshot_create", {"label": "x"}, self.model.version(who))
        self.both(who, "export_subtree", {"nodeId": "n1"})
        self.both(who, "export_view", {"rootNodeId": "n1"})

    @rule(data=st.data(), payload=PAYLOADS, kind=st.sampled_from("TU"))
    def add(self, data: Any, payload: Any, kind: str) -> None:
        if len(self.ids()) < 30:
            parent = data.draw(st.sampled_from(self.ids()))
            self.change(data, "add_child", {"parentNodeId": parent, "payloadType": kind, "payloadProps": payload})

    @rule(
        data=st.data(),
        patch=PATCHES,
        drops=DROPS,
        name=WRITTEN,
        value=VALUES,
        form=st.sampled_from(["one", "many", "query", "predicate"]),
    )
    def update(self, data: Any, patch: Any, drops: Any, name: str, value: Any, form: str) -> None:
        node_id = data.draw(st.sampled_from(self.ids()))
        if form == "one":
            self.change(data, "update_payload_property", {"nodeId": node_id, "propertyName": name, "newValue": value})
        elif form == "many":
            self.change(data, "update_payload", {"nodeId": node_id, "patch": patch, **drops})
        elif form == "predicate":
            self.change(data, "update_nodes", {"filter": data.draw(PREDICATES), "patch": patch, **drops})
        else:
            self.change(data, "update_nodes", {"filter": "size > 0 or @type = U", "patch": patch, **drops})

    @rule(
        data=st.data(),
        tool=st.sampled_from(["remove_node", "move_node", "move_node", "move_before", "move_after", "sort_children"]),
    )
    def arrange(self, data: Any, tool: str) -> None:
        one, two = (data.draw(st.sampled_from(self.ids())) for _ in range(2))
        arguments: dict[str, Any] = {
            "remove_node": {"nodeId": one},
            "move_node": {"nodeId": one, "newParentId": two},
            "move_before": {"nodeId": one, "siblingId": two},
            "move_after": {"nodeId": one, "siblingId": two},
            "sort_children": {
                "parentId": one,
                "byProp": data.draw(PATHS),
                "direction": data.draw(st.sampled_from(["asc", "desc"])),
            },
        }[tool]
        siblings = [form["children"] for form in flat(self.model.root).values() if len(form["children"]) > 1]
        if tool in ("move_before", "move_after") and siblings and data.draw(st.integers(0, 3)):
            family = data.draw(st.sampled_from(siblings))
            arguments = {"nodeId": data.draw(st.sampled_from(family)), "siblingId": data.draw(st.sampled_from(family))}
        self.change(data, tool, arguments)

    @rule(data=st.data(), count=st.integers(1, 4), atomic=st.sampled_from([{}, {}, {"atomic": False}]))
    def batch(self, data: Any, count: int, atomic: Any) -> None:
        """Several changes as one, each of which may rest on what those before it do."""
        if len(self.ids()) > 25:
            return
        changes = [data.draw(self.changes()) for _ in range(count)]
        self.change(data, "apply_changes", {"changes": changes, **atomic})

    def changes(self) -> Any:
        ids, ref = st.sampled_from(self.ids()), st.just({"ref": "r"})
        at = st.one_of(ids, st.lists(ids, min_size=1, max_size=3), ref, QUERIES.map(lambda query: {"query": query}))
        one = st.one_of(ids, ids, ref)
        places: st.SearchStrategy[Any] = st.one_of(
            st.just({}),
            one.map(lambda near: {"before": near}),
            one.map(lambda near: {"after": near}),
            st.integers(0, 3).map(lambda index: {"index": index}),
        )
        parent = one.map(lambda key: {"parentId": key})
        tags = st.lists(st.sampled_from(["red", "old"]), max_size=2, unique=True)
        named: st.SearchStrategy[Any] = st.one_of(st.just({}), st.just({"ref": "r"}))
        wanted = st.fixed_dictionaries({"payloadType": st.sampled_from("TU"), "payload": PAYLOADS, "tags": tags})

        def joined(op: str, *parts: Any) -> Any:
            return st.tuples(*parts).map(lambda found: {"op": op} | {k: v for part in found for k, v in part.items()})

        def keyed(**choices: Any) -> Any:
            return st.fixed_dictionaries(choices)

        beside = st.tuples(places, parent).map(
            lambda pair: pair[0] if "before" in pair[0] or "after" in pair[0] else {**pair[0], **pair[1]}
        )
        return st.one_of(
            joined("add", parent, wanted, places, named),
            joined("set", keyed(at=at, path=WRITTEN, value=VALUES)),
            joined("unset", keyed(at=at, path=WRITTEN)),
            joined("move", keyed(at=at), beside),
            joined("move", keyed(at=at), parent),
            joined("tag", keyed(at=at, add=tags, remove=tags)),
            joined("copy", keyed(at=ids, mode=st.sampled_from(["reference", "duplicate"])), parent),
            joined("sort", keyed(at=at, by=PATHS, direction=st.sampled_from(["asc", "desc"]))),
            joined("remove", keyed(at=at)),
        )

    @rule(data=st.data(), mode=st.sampled_from(["reference", "duplicate", "clone"]))
    def duplicate(self, data: Any, mode: str) -> None:
        one, two = (data.draw(st.sampled_from(self.ids())) for _ in range(2))
        if len(self.ids()) > 25:
            return
        if mode == "clone":
            self.change(data, "clone_node", {"nodeId": one, "targetParentId": two})
        else:
            self.change(data, "copy_subtree", {"sourceId": one, "targetParentId": two, "mode": mode})

    @rule(
        data=st.data(),
        tags=st.lists(st.sampled_from(["red", "old"]), max_size=2),
        remove=st.lists(st.just("red"), max_size=1),
        label=LABELS,
        form=st.sampled_from(["tag", "bookmark", "forget"]),
    )
    def mark(self, data: Any, tags: Any, remove: Any, label: str, form: str) -> None:
        node_id = data.draw(st.sampled_from(self.ids()))
        if form == "tag":
            self.change(data, "tag_node", {"nodeId": node_id, "tags": tags, "remove": remove})
        elif form == "bookmark":
            self.change(data, "bookmark", {"nodeId": node_id, "label": label})
        else:
            self.change(data, "remove_bookmark", {"label": label})

    @rule(
        data=st.data(),
        tool=st.sampled_from(
            ["expand_node", "collapse_node", "toggle_node", "expand_all", "collapse_all", "set_expansion_recursive"]
        ),
    )
    def open_or_close(self, data: Any, tool: str) -> None:
        node_id = data.draw(st.sampled_from(self.ids()))
        arguments: dict[str, Any] = {"rootNodeId" if tool.endswith("_all") else "nodeId": node_id}
        if tool == "set_expansion_recursive":
            arguments |= {"expanded": data.draw(MAYBE), **data.draw(optional(maxDepth=st.integers(0, 2)))}
        self.change(data, tool, arguments)

    @rule(data=st.data(), scope=st.sampled_from(["all", "view", "node"]), included=FILTERS, excluded=FILTERS)
    def preset(self, data: Any, scope: str, included: Any, excluded: Any) -> None:
        self.change(data, "set_filters", {"scope": scope, "included": included, "excluded": excluded})

    @rule(data=st.data(), tool=st.sampled_from(["snapshot_create", "snapshot_restore", "snapshot_delete"]))
    def snapshots(self, data: Any, tool: str) -> None:
        known = st.sampled_from([*self.model.snapshots, "s99"])
        arguments = {"label": data.draw(LABELS)} if tool == "snapshot_create" else {"snapshotId": data.draw(known)}
        self.change(data, tool, arguments)

    @rule(data=st.data(), tool=st.sampled_from(["undo", "undo", "redo"]))
    def take_back(self, data: Any, tool: str) -> None:
        who, token, _ = self.writer(data.draw)
        self.both(who, tool, {}, token)

    @rule(data=st.data(), strategy=st.sampled_from(["upsert", "replace", "skip"]), payload=PAYLOADS)
    def merge(self, data: Any, strategy: str, payload: Any) -> None:
        if not self.documents or len(self.ids()) > 30:
            return
        document = copy.deepcopy(data.draw(st.sampled_from(self.documents[-5:])))
        if data.draw(MAYBE):
            document["payload"] = payload
        if data.draw(MAYBE):
            document.setdefault("children", []).append({"payloadType": "T", "payload": payload})
        if data.draw(MAYBE) and document.get("children"):
            document["children"].reverse()
        who, token, _ = self.writer(data.draw)
        self.both(who, "import_merge", {"json": document, "strategy": strategy}, token)

    @rule(data=st.data(), strategy=st.sampled_from(["upsert", "replace", "skip"]))
    def merge_over(self, data: Any, strategy: str) -> None:
        """A flat document over nodes that exist, with several tops, in any order and under any parents."""
        if len(self.ids()) > 30:
            return
        known = st.sampled_from([*self.ids(), "x1", "x2", "n40"])
        items = []
        for node_id in data.draw(st.lists(known, min_size=1, max_size=4, unique=data.draw(MAYBE))):
            above = data.draw(st.none() | known) if node_id != "root" or not data.draw(st.integers(0, 3)) else None
            kind = "Root" if node_id == "root" else data.draw(st.sampled_from("TU"))
            form: dict[str, Any] = {"nodeId": node_id, "payloadType": kind, "payload": data.draw(PAYLOADS)}
            shares = data.draw(st.sampled_from([{}, {}, {"payloadGroup": "p", "payload": {"name": "p"}}]))
            items.append({**form, **({} if above is None else {"parentId": above}), **shares})
        who, token, more = self.writer(data.draw)
        self.both(who, "import_merge", {"json": {"items": items}, "strategy": strategy, **more}, token)

    @rule(data=st.data())
    def restore_view(self, data: Any) -> None:
        if self.views:
            form = data.draw(st.sampled_from(self.views[-5:]))
            types = data.draw(st.sampled_from([["Root", "T", "U"]] * 3 + [["T"]]))
            self.change(data, "import_view", {"viewJson": form, "payloadTypes": types})

    @rule(seconds=st.sampled_from([1, 20, 61]))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(data=st.data(), tools=three("get_node", "list_children", "get_path", "get_common_ancestor"))
    def read_nodes(self, data: Any, tools: list[str]) -> None:
        self.read(data, tools)

    @rule(data=st.data(), tools=three("get_view", "get_view", "get_subtree", "export_view", "export_subtree"))
    def read_views(self, data: Any, tools: list[str]) -> None:
        self.read(data, tools)

    @rule(
        data=st.data(),
        tools=three("search", "search_advanced", "select_nodes", "query_by_tag", "aggregate", "describe_tree"),
    )
    def read_search(self, data: Any, tools: list[str]) -> None:
        self.read(data, tools)

    @rule(
        data=st.data(),
        tools=three("validate_tree", "lint_payload", "list_payload_types", "list_rulesets", "get_ruleset"),
    )
    def read_rules(self, data: Any, tools: list[str]) -> None:
        self.read(data, tools)

    @rule(
        data=st.data(),
        tools=three("list_tags", "list_bookmarks", "snapshot_list", "snapshot_diff", "diff_subtree", "changes_since"),
    )
    def read_history(self, data: Any, tools: list[str]) -> None:
        self.read(data, tools)

    def read(self, data: Any, tools: list[str]) -> None:
        for tool in tools:
            self.read_one(data, tool)

    def read_one(self, data: Any, tool: str) -> None:
        agent = data.draw(st.sampled_from(["ann", "bob", "reader", "frozen", "hasty"]))
        who = (agent, data.draw(st.sampled_from([agent, "other"])))
        node_id = data.draw(st.sampled_from(self.ids()))
        page = {} if tool not in PAGED or agent == "hasty" else data.draw(optional(**{PAGED[tool]: st.integers(1, 6)}))
        if page and tool in ("get_view", "get_subtree"):
            page |= data.draw(optional(maxTokens=st.integers(1, 400)))
        arguments, options = self.question(data, tool, node_id)
        if page and tool in ("get_view", "get_subtree"):
            options["naive"] = {"paged": True}
        if page:
            self.read_pages(who, tool, arguments, page, options)
        else:
            self.both(who, tool, arguments, **options)

    def question(self, data: Any, tool: str, node_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        draw = data.draw
        known = st.sampled_from([*self.model.snapshots, "current", "s99"])
        options: dict[str, Any] = {}
        arguments: dict[str, Any] = {}
        if tool == "get_node":
            arguments = {"nodeId": node_id, **draw(optional(includedProperties=FILTERS, excludedProperties=FILTERS))}
        elif tool == "get_view":
            arguments = {
                "rootNodeId": node_id,
                **draw(
                    optional(
                        defaultExpanded=MAYBE,
                        depthLimit=st.integers(0, 2),
                        includedProperties=FILTERS,
                        excludedProperties=FILTERS,
                        includeViewRoot=MAYBE,
                    )
                ),
            }
        elif tool == "get_subtree":
            past = st.sampled_from([*self.model.snapshots, "s99"])
            arguments = {"nodeId": node_id, **draw(optional(depthLimit=st.integers(0, 2), asOf=past))}
        elif tool in ("list_children", "get_path", "export_subtree"):
            arguments = {"nodeId": node_id}
        elif tool == "export_view":
            arguments = {"rootNodeId": node_id}
        elif tool == "get_common_ancestor":
            arguments = {"nodeIds": draw(st.lists(st.sampled_from(self.ids()), max_size=3))}
        elif tool == "search":
            arguments = {
                "rootNodeId": node_id,
                "filters": draw(st.lists(PLAIN, max_size=2)),
                "visibleOnly": draw(MAYBE),
            }
        elif tool == "search_advanced":
            sort = st.fixed_dictionaries({"path": PATHS, "direction": st.sampled_from(["asc", "desc"])})
            arguments = {
                "rootId": node_id,
                "predicates": draw(PREDICATES | st.lists(PREDICATES, max_size=2)),
                **draw(optional(sortBy=sort)),
            }
        elif tool == "select_nodes":
            arguments = {"queryDsl": draw(QUERIES), **draw(COUNTED)}
        elif tool == "query_by_tag":
            arguments = {"tag": draw(st.sampled_from(["red", "old", "none"])), **draw(COUNTED)}
        elif tool == "aggregate":
            of = draw(PATHS)
            grouped = st.one_of(PATHS, st.sampled_from(["@type", "@tag"]))
            arguments = {"rootNodeId": node_id, **draw(optional(query=QUERIES, groupBy=grouped))}
            figures = [{"op": "count"}, {"op": "distinct", "path": of}, {"op": "sum", "path": of}]
            options = {"naive": {"of": of}, "real": {"measures": figures}}
        elif tool == "describe_tree":
            arguments = {"rootNodeId": node_id}
        elif tool in ("validate_tree", "get_ruleset"):
            arguments = {"rulesetId": draw(st.sampled_from(["rules", "rules", "other"]))}
        elif tool == "list_tags":
            arguments = draw(optional(rootNodeId=st.just(node_id)))
        elif tool == "lint_payload":
            arguments = {"nodeId": node_id, "rulesetId": "rules"}
        elif tool == "snapshot_diff":
            arguments = {"a": draw(known), "b": draw(known)}
        elif tool == "diff_subtree":
            arguments = {"aId": node_id, "bId": draw(st.sampled_from(self.ids()))}
        elif tool == "changes_since":
            seq = draw(st.sampled_from(sorted(self.tokens)[-4:]))
            options = {"naive": {"version": seq}, "real": {"version": self.tokens[seq]}}
        return arguments, options

    def read_pages(self, who: Any, tool: str, arguments: Any, page: Any, options: dict[str, Any]) -> None:
        asked = {**copy.deepcopy(arguments), **options.get("real", {}), **page}
        naive = {**copy.deepcopy(arguments), **options.get("naive", {})}
        try:
            expected, seq = self.model.call(who, tool, naive, None, self.clock.now)
        except Refusal as refusal:
            self.refused(self.real(who, tool, asked), refusal)
            return
        key = "violations" if tool == "validate_tree" else "items"
        gathered: list[Any] = []
        while True:
            answer = self.real(who, tool, asked)
            assert "error" not in answer, answer
            assert len(answer[key]) <= next(iter(page.values()))
            gathered += answer[key]
            token = answer.pop("nextPageToken", None)
            if token is None:
                break
            asked["pageToken"] = token
        self.agreed(who, tool, {**answer, key: gathered}, expected, seq)

    @invariant()
    def the_trees_are_the_same(self) -> None:
        root, bookmarks = self.actual()
        shares: dict[Any, Any] = {}
        mine, theirs = flat(root), flat(self.model.root)
        assert list(mine) == list(theirs)
        for key, form in mine.items():
            other = dict(theirs[key])
            assert shares.setdefault(form.pop("share"), other.pop("share")) == theirs[key]["share"]
            assert json.dumps(form) == json.dumps(other)
        assert bookmarks == self.model.bookmarks


def unnamed_groups(value: Any) -> Any:
    """An answer without the names of groups, which the tree gives: that the same nodes share is compared as a whole."""
    if isinstance(value, list):
        return [unnamed_groups(item) for item in value]
    if isinstance(value, dict):
        return {key: True if key == "payloadGroup" else unnamed_groups(item) for key, item in value.items()}
    return value


PAGED = {
    "list_children": "limit",
    "get_view": "pageSize",
    "get_subtree": "pageSize",
    "search": "limit",
    "search_advanced": "limit",
    "select_nodes": "limit",
    "query_by_tag": "limit",
    "validate_tree": "limit",
    "changes_since": "limit",
}
