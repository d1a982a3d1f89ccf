"""A project file: what is said when it cannot be used, and what is never said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrove import Config
from toolgrove.config import ConfigError
from toolgrove.config.section import Section

Write = Callable[..., Path]
Refused = Callable[..., str]

WHOLE = """
project: demo
workspace: {store: memory, concurrency: tree}
extensions: ./extensions
mcpServers:
  time: {command: uvx, args: [mcp-server-time]}
  wiki: {url: "https://wiki.example/mcp", headers: {Authorization: "Bearer ${env:WIKI_TOKEN}"}}
httpTools:
  get_item:
    description: One item of the shop.
    method: GET
    url: "https://shop.example/items/{id}"
    headers: {Authorization: "Bearer ${env:SHOP_TOKEN}"}
    inputSchema: {type: object, properties: {id: {type: string}}, required: [id]}
    allowPrivate: false
  shop: {openapi: ./shop.json}
secrets: {SHOP_TOKEN: {tools: ["get_item", "shop_*"]}}
agents:
  researcher:
    role: reader
    tools: ["get_*", "search*", "time_*"]
    deny: ["get_item"]
    mcp: {time: {mask: ["convert_time"]}}
    approve: ["wiki_*"]
    rateLimit: 60/minute
    readOnly: false
    maxDepth: 2
    mayDelegate: ["search*"]
"""


def test_the_file_of_the_documentation_is_read(write: Write) -> None:
    config = Config.load(write(WHOLE))
    assert list(config.mcp_servers) == ["time", "wiki"]
    agent = config.agents["researcher"]
    assert agent.mcp is not None
    assert (agent.mcp["time"].mask, agent.max_depth, agent.may_delegate) == (("convert_time",), 2, ("search*",))
    assert config.secrets["SHOP_TOKEN"].tools == ("get_item", "shop_*")


def test_every_problem_is_told_at_once_with_its_place(refused: Refused) -> None:
    told = refused(
        dedent(
            """\
            mcpServers:
              time: {comand: uvx, args: [mcp-server-time]}
              both: {command: uvx, url: "https://wiki.example/mcp"}
              My Server: {url: "https://wiki.example/mcp"}
            agents:
              researcher:
                tolls: ["get_*"]
                role: king
                tools: "get_*"
                maxDepth: -1
                rateLimit: often
                description: 7
            workspce: {}
            """
        )
    )
    assert told == dedent(
        """\
        toolgrove.yaml has 10 problems:
          - line 2, column 10: mcpServers.time.comand: unknown key; did you mean 'command'?
          - line 3, column 3: mcpServers.both: name a command (stdio) or a url (HTTP), one of the two
          - line 4, column 3: mcpServers.'My Server': a name has 1 to 64 of A-Z a-z 0-9 _ -; 'My_Server' would do
          - line 7, column 5: agents.researcher.tolls: unknown key; did you mean 'tools'?
          - line 8, column 5: agents.researcher.role: must be 'reader' or 'editor'
          - line 9, column 5: agents.researcher.tools: must be a list, such as ["search*"]
          - line 10, column 5: agents.researcher.maxDepth: must be at least 0
          - line 11, column 5: agents.researcher.rateLimit: 'often' is not a rate like 60/minute
          - line 12, column 5: agents.researcher.description: must be text; put it in quotes
          - line 13, column 1: workspce: unknown key; did you mean 'workspace'?"""
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [\n", "toolgrove.yaml: line 2, column 1: is not YAML: while parsing a flow node"),
        ("- a\n", "toolgrove.yaml: line 1, column 1: must be a mapping of keys to values, such as 'agents: …'"),
        ("project: a\nproject: b\n", "line 2, column 1: project: the key stands twice, first in line 1"),
        ("agents: {a: {}, a: {}}\n", "line 1, column 17: agents.a: the key stands twice, first in line 1"),
        ("x: !!python/name:os.system ''\n", "line 1, column 4: is not YAML: could not determine a constructor"),
        ("project: 2026-13-45\n", "is not YAML: month must be in 1..12"),
        ("a: *b\n", "line 1, column 4: alias 'b' names nothing that stands before it"),
        ("a: &a [*a]\n", "line 1, column 8: alias 'a' names nothing that stands before it"),
        ("a: b\n---\nc: d\n", "expected a single document"),
        ("[" * 100_000, "is nested more than 50 deep"),
        ("a: [" + "1," * 100_000 + "]", "holds more than 100,000 values"),
        ("# " + "x" * 1_000_000, "is larger than 1,000,000 bytes"),
        ("1: {}\n", "Keys should be strings"),
    ],
    ids=lambda value: value[:20],
)
def test_a_file_that_is_no_project_gets_one_clear_sentence(refused: Refused, text: str, told: str) -> None:
    said = refused(text)
    assert told in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"project": "a",}', "is not JSON: "),
        ('{"project": "a", "project": "b"}', "toolgrove.json: key 'project' stands twice in one object"),
        ('{"startupBudget": NaN}', "toolgrove.json: it holds NaN, which is not JSON"),
        ('{"a":' * 100_000, "toolgrove.json: is nested more than 50 deep"),
        ('{"agents": {"a": {"tolls": []}}}', "toolgrove.json: agents.a.tolls: unknown key; did you mean 'tools'?"),
    ],
    ids=lambda value: value[:20],
)
def test_a_json_file_is_held_to_the_same(refused: Refused, text: str, told: str) -> None:
    assert told in refused(text, "toolgrove.json")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("{cardinality: 3}", "cardinality must be a mapping with type or min or max"),
        ("{cardinality: {mx: 3}}", "cardinality has the key 'mx'; known keys: type, min, max"),
        ("{cardinality: {min: few}}", "cardinality needs a whole number from 0 on as min"),
        ("{cardinality: {min: 3, max: 2}}", "cardinality has a min of 3 above its max of 2"),
        ("{types: Room, required: [name]}", "types must be a list of names, such as [name, status]"),
        ("{required: name}", "required must be a list of names, such as [name, status]"),
        ("{allowedParents: [1]}", "allowedParents must be a list of names, such as [name, status]"),
        ("{unique: {path: x, within: sibling}}", "unique is within 'tree' or 'siblings', not 'sibling'"),
        ("{unique: {path: 5}}", "unique needs the path of a property"),
        ("{format: x}", "format must be a mapping with path and is"),
        ("{format: {path: x, is: lower}}", "format is one of trimmed, nonEmpty, "),
        ("{maxLength: {path: x, max: many}}", "maxLength needs a whole number from 0 on as max"),
        ("{schema: 5}", "schema needs a JSON Schema"),
        ("{schema: {type: 5}}", "schema is not a JSON Schema: 5 is not valid"),
        ("{id: 5, required: [x]}", "id must be text; put it in quotes"),
    ],
    ids=lambda value: value,
)
def test_a_rule_that_could_never_hold_is_refused(refused: Refused, rule: str, told: str) -> None:
    said = refused(f"workspace: {{rulesets: {{tidy: [{rule}]}}}}\n")
    assert f"rulesets.tidy[0].{told}" in said
    assert "\n" not in said


@pytest.mark.parametrize("schema", ["{type: 5}", "{pattern: '('}", "{$ref: 'https://schemas.example/x'}"])
def test_a_payload_schema_that_is_none_is_named_and_nothing_is_fetched(refused: Refused, schema: str) -> None:
    said = refused(f"workspace:\n  payloadTypes:\n    Room:\n      schema: {schema}\n")
    assert "line 4, column 7: workspace.payloadTypes.Room.schema: is not a JSON Schema: " in said
    assert "\n" not in said
    assert "error sending request" not in said


def test_a_rate_that_lets_nothing_through_is_refused(refused: Refused) -> None:
    assert "'0/minute' never lets a call through" in refused("agents: {a: {rateLimit: 0/minute}}\n")


def test_tabs_are_fine_in_json(write: Write) -> None:
    assert Config.load(write('{\n\t"project": "tabbed"\n}', "toolgrove.json")).project == "tabbed"


def test_aliases_of_aliases_do_not_fill_the_memory(refused: Refused) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 12)]
    assert "holds more than 100,000 values with its aliases written out" in refused("\n".join(lines))


def test_agents_may_share_what_they_have_in_common(write: Write) -> None:
    config = Config.load(write('agents:\n  a: &a {tools: ["*"], role: editor}\n  b: {<<: *a, role: reader}\n'))
    assert (config.agents["b"].tools, config.agents["b"].role) == (("*",), "reader")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file; 'toolgrove init' writes one to start from"):
        Config.load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="is a folder; name the file in it"):
        Config.load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        Config.load(tmp_path / "file" / "toolgrove.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("project: a\nname: Zürich\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="line 2, column 8: is not UTF-8 text"):
        Config.load(latin)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "toolgrove.yaml"
    path.write_bytes(b"\xef\xbb\xbfproject: marked\n")
    assert Config.load(path).project == "marked"


CANARY = "sk-live-canary-0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f'mcpServers: {{a: {{url: "https://x", headers: {{Authorization: ["{CANARY}"]}}}}}}',
        f'mcpServers: {{a: {{command: "{CANARY}", url: "{CANARY}"}}}}',
        f'mcpServers: {{a: {{comand: "{CANARY}"}}}}',
        f'mcpServers: {{a: {{command: x, env: {{A: "{CANARY}", B: {{}}}}}}}}',
        f'mcpServers: {{a: {{command: x, timeout: "{CANARY}"}}}}',
        f'agents: {{a: {{role: "{CANARY}", maxDepth: "{CANARY}", tools: "{CANARY}"}}}}',
        f'mcpServers: {{a: {{url: "https://x", headers: {{A: "${{input:{CANARY[:3]}}} {CANARY}"}}}}}}',
        f'key: "{CANARY}\nother: [',
        f"key: {{{CANARY}",
        f"key: !x {CANARY}",
    ],
)
def test_a_value_is_never_repeated_in_a_problem(write: Write, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(write(text))
    assert CANARY not in str(caught.value) + repr(caught.value.problems)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_configuration_does_not_show_what_may_be_a_secret() -> None:
    form = {"mcpServers": {"a": {"command": "x", "env": {"KEY": CANARY}, "auth": {"secret": CANARY}}}}
    form["mcpServers"]["b"] = {"url": "https://x", "headers": {"Authorization": CANARY}}
    form["mcpServers"]["c"] = {"url": "https://x", "oauth": {"clientId": "c", "clientSecret": CANARY}}
    assert CANARY not in repr(Config.model_validate(form))


def test_paths_are_relative_to_the_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(
        "extensions: ./ext\nworkspace: {auditLog: logs/a}\nmcpServers: {a: {command: ./run, cwd: sub}, b: {command: x}}"
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = Config.load(path)
    assert (config.folder, config.extensions) == (tmp_path, tmp_path / "ext")
    assert (config.workspace.audit_log, config.mcp_servers["a"].cwd) == (tmp_path / "logs/a", tmp_path / "sub")
    assert config.mcp_servers["b"].cwd == tmp_path
    monkeypatch.chdir(tmp_path)
    assert Config.load("toolgrove.yaml").folder == tmp_path


def test_state_is_kept_beside_the_file_and_in_memory_without_one(write: Write, tmp_path: Path) -> None:
    assert Config.load(write("project: a")).state == tmp_path / ".toolgrove"
    assert Config.load(write("state: ../kept")).state == tmp_path / "../kept"
    assert Config.model_validate({}).state is None
    assert Config.model_validate({"state": "kept"}).state == Path("kept")


@given(st.text())
def test_any_text_is_a_project_or_a_clear_error(text: str) -> None:
    for name in ("a.yaml", "a.json"):
        try:
            Config.parse(text, Path(name))
        except ConfigError as error:
            assert str(error).startswith(name)  # noqa: PT017


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SECTIONS = ["agents", "mcpServers", "servers", "httpTools", "secrets", "workspace", "runner", "state", "inputs"]


@given(st.dictionaries(st.sampled_from(SECTIONS), st.dictionaries(st.text(max_size=5), JSON, max_size=3) | JSON))
def test_any_form_is_a_project_or_a_list_of_problems(form: dict[str, object]) -> None:
    try:
        Config.model_validate(form)
    except ValueError as error:
        assert str(error)  # noqa: PT017


def test_a_section_that_is_absent_is_what_an_empty_one_would_be() -> None:
    default = Config()
    sections = {name: value for name, value in default if isinstance(value, Section)}
    assert {"workspace", "results", "answers", "approvals", "rate_limits"} < sections.keys()
    for name, section in sections.items():
        said = section.model_dump(exclude_unset=True)
        assert type(section).model_validate(said) == section, name
        assert Config.model_validate({name: said}) == default
    assert type(default.workspace.limits).model_validate({}) == default.workspace.limits
