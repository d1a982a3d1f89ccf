"""AnnotationMapper: apcore's flags as MCP hints and as text."""

import pytest
from apcore import ModuleAnnotations
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp_types import ToolAnnotations

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from modules import Sample, registry_of

mapper = AnnotationMapper()


@pytest.mark.requirement("FR-ANNOT-001")
@pytest.mark.parametrize("value", [True, False])
def test_destructive_becomes_the_destructive_hint(value: bool) -> None:
    assert mapper.to_mcp_annotations(ModuleAnnotations(destructive=value)).destructive_hint is value


@pytest.mark.requirement("FR-ANNOT-002")
@pytest.mark.parametrize("value", [True, False])
def test_readonly_becomes_the_read_only_hint(value: bool) -> None:
    assert mapper.to_mcp_annotations(ModuleAnnotations(readonly=value)).read_only_hint is value


@pytest.mark.requirement("FR-ANNOT-003")
@pytest.mark.parametrize("value", [True, False])
def test_idempotent_becomes_the_idempotent_hint(value: bool) -> None:
    assert mapper.to_mcp_annotations(ModuleAnnotations(idempotent=value)).idempotent_hint is value


@pytest.mark.requirement("FR-ANNOT-004")
@pytest.mark.parametrize("value", [True, False])
def test_open_world_becomes_the_open_world_hint(value: bool) -> None:
    assert mapper.to_mcp_annotations(ModuleAnnotations(open_world=value)).open_world_hint is value


@pytest.mark.requirement("FR-ANNOT-001", "FR-ANNOT-002", "FR-ANNOT-003", "FR-ANNOT-004")
@given(st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_four_hints_are_independent(readonly: bool, destructive: bool, idempotent: bool, open_world: bool) -> None:
    annotations = ModuleAnnotations(
        readonly=readonly, destructive=destructive, idempotent=idempotent, open_world=open_world
    )
    assert mapper.to_mcp_annotations(annotations) == ToolAnnotations(
        read_only_hint=readonly, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=open_world
    )


@pytest.mark.requirement("FR-ANNOT-005")
def test_a_module_without_annotations_gets_the_defaults() -> None:
    assert mapper.to_mcp_annotations(None) == ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
    )


@pytest.mark.requirement("FR-ANNOT-006")
@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, False),
        (ModuleAnnotations(), False),
        (ModuleAnnotations(requires_approval=False), False),
        (ModuleAnnotations(requires_approval=True), True),
    ],
)
def test_requires_approval_can_be_asked_for(annotations: ModuleAnnotations | None, expected: bool) -> None:
    assert mapper.has_requires_approval(annotations) is expected


@pytest.mark.requirement("FR-ANNOT-007")
@pytest.mark.parametrize("annotations", [None, ModuleAnnotations()])
def test_default_annotations_add_nothing_to_a_description(annotations: ModuleAnnotations | None) -> None:
    assert mapper.to_description_suffix(annotations) == ""


@pytest.mark.requirement("FR-ANNOT-007")
@pytest.mark.parametrize(
    ("annotations", "suffix"),
    [
        (ModuleAnnotations(destructive=True), "destructive=true"),
        (ModuleAnnotations(readonly=True), "readonly=true"),
        (ModuleAnnotations(idempotent=True), "idempotent=true"),
        (ModuleAnnotations(requires_approval=True), "requires_approval=true"),
        (ModuleAnnotations(open_world=False), "open_world=false"),
        (ModuleAnnotations(readonly=True, idempotent=True), "readonly=true, idempotent=true"),
        (
            ModuleAnnotations(
                readonly=True, destructive=True, idempotent=True, requires_approval=True, open_world=False
            ),
            "readonly=true, destructive=true, idempotent=true, requires_approval=true, open_world=false",
        ),
    ],
)
def test_only_what_differs_from_the_defaults_is_in_the_suffix(annotations: ModuleAnnotations, suffix: str) -> None:
    assert mapper.to_description_suffix(annotations) == f"\n\n[Annotations: {suffix}]"


@pytest.mark.requirement("FR-ANNOT-007")
def test_annotations_that_the_specification_does_not_name_stay_out_of_the_suffix() -> None:
    assert mapper.to_description_suffix(ModuleAnnotations(streaming=True, cacheable=True)) == ""


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
@pytest.mark.requirement("FR-ANNOT-006", "FR-SERVER-011")
async def test_a_client_sees_which_tools_need_an_approval(era: str) -> None:
    modules = {
        "asks": Sample(annotations=ModuleAnnotations(requires_approval=True)),
        "does_not": Sample(annotations=ModuleAnnotations()),
        "says_nothing": Sample(),
    }
    bridge = Bridge(registry_of(modules), Options())
    async with bridge.running(), Client(bridge.endpoint.server, mode=era) as client:
        seen = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
    assert seen == {"asks": {"apcore/requiresApproval": True}, "does_not": None, "says_nothing": None}
