"""ModuleIDNormalizer: module ids as OpenAI function names and back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apcore_mcp.adapters.id_normalizer import ModuleIDNormalizer

ids = ModuleIDNormalizer()
LEGAL = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_SEGMENTS = st.builds(str.__add__, st.sampled_from("abyz"), st.text(alphabet=st.sampled_from("abz019_"), max_size=4))
_LEGAL_IDS = st.lists(_SEGMENTS, min_size=1, max_size=5).map(".".join)


@pytest.mark.requirement("FR-OPENAI-002")
@pytest.mark.parametrize(
    ("module_id", "name"),
    [
        ("image.resize", "image-resize"),
        ("simple", "simple"),
        ("comfyui.workflow.execute", "comfyui-workflow-execute"),
        ("my_module.resize", "my_module-resize"),
    ],
)
def test_dots_become_hyphens_and_come_back(module_id: str, name: str) -> None:
    assert ids.normalize(module_id) == name
    assert ids.denormalize(name) == module_id


@pytest.mark.parametrize("name", ["image-resize", "simple", "my_module-resize", "a-b-c9"])
def test_a_name_that_a_module_can_have_is_read_back(name: str) -> None:
    assert ids.try_denormalize(name) == ids.denormalize(name)


@pytest.mark.parametrize(
    "name", ["", "-", "a--b", "Image-resize", "9a", "a-9b", "a b", "a/b", "a-\n", "é-a", "-a", "a-"]
)
def test_a_name_that_no_module_can_have_is_none(name: str) -> None:
    assert ids.try_denormalize(name) is None


@pytest.mark.requirement("FR-OPENAI-002")
@pytest.mark.parametrize("module_id", ["my-module.resize", "a-b", "-"])
def test_an_id_with_a_hyphen_is_refused(module_id: str) -> None:
    with pytest.raises(ValueError, match="hyphen"):
        ids.normalize(module_id)


@pytest.mark.requirement("FR-OPENAI-002")
@given(_LEGAL_IDS)
def test_a_name_is_legal_for_openai_and_leads_back_to_its_id(module_id: str) -> None:
    assert LEGAL.fullmatch(module_id)
    name = ids.normalize(module_id)
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", name)
    assert ids.denormalize(name) == module_id


@pytest.mark.requirement("FR-OPENAI-002")
@given(_LEGAL_IDS, _LEGAL_IDS)
def test_different_ids_have_different_names(one: str, other: str) -> None:
    assert (ids.normalize(one) == ids.normalize(other)) == (one == other)
