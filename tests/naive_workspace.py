"""The workspace as nested dicts, copied whole for every change: slow, plain, and the oracle of the tests."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from naive_ground import EVERYTHING, Ground, ground_of
from naive_query import Family, holds, naive_select, name_of, values_at
from toolgrove.tree.dsl import parse

Node = dict[str, Any]
Answer = dict[str, Any]


class Refusal(Exception):
    """A call that must fail with this code."""

    def __init__(self, code: str, **facts: Any) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts


def text(value: Any) -> str:
    return json.dumps(value)


def exactly(left: Any, right: Any) -> bool:
    return text(left) == text(right)


class NaiveWorkspace:
    """Answers every tool call from a nested dict."""

    def __init__(self, agents: dict[str, dict[str, Any]], rules: list[Any], concurrency: str = "tree") -> None:
        self.rules = [{"severity": "error", **rule} for rule in rules]
        self.agents = agents
        self.concurrency = concurrency
        self.root: Node = {
            "nodeId": "root",
            "payloadType": "Root",
            "payload": {},
            "tags": [],
            "share": None,
            "children": [],
        }
        self.serial = 0
        self.shares = 0
        self.seq = 0
        self.tree_seq = 0
        self.views: dict[tuple[str, str], dict[str, Any]] = {}
        self.bookmarks: dict[str, dict[str, str]] = {name: {} for name in agents}
        self.snapshots: dict[str, dict[str, Any]] = {}
        self.snapshot_serial = 0
        self.commits: list[dict[str, Any]] = []
        self.undo_stack: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in agents}
        self.redo_stack: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in agents}
        self.keys: dict[tuple[str, str], tuple[str, Answer, int]] = {}
        self.calls: dict[str, list[float]] = {name: [] for name in agents}

    # The gate ---------------------------------------------------------------------------------------

    def view(self, who: tuple[str, str]) -> dict[str, Any]:
        fresh = {"expanded": {}, "default": False, "node": ([], []), "view": ([], []), "seq": 0}
        return self.views.setdefault(who, fresh)

    def version(self, who: tuple[str, str]) -> int:
        return max(self.tree_seq, int(self.view(who)["seq"]))

    def call(
        self, who: tuple[str, str], tool: str, arguments: dict[str, Any], token: int | None, now: float
    ) -> tuple[Answer, int]:
        """The answer and the moment its version stands for; Refusal if the call must fail."""
        agent = self.agents[who[0]]
        if agent.get("rate"):
            recent = [at for at in self.calls[who[0]] if at > now - 60]
            self.calls[who[0]] = recent
            if len(recent) >= agent["rate"]:
                raise Refusal("rate_limited", retryAfter=recent[0] + 60 - now)
            recent.append(now)
        mutates = tool in MUTATIONS
        if mutates and (agent.get("role") != "editor" or agent.get("readOnly")):
            raise Refusal("forbidden")
        if not mutates:
            return getattr(self, tool)(who, **arguments), self.version(who)
        key = None if arguments.get("dryRun") else arguments.get("idempotencyKey")
        request = text([tool, {name: value for name, value in arguments.items() if name != "idempotencyKey"}])
        if key is not None and (who[0], key) in self.keys:
            stored, answer, seq = self.keys[(who[0], key)]
            if stored != request:
                raise Refusal("invalid_argument")
            return copy.deepcopy(answer), seq
        self.check_version(who, tool, arguments, token)
        answer = self.write(who, tool, {name: value for name, value in arguments.items() if name != "idempotencyKey"})
        seq = self.version(who)
        if key is not None:
            self.keys[(who[0], key)] = (request, copy.deepcopy(answer), seq)
        return answer, seq

    def check_version(self, who: tuple[str, str], tool: str, arguments: dict[str, Any], token: int | None) -> None:
        if token is None or token > self.seq:
            raise Refusal("conflict", changed=set())
        ground = self.ground(tool, arguments)
        changed = {
            node_id
            for commit in self.since(token)
            for node_id in ground.changed_by(set(commit["touched"]), commit["lists"])
        }
        view_changed = token < self.view(who)["seq"]
        if self.concurrency == "node" and ground.view and view_changed:
            raise Refusal("conflict", changed=set())
        if changed or (self.concurrency == "tree" and view_changed):
            raise Refusal("conflict", changed=changed)

    def since(self, token: int) -> list[dict[str, Any]]:
        return [commit for commit in self.commits if commit["seq"] > token]

    def ground(self, tool: str, arguments: dict[str, Any]) -> Ground:
        if self.concurrency == "tree":
            return EVERYTHING
        return self.import_ground(arguments) if tool == "import_merge" else ground_of(tool, arguments, self.root)

    def import_ground(self, arguments: dict[str, Any]) -> Ground:
        """All that an import finds or changes, found out by trying it; one that is refused stands on nothing."""
        tried = copy.deepcopy(self)
        tried.pending, tried.touched, tried.beside, tried.after = [], [], False, None
        try:
            tried.import_merge(None, copy.deepcopy(arguments["json"]), arguments["strategy"])
        except Refusal:
            return Ground()
        forms = [form for top in planted(copy.deepcopy(arguments["json"])) for form in every(top)]
        known = {node["nodeId"] for node in Family(self.root).order}
        found = {form["nodeId"] for form in forms if form.get("nodeId") in known}
        lists = frozenset(changed_lists(self.root, tried.root))
        return Ground(nodes=frozenset(found | set(tried.touched)), lists=lists)

    def is_unsure(self, tool: str, arguments: dict[str, Any], token: int | None) -> bool:
        """Whether a call depends on which nodes a change touched that this model knows only roughly."""
        ground = self.ground(tool, arguments)
        if token is None or not ground.nodes | ground.lists:
            return False
        return any(commit["fuzzy"] for commit in self.since(token))

    def write(self, who: tuple[str, str], tool: str, arguments: dict[str, Any]) -> Answer:
        saved = copy.deepcopy(self.__dict__)
        dry = arguments.pop("dryRun", False)
        before = copy.deepcopy(self.root)
        self.pending: list[tuple[Node, Node, list[str]]] = []
        self.touched: list[str] = []
        self.beside = False
        self.after: Callable[[list[dict[str, Any]]], None] | None = None
        try:
            answer: Answer = getattr(self, tool)(who, **arguments)
            if not self.pending:
                self.pending.append((before, copy.deepcopy(self.root), self.touched))
            self.check_write_root(who, tool)
        except Refusal:
            self.__dict__.clear()
            self.__dict__.update(saved)
            raise
        if dry:
            would = self.compare(before, self.root)
            self.__dict__.clear()
            self.__dict__.update(saved)
            return {**answer, "dryRun": True, "wouldChange": would}
        commits = []
        for old, new, touched in self.pending:
            if touched:
                self.seq += 1
                self.tree_seq = self.seq
                commit = {"seq": self.seq, "agent": who[0], "tool": tool, "touched": touched, "before": old}
                commit["fuzzy"] = tool in ("import_merge", "snapshot_restore", "undo", "redo", "apply_changes")
                commit["lists"] = changed_lists(old, new)
                commit["dropped"] = self.drop_bookmarks()
                commits.append(commit)
        self.commits += commits
        if self.beside:
            self.seq += 1
            self.view(who)["seq"] = self.seq
        if self.after is not None:
            self.after(commits)
        elif commits:
            self.undo_stack[who[0]].append(commits)
            self.redo_stack[who[0]] = []
        for name in ("pending", "touched", "beside", "after"):
            del self.__dict__[name]
        return answer

    def check_write_root(self, who: tuple[str, str], tool: str) -> None:
        limit = self.agents[who[0]].get("writeRoot")
        if limit is None or tool == "update_nodes":
            return
        for old, new, touched in self.pending:
            for node_id in touched:
                for tree in (old, new):
                    family = Family(tree)
                    node = next((one for one in family.order if one["nodeId"] == node_id), None)
                    if node is None:
                        continue
                    inside = [one["nodeId"] for one in [node, *family.ancestors(node)]]
                    if limit not in inside:
                        raise Refusal("forbidden")
                if node_id == limit and self.place(old, limit) != self.place(new, limit):
                    raise Refusal("forbidden")

    def place(self, tree: Node, node_id: str) -> Any:
        family = Family(tree)
        parent = family.parent.get(node_id)
        if parent is None:
            return node_id in family.parent
        return parent["nodeId"], [one["nodeId"] for one in parent["children"]]

    def drop_bookmarks(self) -> list[tuple[str, str, str]]:
        alive = {one["nodeId"] for one in Family(self.root).order}
        dropped = [
            (agent, label, key)
            for agent, own in self.bookmarks.items()
            for label, key in own.items()
            if key not in alive
        ]
        for agent, label, _ in dropped:
            del self.bookmarks[agent][label]
        return dropped

    def return_bookmarks(self, commits: list[dict[str, Any]]) -> None:
        alive = {one["nodeId"] for one in Family(self.root).order}
        for commit in commits:
            for agent, label, key in commit["dropped"]:
                if key in alive:
                    self.bookmarks[agent].setdefault(label, key)

    # Looking ----------------------------------------------------------------------------------------

    def find(self, node_id: str) -> Node:
        found = [one for one in Family(self.root).order if one["nodeId"] == node_id]
        if not found:
            raise Refusal("not_found")
        return found[0]

    def parent_of(self, node_id: str) -> Node | None:
        return Family(self.root).parent[node_id]

    def shape(self, node: Node, filters: tuple[list[str], list[str]] = ([], [])) -> Answer:
        parent = self.parent_of(node["nodeId"])
        return {
            "nodeId": node["nodeId"],
            "parentId": parent["nodeId"] if parent else None,
            "payloadType": node["payloadType"],
            "payload": filtered(node["payload"], *filters),
            "childrenCount": len(node["children"]),
            **({"tags": node["tags"]} if node["tags"] else {}),
            **({"payloadGroup": True} if len(self.holders(node)) > 1 else {}),
        }

    def holders(self, node: Node) -> list[Node]:
        """The nodes that hold the same payload, this one first in line where it shares with nobody."""
        return [
            one for one in Family(self.root).order if one is node or (node["share"] and one["share"] == node["share"])
        ]

    def crumbs(self, node: Node) -> list[Answer]:
        chain = [*reversed(Family(self.root).ancestors(node)), node]
        return [
            {"nodeId": one["nodeId"], "depth": depth, **({"name": name_of(one)} if name_of(one) is not None else {})}
            for depth, one in enumerate(chain)
        ]

    def hits(self, who: tuple[str, str], nodes: list[Node]) -> Answer:
        shown = self.view(who)["view"]
        return {"items": [{**self.shape(node, shown), "path": self.crumbs(node)} for node in nodes]}

    def get_node(self, who: Any, nodeId: str, includedProperties: Any = None, excludedProperties: Any = None) -> Answer:
        node = self.find(nodeId)
        shown = self.shape(node, chosen(self.view(who)["node"], includedProperties, excludedProperties))
        others = sorted(one["nodeId"] for one in self.holders(node) if one is not node)
        return {**shown, **({"sharedWith": others} if others else {})}

    def list_children(self, who: Any, nodeId: str) -> Answer:
        shown = self.view(who)["view"]
        return {"items": [self.shape(child, shown) for child in self.find(nodeId)["children"]]}

    def get_path(self, who: Any, nodeId: str) -> Answer:
        return {"path": self.crumbs(self.find(nodeId))}

    def get_common_ancestor(self, who: Any, nodeIds: list[str]) -> Answer:
        chains = [[crumb["nodeId"] for crumb in self.crumbs(self.find(one))] for one in nodeIds]
        shared = [key for key in (chains[0] if chains else []) if all(key in chain for chain in chains)]
        return {"nodeId": shared[-1] if shared else None}

    def get_subtree(
        self, who: Any, nodeId: str, depthLimit: int | None = None, paged: bool = False, asOf: str | None = None
    ) -> Answer:
        live, self.root = self.root, self.root if asOf is None else self.moment(asOf)
        try:
            return self.look(self.find(nodeId), self.view(who)["view"], None, False, depthLimit, paged, "subtree")
        finally:
            self.root = live

    def get_view(
        self,
        who: Any,
        rootNodeId: str,
        defaultExpanded: bool | None = None,
        depthLimit: int | None = None,
        includedProperties: Any = None,
        excludedProperties: Any = None,
        includeViewRoot: bool = False,
        paged: bool = False,
    ) -> Answer:
        view = self.view(who)
        root = self.find(rootNodeId)
        default = view["default"] if defaultExpanded is None else defaultExpanded
        filters = chosen(view["view"], includedProperties, excludedProperties)
        answer = self.look(root, filters, view["expanded"], default, depthLimit, paged, "view")
        if includeViewRoot:
            answer["viewRoot"] = self.header(view, root, default, filters)
        return answer

    def header(self, view: Any, root: Node, default: bool, filters: Any) -> Answer:
        inside = {one["nodeId"] for one in [root, *Family(self.root).descendants(root)]}
        return {
            "rootNodeId": root["nodeId"],
            "defaultExpanded": default,
            "includedProperties": list(filters[0]),
            "excludedProperties": list(filters[1]),
            "expanded": {key: value for key, value in view["expanded"].items() if key in inside},
        }

    def look(
        self, root: Node, filters: Any, flags: Any, default: bool, limit: int | None, paged: bool, word: str
    ) -> Answer:
        items: list[Answer] = []

        def show(node: Node, depth: int) -> Answer:
            form = self.shape(node, filters)
            opened = True if flags is None else flags.get(node["nodeId"], default)
            if flags is not None:
                form["isExpanded"] = opened
            items.append({**form, "depth": depth})
            if node["children"] and opened and (limit is None or depth < limit):
                form["children"] = [show(child, depth + 1) for child in node["children"]]
            elif flags is not None and node["children"]:
                form["isExpanded"] = False
            return form

        nested = show(root, 0)
        return {"items": items} if paged else {word: nested}

    def below(self, who: Any, root: Node, visible_only: bool) -> list[Node]:
        if not visible_only:
            return Family(self.root).descendants(root)
        view = self.view(who)
        shown = self.look(root, ([], []), view["expanded"], view["default"], None, True, "")["items"][1:]
        return [self.find(item["nodeId"]) for item in shown]

    def search(self, who: Any, rootNodeId: str, filters: list[Any], visibleOnly: bool = False) -> Answer:
        return self.search_advanced(who, rootNodeId, filters, visibleOnly=visibleOnly)

    def search_advanced(
        self, who: Any, rootId: str, predicates: Any, sortBy: Any = None, visibleOnly: bool = False
    ) -> Answer:
        forms = predicates if isinstance(predicates, list) else [predicates]
        root = self.find(rootId)
        for form in forms:
            self.check_predicate(form)
        found = [node for node in self.below(who, root, visibleOnly) if all(satisfied(node, form) for form in forms)]
        if sortBy is not None:
            found = in_order(found, sortBy["path"], sortBy.get("direction", "asc"))
        return self.hits(who, found)

    def check_predicate(self, form: Any) -> None:
        for word in ("and", "or"):
            for part in form.get(word, []):
                self.check_predicate(part)
        if form.get("op") == "between":
            low, high = form["value"]
            if isinstance(low, str) is not isinstance(high, str) or low > high:
                raise Refusal("invalid_argument")

    def select_nodes(self, who: Any, queryDsl: str, count: bool = False) -> Answer:
        found = self.selected(queryDsl)
        return {**self.hits(who, found), **({"count": len(found)} if count else {})}

    def selected(self, query: str) -> list[Node]:
        parsed = parse(query)
        for path in parsed.paths:
            if path.start is not None:
                self.find(path.start)
        return [self.find(key) for key in naive_select(self.root, parsed)]

    def query_by_tag(self, who: Any, tag: str, count: bool = False) -> Answer:
        found = [one for one in Family(self.root).order if tag in one["tags"]]
        return {**self.hits(who, found), **({"count": len(found)} if count else {})}

    def aggregate(
        self, who: Any, rootNodeId: str, query: str | None = None, groupBy: str | None = None, of: str = "a"
    ) -> Answer:
        """Always the same measures: how many, how many different values, and their sum."""
        family = Family(self.root)
        below = [one["nodeId"] for one in family.descendants(self.find(rootNodeId))]
        chosen_ids = below if query is None else [one["nodeId"] for one in self.selected(query)]
        nodes = [one for one in family.order if one["nodeId"] in below and one["nodeId"] in chosen_ids]
        groups: dict[str, tuple[Any, list[Node]]] = {} if groupBy is not None else {"": (None, nodes)}
        for node in nodes if groupBy is not None else []:
            for key in {marked(one): one for one in self.counted(who, node, groupBy) or [None]}.values():
                groups.setdefault(marked(key), (key, []))[1].append(node)
        shown = []
        for key, members in sorted(groups.values(), key=lambda group: -len(group[1])):
            values = [value for node in members for value in self.counted(who, node, of)]
            numbers = [value for value in values if type(value) in (int, float)]
            group = {"count": len(members), f"distinct({of})": len({marked(one) for one in values})}
            shown.append({**({"key": key} if groupBy is not None else {}), **group, f"sum({of})": sum(numbers)})
        return {"groups": shown, "groupCount": len(shown), "nodeCount": len(nodes)}

    def counted(self, who: Any, node: Node, path: str | None) -> list[Any]:
        if path == "@type":
            return [node["payloadType"]]
        if path == "@tag":
            return sorted(node["tags"])
        found = values_at(self.shape(node, self.view(who)["view"])["payload"], str(path))
        flat = [one for value in found for one in (value if isinstance(value, list) else [value])]
        return [one for one in flat if one is not None]

    def describe_tree(self, who: Any, rootNodeId: str) -> Answer:
        family = Family(self.root)
        top = self.find(rootNodeId)
        nodes = [top, *family.descendants(top)]
        above = len(family.ancestors(top))
        payloads = [self.shape(node, self.view(who)["view"])["payload"] for node in nodes]
        return {
            "rootNodeId": rootNodeId,
            "nodes": len(nodes),
            "depth": max(len(family.ancestors(node)) for node in nodes) - above,
            "types": tallied("payloadType", [node["payloadType"] for node in nodes]),
            "properties": tallied("path", [path for payload in payloads for path in set(paths_in(payload))]),
            "tags": tallied("tag", [tag for node in nodes for tag in node["tags"]]),
        }

    def list_tags(self, who: Any, rootNodeId: str = "root") -> Answer:
        root = self.find(rootNodeId)
        held = [tag for one in [root, *Family(self.root).descendants(root)] for tag in one["tags"]]
        return {
            "items": [
                {"tag": tag, "count": held.count(tag)}
                for tag in sorted(set(held), key=lambda tag: (-held.count(tag), tag))
            ]
        }

    def list_bookmarks(self, who: Any) -> Answer:
        items = []
        for label, key in sorted(self.bookmarks[who[0]].items()):
            name = name_of(self.find(key))
            items.append({"label": label, "nodeId": key, **({} if name is None else {"name": name})})
        return {"items": items}

    def validate_tree(self, who: Any, rulesetId: str) -> Answer:
        if rulesetId != "rules":
            raise Refusal("not_found")
        found = [entry for node in Family(self.root).order for entry in self.broken(node, relations=True)]
        return {"valid": all(one["severity"] == "warning" for one in found), "violations": found}

    def lint_payload(self, who: Any, nodeId: str, rulesetId: str) -> Answer:
        node = self.find(nodeId)
        if rulesetId != "rules":
            raise Refusal("not_found")
        found = self.broken(node, relations=False)
        return {"valid": all(one["severity"] == "warning" for one in found), "violations": found}

    def broken(self, node: Node, relations: bool) -> list[Answer]:
        found = []

        def note(rule: str, path: str, message: str, severity: str = "error") -> None:
            found.append(
                {"ruleId": rule, "severity": severity, "nodeId": node["nodeId"], "path": path, "message": message}
            )

        if node["payloadType"] == "T" and values_at(node["payload"], "size") in ([], [None]):
            note("sized", "size", "size is required")
        if relations and node["payloadType"] == "U" and len(node["children"]) > 2:
            note("few", "", f"allows at most 2 children, has {len(node['children'])}")
        if node["payloadType"] == "T" and values_at(node["payload"], "name") in ([], [None]):
            note("named", "name", "name is required", "warning")
        return found

    def list_payload_types(self, who: Any) -> Answer:
        return {"items": [{"name": "Root", "kind": "external", "closed": False}], "allowUnknownTypes": True}

    def list_rulesets(self, who: Any) -> Answer:
        return {"items": [{"rulesetId": "rules", "ruleCount": 3, "ruleIds": ["sized", "few", "named"]}]}

    def get_ruleset(self, who: Any, rulesetId: str) -> Answer:
        if rulesetId != "rules":
            raise Refusal("not_found")
        return {"rulesetId": "rules", "rules": self.rules}

    def snapshot_list(self, who: Any) -> Answer:
        return {
            "items": [
                {key: value for key, value in one.items() if key not in ("root", "seq")}
                for one in self.snapshots.values()
            ]
        }

    def moment(self, name: str) -> Node:
        if name == "current":
            return self.root
        if name not in self.snapshots:
            raise Refusal("not_found")
        root: Node = self.snapshots[name]["root"]
        return root

    def snapshot_diff(self, who: Any, a: str, b: str) -> Answer:
        return self.compare(self.moment(a), self.moment(b))

    def compare(self, old: Node, new: Node) -> Answer:
        was, now = flat(old), flat(new)
        diff: Answer = {"added": [], "removed": [], "moved": [], "changed": [], "order": order_changes(was, now)}
        for key in was.keys() | now.keys():
            one, two = was.get(key), now.get(key)
            if one is None or two is None:
                side = two or one
                assert side is not None
                entry = {
                    "nodeId": key,
                    "parentId": side["parent"],
                    "payloadType": side["type"],
                    "payload": side["payload"],
                    **({"tags": side["tags"]} if side["tags"] else {}),
                    "index": (was if two is None else now)[side["parent"]]["children"].index(key),
                }
                diff["added" if one is None else "removed"].append(entry)
                continue
            if one["parent"] != two["parent"]:
                moved = {"nodeId": key, "oldParentId": one["parent"], "newParentId": two["parent"]}
                moved["oldIndex"] = was[one["parent"]]["children"].index(key)
                moved["newIndex"] = now[two["parent"]]["children"].index(key)
                diff["moved"].append(moved)
            change: Answer = {"nodeId": key}
            properties = property_changes(one["payload"], two["payload"])
            if properties:
                change["properties"] = properties
            if one["type"] != two["type"]:
                change["payloadType"] = {"old": one["type"], "new": two["type"]}
            if one["tags"] != two["tags"]:
                change["tags"] = {"old": one["tags"], "new": two["tags"]}
            if len(change) > 1:
                diff["changed"].append({**change, "parentId": two["parent"]})
        return diff

    def diff_subtree(self, who: Any, aId: str, bId: str) -> Answer:
        diff: Answer = {"added": [], "removed": [], "moved": [], "reordered": [], "changed": []}
        self.pair(self.find(aId), self.find(bId), diff)
        return diff

    def pair(self, one: Node, two: Node, diff: Answer) -> None:
        change: Answer = {"nodeId": one["nodeId"], "otherNodeId": two["nodeId"]}
        if one["payloadType"] != two["payloadType"]:
            change["payloadType"] = {"old": one["payloadType"], "new": two["payloadType"]}
        properties = property_changes(one["payload"], two["payload"])
        if properties:
            change["properties"] = properties
        if one["tags"] != two["tags"]:
            change["tags"] = {"old": one["tags"], "new": two["tags"]}
        if len(change) > 2:
            diff["changed"].append({**change, "parentId": self.shape(one)["parentId"]})

        def kind(node: Node) -> Any:
            return (node["payloadType"], name_of(node))

        def partner(child: Node, mine: list[Node], theirs: list[Node]) -> Node | None:
            rank = [one["nodeId"] for one in mine if kind(one) == kind(child)].index(child["nodeId"])
            same = [other for other in theirs if kind(other) == kind(child)]
            return same[rank] if rank < len(same) else None

        family = Family(self.root)
        left, right = one["children"], two["children"]
        for side, mine, theirs in (("removed", left, right), ("added", right, left)):
            for child in mine:
                if partner(child, mine, theirs) is None:
                    for gone in [child, *family.descendants(child)]:
                        shape = self.shape(gone)
                        del shape["childrenCount"]
                        shape.pop("payloadGroup", None)
                        above = self.find(shape["parentId"])
                        shape["index"] = [other["nodeId"] for other in above["children"]].index(gone["nodeId"])
                        diff[side].append(shape)
        pairs = [(child, partner(child, left, right)) for child in left]
        matched = [(child, other) for child, other in pairs if other is not None]
        stay = [other["nodeId"] for other in right if any(other is match for _, match in matched)]
        for place, (child, other) in enumerate(matched):
            spot = stay.index(other["nodeId"])
            if spot != place:
                diff["reordered"].append(
                    {
                        "nodeId": child["nodeId"],
                        "otherNodeId": other["nodeId"],
                        "parentId": one["nodeId"],
                        "oldIndex": place,
                        "newIndex": spot,
                    }
                )
        for child, other in matched:
            self.pair(child, other, diff)

    def changes_since(self, who: Any, version: int) -> Answer:
        return {
            "items": [
                {
                    "version": one["seq"],
                    "agent": one["agent"],
                    "tool": one["tool"],
                    "nodeIds": sorted(one["touched"]),
                    "nodeCount": len(one["touched"]),
                }
                for one in self.commits
                if one["seq"] > version
            ]
        }

    def document(self, node: Node, groups: dict[Any, str]) -> Answer:
        form: Answer = {"nodeId": node["nodeId"], "payloadType": node["payloadType"], "payload": node["payload"]}
        if node["share"] in groups:
            form["payloadGroup"] = groups[node["share"]]
        if node["tags"]:
            form["tags"] = node["tags"]
        if node["children"]:
            form["children"] = [self.document(child, groups) for child in node["children"]]
        return form

    def export_subtree(self, who: Any, nodeId: str) -> Answer:
        root = self.find(nodeId)
        shares = [one["share"] for one in [root, *Family(self.root).descendants(root)] if one["share"] is not None]
        shared = [share for share in dict.fromkeys(shares) if shares.count(share) > 1]
        form = self.document(root, {share: f"p{at}" for at, share in enumerate(shared, 1)})
        return {"json": json.dumps(form, ensure_ascii=False, separators=(",", ":"))}

    def export_view(self, who: Any, rootNodeId: str) -> Answer:
        view, root = self.view(who), self.find(rootNodeId)
        path = [crumb.get("name") or crumb["nodeId"] for crumb in self.crumbs(root)][1:]
        shown = self.look(root, view["view"], view["expanded"], view["default"], None, False, "view")
        return {"viewJson": {"viewRoot": self.header(view, root, view["default"], view["view"]), "path": path, **shown}}

    # Changing the view ------------------------------------------------------------------------------

    def flags(self, who: Any, root: Node, expanded: bool, nodes: list[Node]) -> Answer:
        view = self.view(who)
        changed = [one["nodeId"] for one in nodes if view["expanded"].get(one["nodeId"]) is not expanded]
        view["expanded"].update(dict.fromkeys(changed, expanded))
        self.beside = bool(changed)
        shown = self.look(root, view["view"], view["expanded"], view["default"], None, False, "view")
        return {
            "nodeId": root["nodeId"],
            "nodeIds": sorted(changed),
            "changedCount": len(changed),
            "isExpanded": expanded,
            **shown,
        }

    def expand_node(self, who: Any, nodeId: str) -> Answer:
        return self.flags(who, self.find(nodeId), True, [self.find(nodeId)])

    def collapse_node(self, who: Any, nodeId: str) -> Answer:
        return self.flags(who, self.find(nodeId), False, [self.find(nodeId)])

    def toggle_node(self, who: Any, nodeId: str) -> Answer:
        node, view = self.find(nodeId), self.view(who)
        return self.flags(who, node, not view["expanded"].get(nodeId, view["default"]), [node])

    def expand_all(self, who: Any, rootNodeId: str) -> Answer:
        return self.set_expansion_recursive(who, rootNodeId, True)

    def collapse_all(self, who: Any, rootNodeId: str) -> Answer:
        return self.set_expansion_recursive(who, rootNodeId, False)

    def set_expansion_recursive(self, who: Any, nodeId: str, expanded: bool, maxDepth: int | None = None) -> Answer:
        def within(node: Node, depth: int) -> list[Node]:
            deeper = [] if maxDepth is not None and depth >= maxDepth else node["children"]
            return [node, *(one for child in deeper for one in within(child, depth + 1))]

        root = self.find(nodeId)
        return self.flags(who, root, expanded, within(root, 0))

    def set_filters(self, who: Any, scope: str, included: list[str], excluded: list[str]) -> Answer:
        view = self.view(who)
        before = (view["node"], view["view"])
        for name in ("node", "view") if scope == "all" else (scope,):
            view[name] = (included, excluded)
        self.beside = before != (view["node"], view["view"])
        return {"scope": scope, "included": included, "excluded": excluded}

    def import_view(self, who: Any, viewJson: Any, payloadTypes: list[str]) -> Answer:
        header = viewJson["viewRoot"]
        root = self.find(header["rootNodeId"])

        def types(form: Node) -> set[str]:
            return {form["payloadType"]}.union(*(types(child) for child in form.get("children", [])))

        if not types(viewJson["view"]) | {root["payloadType"]} <= set(payloadTypes):
            raise Refusal("invalid_argument")
        inside = {one["nodeId"] for one in [root, *Family(self.root).descendants(root)]}
        kept = {key: value for key, value in header["expanded"].items() if key in inside}
        view = self.view(who)
        view["expanded"], view["default"] = kept, header["defaultExpanded"]
        view["view"] = (header["includedProperties"], header["excludedProperties"])
        self.beside = True
        return {"rootNodeId": root["nodeId"], "nodeIds": sorted(kept), "ignored": len(header["expanded"]) - len(kept)}

    # Changing the tree ------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.serial += 1
        return f"n{self.serial}"

    def add_child(self, who: Any, parentNodeId: str, payloadType: str, payloadProps: Any) -> Answer:
        node = self.attach(self.find(parentNodeId), payloadType, payloadProps, self.fresh())
        return {"nodeId": node["nodeId"]}

    def attach(self, parent: Node, kind: str, payload: Any, node_id: str, tags: Any = ()) -> Node:
        node = {
            "nodeId": node_id,
            "payloadType": kind,
            "payload": copy.deepcopy(payload),
            "tags": sorted(set(tags)),
            "share": None,
            "children": [],
        }
        parent["children"].append(node)
        self.touched.append(node_id)
        return node

    def set_payload(self, node: Node, payload: Any) -> list[str]:
        holders = self.holders(node)
        for one in holders:
            one["payload"] = copy.deepcopy(payload)
        return sorted(one["nodeId"] for one in holders)

    def patch(self, node: Node, patch: Any, remove: list[str]) -> list[str]:
        payload = patched(node["payload"], patch, remove)
        return [] if exactly(payload, node["payload"]) else self.set_payload(node, payload)

    def update_payload(self, who: Any, nodeId: str, patch: Any, remove: list[str] | None = None) -> Answer:
        node = self.find(nodeId)
        gone = [path for path in remove or [] if value_at(node["payload"], path.split(".")) is not ABSENT]
        changed = self.patch(node, patch, remove or [])
        self.touched += changed
        shown = {path: value_at(node["payload"], path.split(".")) for path in patch}
        answer: Answer = {"nodeId": nodeId, "nodeIds": changed}
        answer["payload"] = {path: value for path, value in shown.items() if value is not ABSENT}
        return {**answer, "removed": gone} if remove else answer

    def update_payload_property(self, who: Any, nodeId: str, propertyName: str, newValue: Any) -> Answer:
        return self.update_payload(who, nodeId, {propertyName: newValue})

    def update_nodes(self, who: Any, filter: Any, patch: Any, remove: list[str] | None = None) -> Answer:
        if isinstance(filter, str):
            found = [self.find(key) for key in naive_select(self.root, parse(filter))]
        else:
            self.check_predicate(filter)
            found = [node for node in Family(self.root).order[1:] if satisfied(node, filter)]
        limit = self.agents[who[0]].get("writeRoot")
        outcomes = []
        changed: dict[str, None] = {}
        for node in found:
            inside = [one["nodeId"] for one in [node, *Family(self.root).ancestors(node)]]
            twins = [one for one in Family(self.root).order if node["share"] and one["share"] == node["share"]]
            try:
                changes = not exactly(patched(node["payload"], patch, remove or []), node["payload"])
            except Refusal:
                outcomes.append({"nodeId": node["nodeId"], "status": "failed"})
                continue
            strays = [
                one for one in twins if limit not in [up["nodeId"] for up in [one, *Family(self.root).ancestors(one)]]
            ]
            if limit is not None and (limit not in inside or (changes and strays)):
                outcomes.append({"nodeId": node["nodeId"], "status": "failed"})
                continue
            changed.update(dict.fromkeys(self.patch(node, patch, remove or [])))
            outcomes.append(
                {"nodeId": node["nodeId"], "status": "updated" if node["nodeId"] in changed else "unchanged"}
            )
        self.touched += changed
        counts = [outcome["status"] for outcome in outcomes]
        return {"outcomes": outcomes, "updated": counts.count("updated"), "failed": counts.count("failed")}

    def remove_node(self, who: Any, nodeId: str) -> Answer:
        node, parent = self.find(nodeId), self.parent_of(nodeId) if nodeId != "root" else None
        if parent is None:
            raise Refusal("invalid_argument")
        gone = [one["nodeId"] for one in [node, *Family(self.root).descendants(node)]]
        parent["children"].remove(node)
        self.touched += gone
        return {"nodeId": nodeId, "nodeIds": gone, "removedCount": len(gone)}

    def move_node(self, who: Any, nodeId: str, newParentId: str) -> Answer:
        node, target = self.find(nodeId), self.find(newParentId)
        parent = self.parent_of(nodeId)
        if parent is None or target is node or any(one is target for one in Family(self.root).descendants(node)):
            raise Refusal("invalid_argument")
        if not (parent is target and target["children"][-1] is node):
            parent["children"].remove(node)
            target["children"].append(node)
            self.touched.append(nodeId)
        return {"nodeId": nodeId, "oldParentId": parent["nodeId"], "newParentId": newParentId}

    def beside_sibling(self, nodeId: str, siblingId: str, offset: int) -> Answer:
        node, sibling = self.find(nodeId), self.find(siblingId)
        parent = self.parent_of(nodeId)
        if parent is None or node is sibling or self.parent_of(siblingId) is not parent:
            raise Refusal("invalid_argument")
        before = [one["nodeId"] for one in parent["children"]]
        parent["children"].remove(node)
        spot = next(at for at, one in enumerate(parent["children"]) if one is sibling)
        parent["children"].insert(spot + offset, node)
        if before != [one["nodeId"] for one in parent["children"]]:
            self.touched.append(nodeId)
        return {"nodeId": nodeId, "siblingId": siblingId, "parentId": parent["nodeId"]}

    def move_before(self, who: Any, nodeId: str, siblingId: str) -> Answer:
        return self.beside_sibling(nodeId, siblingId, 0)

    def move_after(self, who: Any, nodeId: str, siblingId: str) -> Answer:
        return self.beside_sibling(nodeId, siblingId, 1)

    def sort_children(self, who: Any, parentId: str, byProp: str, direction: str = "asc") -> Answer:
        parent = self.find(parentId)
        before = [one["nodeId"] for one in parent["children"]]
        parent["children"] = in_order(parent["children"], byProp, direction)
        moved = [one["nodeId"] for one, old in zip(parent["children"], before, strict=True) if one["nodeId"] != old]
        self.touched += moved
        return {"parentId": parentId, "nodeIds": sorted(moved)}

    def copy_subtree(self, who: Any, sourceId: str, targetParentId: str, mode: str) -> Answer:
        source, target = self.find(sourceId), self.find(targetParentId)
        if sourceId == "root":
            raise Refusal("invalid_argument")
        family = Family(self.root)
        originals = [source, *family.descendants(source)]
        copies: dict[str, Node] = {}
        for node in originals:
            above = family.parent[node["nodeId"]]
            parent = target if node is source or above is None else copies[above["nodeId"]]
            made = self.attach(parent, node["payloadType"], node["payload"], self.fresh(), node["tags"])
            copies[node["nodeId"]] = made
            if mode == "reference":
                if node["share"] is None:
                    self.shares += 1
                    node["share"] = self.shares
                    self.touched.append(node["nodeId"])
                made["share"] = node["share"]
        return {"nodeId": copies[sourceId]["nodeId"], "idMap": {old: made["nodeId"] for old, made in copies.items()}}

    def clone_node(self, who: Any, nodeId: str, targetParentId: str) -> Answer:
        node, target = self.find(nodeId), self.find(targetParentId)
        if nodeId == "root":
            raise Refusal("invalid_argument")
        return {
            "nodeId": self.attach(target, node["payloadType"], node["payload"], self.fresh(), node["tags"])["nodeId"]
        }

    def tag_node(self, who: Any, nodeId: str, tags: list[str], remove: list[str]) -> Answer:
        node = self.find(nodeId)
        wanted = sorted((set(node["tags"]) | set(tags)) - set(remove))
        if wanted != node["tags"]:
            node["tags"] = wanted
            self.touched.append(nodeId)
        return {"nodeId": nodeId, "tags": wanted}

    def apply_changes(self, who: Any, changes: list[Any], atomic: bool = True) -> Answer:
        """The single calls, one after the other."""
        start = copy.deepcopy(self.root)
        answer: Answer = {"counts": {}, "refs": {}}
        failed = []
        for index, change in enumerate(changes):
            saved = copy.deepcopy((self.root, self.serial, self.shares))
            self.touched = []
            try:
                count, fresh = self.one_change(who, change, answer["refs"])
                self.pending = [(saved[0], self.root, self.touched)]
                self.check_write_root(who, "apply_changes")
            except Refusal as refusal:
                self.root, self.serial, self.shares = saved
                if atomic:
                    raise Refusal(refusal.code, **refusal.facts, index=index) from None
                failed.append(index)
                continue
            finally:
                self.pending = []
            answer["counts"][change["op"]] = answer["counts"].get(change["op"], 0) + count
            if "ref" in change:
                answer["refs"][change["ref"]] = fresh
        self.touched = touched_between(start, self.root)
        return answer if atomic else {**answer, "failed": failed}

    def one_change(self, who: Any, change: Any, refs: dict[str, str]) -> tuple[int, str]:
        def known(given: Any) -> str:
            if isinstance(given, dict) and given["ref"] not in refs:
                raise Refusal("not_found")
            key: str = refs[given["ref"]] if isinstance(given, dict) else given
            self.find(key)
            return key

        at, op = change.get("at"), change["op"]
        if isinstance(at, dict) and "query" in at:
            keys = [hit["nodeId"] for hit in self.select_nodes(who, at["query"])["items"]]
        else:
            keys = [known(one) for one in dict.fromkeys(at)] if isinstance(at, list) else [known(at)] if at else []
        if op == "add":
            beside = change.get("before", change.get("after"))
            parent = known(change["parentId"])
            self.anchored(change, [], parent, known)
            if change.get("ref") in refs:
                raise Refusal("invalid_argument")
            key = self.add_child(who, parent, change["payloadType"], change.get("payload", {}))["nodeId"]
            self.tag_node(who, key, change.get("tags", []), [])
            if beside is not None or "index" in change:
                self.shift([key], change, parent, known)
            return 1, key
        if op == "move":
            parent = known(change["parentId"]) if "parentId" in change else ""
            parent = self.anchored(change, keys, parent, known)
            for key in keys:
                self.move_node(who, key, parent)
            self.shift(keys, change, parent, known)
            return len(keys), ""
        count = 0
        for key in keys:
            if op == "set":
                self.update_payload(who, key, {change["path"]: change["value"]})
            elif op == "unset":
                self.update_payload(who, key, {}, [change["path"]])
            elif op == "tag":
                self.tag_node(who, key, change.get("add", []), change.get("remove", []))
            elif op == "sort":
                self.sort_children(who, key, change["by"], change.get("direction", "asc"))
            elif op == "copy":
                count += len(self.copy_subtree(who, key, known(change["parentId"]), change["mode"])["idMap"]) - 1
            elif key in flat(self.root):
                count += self.remove_node(who, key)["removedCount"] - 1
            else:
                count -= 1
            count += 1
        return count, ""

    def anchored(self, change: Any, keys: list[str], parent: str, known: Any) -> str:
        """The parent that a place belongs to."""
        if "before" not in change and "after" not in change:
            return parent
        sibling = known(change.get("before", change.get("after")))
        above = self.parent_of(sibling)
        if above is None or (parent and above["nodeId"] != parent) or sibling in keys:
            raise Refusal("invalid_argument")
        return str(above["nodeId"])

    def shift(self, keys: list[str], change: Any, parent: str, known: Any) -> None:
        children = self.find(parent)["children"]
        before = [one["nodeId"] for one in children]
        moved = [one for key in keys for one in children if one["nodeId"] == key]
        rest = [one for one in children if one["nodeId"] not in keys]
        spot = min(change.get("index", len(rest)), len(rest))
        if "before" in change or "after" in change:
            sibling = known(change.get("before", change.get("after")))
            spot = [one["nodeId"] for one in rest].index(sibling) + ("after" in change)
        children[:] = [*rest[:spot], *moved, *rest[spot:]]
        if before != [one["nodeId"] for one in children]:
            self.touched += keys

    def bookmark(self, who: Any, nodeId: str, label: str) -> Answer:
        self.find(nodeId)
        self.beside = self.bookmarks[who[0]].get(label) != nodeId
        self.bookmarks[who[0]][label] = nodeId
        return {"nodeId": nodeId, "label": label}

    def remove_bookmark(self, who: Any, label: str) -> Answer:
        if label not in self.bookmarks[who[0]]:
            raise Refusal("not_found")
        self.beside = True
        return {"label": label, "nodeId": self.bookmarks[who[0]].pop(label)}

    def snapshot_create(self, who: Any, label: str) -> Answer:
        self.snapshot_serial += 1
        key = f"s{self.snapshot_serial}"
        form = {
            "snapshotId": key,
            "label": label,
            "agent": who[0],
            "createdAt": "2027-01-15T08:00:00+00:00",
            "nodeCount": len(Family(self.root).order),
        }
        self.snapshots[key] = {**form, "root": copy.deepcopy(self.root), "seq": self.tree_seq}
        self.beside = True
        return form

    def snapshot_delete(self, who: Any, snapshotId: str) -> Answer:
        self.moment(snapshotId) if snapshotId != "current" else self.moment("none")
        if self.agents[who[0]].get("writeRoot") and self.snapshots[snapshotId]["agent"] != who[0]:
            raise Refusal("forbidden")
        del self.snapshots[snapshotId]
        self.beside = True
        return {"snapshotId": snapshotId}

    def snapshot_restore(self, who: Any, snapshotId: str) -> Answer:
        if snapshotId not in self.snapshots:
            raise Refusal("not_found")
        kept = self.snapshots[snapshotId]
        since = [commit for commit in self.commits if commit["seq"] > kept["seq"]]
        old, self.root = self.root, copy.deepcopy(kept["root"])
        diff = self.compare(old, self.root)
        self.touched = touched_between(old, self.root)

        def after(commits: list[dict[str, Any]]) -> None:
            if commits:
                self.undo_stack[who[0]].append(commits)
                self.redo_stack[who[0]] = []
            self.return_bookmarks([*since, *commits])

        self.after = after
        counts = {name: len(diff[name]) for name in ("added", "removed", "moved", "changed")}
        return {"snapshotId": snapshotId, "changed": counts}

    def revert(self, who: Any, again: bool) -> Answer:
        stack = (self.redo_stack if again else self.undo_stack)[who[0]]
        other = (self.undo_stack if again else self.redo_stack)[who[0]]
        if not stack:
            raise Refusal("conflict")
        group = stack[-1]
        if not group:
            touched: list[str] = []
        elif self.commits[-len(group) :] == group:
            self.root = copy.deepcopy(group[0]["before"])
            touched = list(dict.fromkeys(key for commit in group for key in commit["touched"]))
        else:
            raise Refusal("interleaved")
        self.touched = touched

        def after(commits: list[dict[str, Any]]) -> None:
            stack.pop()
            if commits:
                other.append(commits)
                self.return_bookmarks(group)

        self.after = after
        return {"tool": group[0]["tool"], "nodeIds": sorted(touched), "nodeCount": len(touched)}

    def adopt(self, who: Any, tool: str, root: Node, bookmarks: Any, touched: list[str]) -> int:
        """Take over what a call did where this model has no opinion of its own."""
        stack, other = (self.undo_stack, self.redo_stack)[:: -1 if tool == "redo" else 1]
        stack[who[0]].pop()
        if touched:
            self.seq += 1
            self.tree_seq = self.seq
            commit = {"seq": self.seq, "agent": who[0], "tool": tool, "touched": touched, "fuzzy": True}
            self.commits.append({**commit, "before": self.root, "lists": set(), "dropped": []})
            other[who[0]].append([self.commits[-1]])
        self.root, self.bookmarks = root, bookmarks
        return self.version(who)

    def undo(self, who: Any) -> Answer:
        return self.revert(who, again=False)

    def redo(self, who: Any) -> Answer:
        return self.revert(who, again=True)

    def import_merge(self, who: Any, json: Any, strategy: str) -> Answer:
        done: Answer = {"created": [], "updated": [], "removed": [], "skippedCount": 0, "idMap": {}}
        before = copy.deepcopy(self.root)
        forest = planted(copy.deepcopy(json))
        forms = [form for top in forest for form in every(top)]
        payloads: dict[str, str] = {}
        for form in forms:
            group, payload = form.get("payloadGroup"), text(form["payload"])
            if group is not None and payload != payloads.setdefault(group, payload):
                raise Refusal("invalid_argument")
            if form.get("nodeId", "")[:1] == "n" and form["nodeId"][1:].isdigit():
                self.serial = max(self.serial, int(form["nodeId"][1:]))
        groups: dict[str, Node] = {}
        for top in forest:
            above = self.root if top.get("parentId") is None else self.find(top["parentId"])
            self.merge(top, above, strategy, done, groups, placed=top.get("parentId") is not None)
        if strategy == "replace":
            self.trim(forms, done)
        elif strategy == "upsert":
            for form in forms:
                node = self.find(form["nodeId"])
                listed = [child["nodeId"] for child in form.get("children", [])]
                held = {child["nodeId"]: child for child in node["children"]}
                coming = iter([held[key] for key in listed if key in held])
                self.put_in_order(node, [next(coming) if key in listed else child for key, child in held.items()], done)
        self.touched = touched_between(before, self.root)
        for name in ("created", "updated", "removed"):
            done[f"{name}Count"] = len(done[name])
        return done

    def merge(
        self, form: Any, parent: Node, strategy: str, done: Answer, groups: dict[str, Node], *, placed: bool
    ) -> None:
        found = [one for one in Family(self.root).order if one["nodeId"] == form.get("nodeId")]
        if not found:
            node_id = form.get("nodeId") or self.fresh()
            node = self.attach(parent, form["payloadType"], form["payload"], node_id, form.get("tags", ()))
            form["nodeId"] = node_id
            done["created"].append(node_id)
        elif strategy == "skip":
            node = found[0]
            done["skippedCount"] += 1
        else:
            node = found[0]
            replace = strategy == "replace"
            payload = form["payload"] if replace else {**node["payload"], **form["payload"]}
            tags = sorted(set(form.get("tags", ())) | (set() if replace else set(node["tags"])))
            above = self.parent_of(node["nodeId"])
            moves = placed and above is not None and above is not parent
            if (
                not exactly(payload, node["payload"])
                or form["payloadType"] != node["payloadType"]
                or moves
                or tags != node["tags"]
            ):
                done["updated"].append(node["nodeId"])
            node["payloadType"] = form["payloadType"]
            if not exactly(payload, node["payload"]):
                self.set_payload(node, payload)
            if moves and above is not None:
                if parent is node or any(one is parent for one in Family(self.root).descendants(node)):
                    raise Refusal("invalid_argument")
                above["children"].remove(node)
                parent["children"].append(node)
            node["tags"] = tags
        self.join(form, node, strategy, done, groups)
        for child in form.get("children", []):
            self.merge(child, node, strategy, done, groups, placed=True)

    def join(self, form: Any, node: Node, strategy: str, done: Answer, groups: dict[str, Node]) -> None:
        """Nodes of one group in a document share, unless one of them would lose a property to that."""
        group = form.get("payloadGroup")
        if group is None or (strategy == "skip" and not exactly(node["payload"], form["payload"])):
            return
        first = groups.setdefault(group, node)
        already = node["share"] is not None and node["share"] == first["share"]
        if first is node or already or not exactly(first["payload"], node["payload"]):
            return
        if first["share"] is None:
            self.shares += 1
            first["share"] = self.shares
        node["share"] = first["share"]
        if node["nodeId"] not in (*done["created"], *done["updated"]):
            done["updated"].append(node["nodeId"])

    def trim(self, forms: list[Any], done: Answer) -> None:
        """Below a listed node only listed ones stay, and those on the way to one."""
        family = Family(self.root)
        listed = {form["nodeId"] for form in forms}
        staying = {
            up["nodeId"] for one in family.order if one["nodeId"] in listed for up in [one, *family.ancestors(one)]
        }
        gone = [
            one["nodeId"]
            for one in family.order
            if one["nodeId"] not in staying and any(up["nodeId"] in listed for up in family.ancestors(one))
        ]
        done["removed"] += gone
        for one in family.order:
            one["children"] = [child for child in one["children"] if child["nodeId"] not in gone]
        for form in forms:
            wanted = [child["nodeId"] for child in form.get("children", [])]
            node = self.find(form["nodeId"])
            order = {key: at for at, key in enumerate(wanted)}
            ordered = sorted(node["children"], key=lambda child: order.get(child["nodeId"], len(order)))
            self.put_in_order(node, ordered, done)

    def put_in_order(self, node: Node, children: list[Node], done: Answer) -> None:
        for old, new in zip(node["children"], children, strict=True):
            if old is not new and new["nodeId"] not in (*done["created"], *done["updated"]):
                done["updated"].append(new["nodeId"])
        node["children"] = children


ABSENT = object()


def patched(payload: Any, patch: Any, remove: list[str]) -> Any:
    """A payload without what is removed and with what is set, each where a reader of the path would look."""
    for path in remove:
        payload = without(payload, path.split("."))
    for path, value in patch.items():
        payload = with_value(payload, path.split("."), value)
    return payload


def key_of(holder: Any, parts: list[str]) -> tuple[str, list[str]]:
    """The key that a path leads to in an object, and the path behind it."""
    if ".".join(parts) in holder:
        return ".".join(parts), []
    alike = [key for key in holder if key.lower() == parts[0].lower()]
    found = parts[0] if parts[0] in holder or len(alike) != 1 else alike[0]
    return found, parts[1:]


def with_value(holder: Any, parts: list[str], value: Any) -> Any:
    key, rest = key_of(holder, parts)
    if not rest:
        return {**holder, key: copy.deepcopy(value)}
    inner = {} if holder.get(key) is None else holder[key]
    if not isinstance(inner, dict):
        raise Refusal("invalid_argument")
    return {**holder, key: with_value(inner, rest, value)}


def without(holder: Any, parts: list[str]) -> Any:
    key, rest = key_of(holder, parts)
    if key not in holder:
        return holder
    if not rest:
        return {name: value for name, value in holder.items() if name != key}
    if isinstance(holder[key], list):
        raise Refusal("invalid_argument")
    return {**holder, key: without(holder[key], rest)} if isinstance(holder[key], dict) else holder


def value_at(holder: Any, parts: list[str]) -> Any:
    key, rest = key_of(holder, parts)
    if key not in holder:
        return ABSENT
    if not rest:
        return holder[key]
    return value_at(holder[key], rest) if isinstance(holder[key], dict) else ABSENT


def planted(document: Any) -> list[Any]:
    """A document as nested forms, one for each top; Refusal where it has no clear shape."""
    forms = document.get("items", [document])
    if "items" in document:
        ids = [form["nodeId"] for form in forms]
        inner = {form["nodeId"]: form for form in forms}
        if len(inner) < len(ids):
            raise Refusal("invalid_argument")
        tops = []
        for form in forms:
            above = inner.get(form.get("parentId"))
            tops.append(form) if above is None else above.setdefault("children", []).append(form)
        if sum(len(every(top)) for top in tops) < len(forms):
            raise Refusal("invalid_argument")
        forms = tops
    for top in forms:
        for form in every(top):
            if form.get("nodeId") == "root" and (form is not top or top.get("parentId") is not None):
                raise Refusal("invalid_argument")
    return list(forms)


def every(form: Any) -> list[Any]:
    return [form, *(one for child in form.get("children", []) for one in every(child))]


VIEW_CHANGES = (
    "expand_node",
    "collapse_node",
    "toggle_node",
    "expand_all",
    "collapse_all",
    "set_expansion_recursive",
    "set_filters",
    "import_view",
)
MUTATIONS = frozenset(VIEW_CHANGES) | {
    "add_child",
    "apply_changes",
    "update_payload",
    "update_payload_property",
    "update_nodes",
    "remove_node",
    "move_node",
    "move_before",
    "move_after",
    "sort_children",
    "copy_subtree",
    "clone_node",
    "tag_node",
    "bookmark",
    "remove_bookmark",
    "snapshot_create",
    "snapshot_delete",
    "snapshot_restore",
    "undo",
    "redo",
    "import_merge",
}


def chosen(preset: Any, included: Any, excluded: Any) -> tuple[list[str], list[str]]:
    return (preset[0] if included is None else included, preset[1] if excluded is None else excluded)


def marked(value: Any) -> str:
    """A value such that equal ones look alike."""
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value, sort_keys=True)


def paths_in(value: Any, above: str = "") -> list[str]:
    if isinstance(value, list):
        return [path for one in value if isinstance(one, dict) for path in paths_in(one, above)] if above else []
    if not isinstance(value, dict):
        return []
    found = []
    for key, inner in value.items():
        found += [f"{above}{key}", *paths_in(inner, f"{above}{key}.")]
    return found


def tallied(word: str, found: list[str]) -> list[Answer]:
    return sorted(({word: one, "count": found.count(one)} for one in set(found)), key=lambda entry: str(entry[word]))


def filtered(value: Any, included: list[str], excluded: list[str], path: tuple[str, ...] = ()) -> Any:
    """Keep what every leaf's own path allows; arrays add nothing to a path."""
    if isinstance(value, list):
        return [filtered(item, included, excluded, path) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        here = (*path, key.casefold())
        ins = [tuple(one.casefold().split(".")) for one in included]
        outs = [tuple(one.casefold().split(".")) for one in excluded]
        related = not ins or any(here[: len(one)] == one or one[: len(here)] == here for one in ins)
        if related and not any(here[: len(one)] == one for one in outs):
            under = any(here[: len(one)] == one for one in ins)
            kept[key] = filtered(item, [] if under else included, excluded, here)
    return kept


def satisfied(node: Node, form: Any) -> bool:
    if "and" in form:
        return all(satisfied(node, part) for part in form["and"])
    if "or" in form:
        return any(satisfied(node, part) for part in form["or"])
    values = tuple(form["value"]) if form["op"] == "between" else (form["value"],)
    return any(holds(form["op"], found, values) for found in values_at(node["payload"], form["path"]))


def in_order(nodes: list[Node], path: str, direction: str) -> list[Node]:
    def key(node: Node) -> Any:
        found = values_at(node["payload"], path)
        value = found[0] if found else None
        if value is None:
            return None
        group = (
            2
            if isinstance(value, bool)
            else 0
            if isinstance(value, int | float)
            else 1
            if isinstance(value, str)
            else 3
        )
        return (group, json.dumps(value, sort_keys=True, separators=(",", ":")) if group == 3 else value)

    absent = [node for node in nodes if key(node) is None]
    rest = [node for node in nodes if key(node) is not None]
    ordered: list[Node] = []
    for node in rest:
        at = len(ordered)
        while at and (key(ordered[at - 1]) > key(node) if direction == "asc" else key(ordered[at - 1]) < key(node)):
            at -= 1
        ordered.insert(at, node)
    return ordered + absent


def flat(root: Node) -> dict[str, Any]:
    family = Family(root)
    return {
        node["nodeId"]: {
            "parent": above["nodeId"] if (above := family.parent[node["nodeId"]]) else None,
            "type": node["payloadType"],
            "payload": node["payload"],
            "tags": node["tags"],
            "share": node["share"],
            "children": [child["nodeId"] for child in node["children"]],
        }
        for node in family.order
    }


def property_changes(old: Any, new: Any) -> Answer:
    changes = {}
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in old or key not in new or not exactly(old[key], new[key]):
            changes[key] = {**({"old": old[key]} if key in old else {}), **({"new": new[key]} if key in new else {})}
    return changes


def order_changes(was: Any, now: Any) -> dict[str, tuple[list[str], list[str]]]:
    """For each parent whose remaining children changed their order: them, before and after."""
    changes = {}
    for key in was.keys() & now.keys():
        old = [child for child in was[key]["children"] if child in now[key]["children"]]
        new = [child for child in now[key]["children"] if child in was[key]["children"]]
        if old != new:
            changes[key] = (old, new)
    return changes


def changed_lists(old: Node, new: Node) -> set[str]:
    """The nodes that have other children, or in another order."""
    was, now = flat(old), flat(new)
    none: Node = {"children": []}
    return {key for key in was.keys() | now.keys() if was.get(key, none)["children"] != now.get(key, none)["children"]}


def touched_between(old: Node, new: Node) -> list[str]:
    """The nodes that differ, counting a changed order as a change of one of the children."""
    was, now = flat(old), flat(new)
    shuffled = [order[0] for _, order in order_changes(was, now).values()]
    for form in (*was.values(), *now.values()):
        del form["children"]
    differs = [key for key in was.keys() | now.keys() if not exactly(was.get(key), now.get(key))]
    return list(dict.fromkeys([*differs, *shuffled]))
