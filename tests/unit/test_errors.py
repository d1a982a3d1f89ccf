"""ErrorMapper: the texts of section 7.5, to the letter."""

from types import SimpleNamespace
from typing import Any

import pytest
from apcore import errors
from hypothesis import given
from hypothesis import strategies as st

from apcore_mcp.adapters.errors import ErrorMapper
from mcp_text import text_of


def text(error: BaseException, **facts: Any) -> str:
    result = ErrorMapper().to_mcp_error(error, **facts)
    assert result.is_error is True
    return text_of(result)


def validation(*entries: Any) -> errors.SchemaValidationError:
    return errors.SchemaValidationError(message="Input validation failed", errors=list(entries))


@pytest.mark.requirement("FR-ERROR-001")
@pytest.mark.parametrize("module_id", ["image.resize", "comfyui.workflow.execute", "simple", ""])
def test_a_module_that_is_not_found_is_named(module_id: str) -> None:
    assert text(errors.ModuleNotFoundError(module_id=module_id)) == f"Module not found: {module_id}"


@pytest.mark.requirement("FR-ERROR-002")
def test_one_invalid_field_is_one_line() -> None:
    error = validation({"field": "width", "code": "int_type", "message": "Input should be a valid integer"})
    assert text(error) == "Input validation failed:\n- width: Input should be a valid integer (int_type)"


@pytest.mark.requirement("FR-ERROR-002")
def test_several_invalid_fields_are_a_line_each_in_their_order() -> None:
    error = validation(
        {"field": "width", "code": "int_type", "message": "Input should be a valid integer"},
        {"field": "parameters.width", "code": "missing", "message": "Field required"},
    )
    assert text(error) == (
        "Input validation failed:\n"
        "- width: Input should be a valid integer (int_type)\n"
        "- parameters.width: Field required (missing)"
    )


@pytest.mark.requirement("FR-ERROR-002")
def test_no_invalid_field_is_no_line() -> None:
    assert text(validation()) == "Input validation failed"


@pytest.mark.requirement("FR-ERROR-002")
def test_the_shapes_that_apcore_gives_in_other_releases_read_the_same() -> None:
    expected = "Input validation failed:\n- parameters.width: Input should be a valid integer (int_type)"
    facts = {"message": "Input should be a valid integer"}
    assert text(validation({"field": "parameters.width", "code": "int_type", **facts})) == expected
    assert text(validation({"path": "/parameters/width", "keyword": "int_type", **facts})) == expected
    assert text(validation({"path": "parameters/width", "keyword": "int_type", **facts})) == expected
    old = SimpleNamespace(path="/parameters/width", constraint="int_type", **facts)
    assert text(validation(old)) == expected


@pytest.mark.requirement("FR-ERROR-002")
def test_a_field_that_apcore_lost_is_found_again_in_the_schema() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["a", "b", "c"]}
    lost = {"path": "", "keyword": "required", "message": "Field required"}
    assert text(validation(lost, lost), schema=schema, arguments={"b": 1}) == (
        "Input validation failed:\n- a: Field required (required)\n- c: Field required (required)"
    )


@pytest.mark.requirement("FR-ERROR-002")
def test_a_failure_of_the_output_is_not_blamed_on_the_input() -> None:
    error = errors.SchemaValidationError(
        message="Output validation failed", errors=[{"path": "/secret_field", "keyword": "type", "message": "wrong"}]
    )
    assert text(error) == "Output validation failed"


@pytest.mark.requirement("FR-ERROR-003", "NFR-SEC-002")
@pytest.mark.parametrize("caller", [None, "mcp_client_123"])
@pytest.mark.parametrize("target", ["admin.delete_all", "x"])
def test_a_denied_call_says_nothing_about_who_and_what(caller: str | None, target: str) -> None:
    assert text(errors.ACLDeniedError(caller_id=caller, target_id=target)) == "Access denied"


@pytest.mark.requirement("FR-ERROR-004")
@pytest.mark.parametrize("milliseconds", [0, 1, 30000, 60000])
def test_a_timeout_says_how_long(milliseconds: int) -> None:
    error = errors.ModuleTimeoutError(module_id="slow.module", timeout_ms=milliseconds)
    assert text(error) == f"Module timed out after {milliseconds}ms"


@pytest.mark.requirement("FR-ERROR-005")
def test_invalid_input_gives_the_message() -> None:
    error = errors.InvalidInputError(message="module_id must be a non-empty string")
    assert text(error) == "Invalid input: module_id must be a non-empty string"


@pytest.mark.requirement("FR-ERROR-006")
def test_call_depth_hides_the_chain() -> None:
    error = errors.CallDepthExceededError(depth=33, max_depth=32, call_chain=["a.module", "b.module"])
    assert text(error) == "Call depth limit exceeded"


@pytest.mark.requirement("FR-ERROR-007")
def test_a_circular_call_hides_the_chain() -> None:
    error = errors.CircularCallError(module_id="a.module", call_chain=["a.module", "b.module", "a.module"])
    assert text(error) == "Circular call detected"


@pytest.mark.requirement("FR-ERROR-008")
def test_call_frequency_hides_the_chain() -> None:
    error = errors.CallFrequencyExceededError(
        module_id="spammy.module", count=4, max_repeat=3, call_chain=["spammy.module"] * 4
    )
    assert text(error) == "Call frequency limit exceeded"


@pytest.mark.requirement("FR-ERROR-009", "NFR-SEC-002")
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("disk full at /var/lib/secret"),
        TypeError("'NoneType' object is not iterable"),
        OSError(28, "No space left", "/var/lib/secret"),
        KeyError("missing_key"),
        Exception(),
        BaseExceptionGroup("several", [KeyboardInterrupt(), RuntimeError("a")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unexpected_exception_says_nothing_about_itself(error: BaseException) -> None:
    assert text(error) == "Internal error occurred"


@pytest.mark.requirement("FR-ERROR-009")
def test_an_exception_that_apcore_wrapped_is_as_unexpected_as_it_was() -> None:
    error = errors.ModuleExecuteError(
        module_id="x", message="Module 'x' raised RuntimeError: secret", cause=RuntimeError("secret")
    )
    assert text(error) == "Internal error occurred"


@pytest.mark.requirement("FR-ERROR-010")
@pytest.mark.parametrize(
    "error",
    [
        errors.ConfigError(message="the secret path is /etc/apcore"),
        errors.SchemaNotFoundError(schema_id="secret.schema"),
        errors.ModuleError(code="FUTURE_CODE", message="secret"),
    ],
    ids=lambda error: error.code,
)
def test_other_module_errors_give_their_code_only(error: errors.ModuleError) -> None:
    assert text(error) == f"Module error: {error.code}"


@pytest.mark.requirement("FR-ERROR-010")
def test_a_subclass_of_a_mapped_error_keeps_its_text() -> None:
    class Denied(errors.ACLDeniedError):
        pass

    assert text(Denied(caller_id="me", target_id="you")) == "Access denied"


@pytest.mark.requirement("FR-ERROR-011")
@given(
    st.one_of(
        st.builds(errors.ModuleNotFoundError, module_id=st.text(max_size=5)),
        st.builds(errors.ModuleError, code=st.text(max_size=5), message=st.text(max_size=5)),
        st.builds(errors.InvalidInputError, message=st.text(max_size=5)),
        st.builds(
            lambda entries: validation(*entries),
            st.lists(
                st.dictionaries(
                    st.sampled_from(["field", "code", "message", "path", "keyword"]),
                    st.one_of(st.none(), st.integers(), st.sampled_from(["", "/", "required", "a.b", "0"])),
                ),
                max_size=3,
            ),
        ),
        st.builds(RuntimeError, st.text(max_size=5)),
    )
)
def test_every_mapped_error_is_an_error(error: Exception) -> None:
    assert ErrorMapper().to_mcp_error(error).is_error is True
    assert ErrorMapper().to_mcp_error(error, schema={}, arguments={}).is_error is True


@pytest.mark.requirement("FR-ERROR-011")
def test_an_error_that_is_its_own_cause_ends() -> None:
    error = errors.ModuleExecuteError(module_id="x", message="m")
    error.__cause__ = error
    assert text(error) in {"Internal error occurred", "Module error: MODULE_EXECUTE_ERROR"}
