//! The one form of every answer with a status of 400 or more.

use super::Answer;

/// Asserts that an answer is a problem that lacks nothing, whichever it is.
#[track_caller]
pub(crate) fn assert_whole_problem(answer: &Answer, case: &str) {
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    let body = &answer.body;
    assert_eq!(header("content-type"), Some("application/problem+json"), "{case}: {answer:?}");
    assert!(body["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{case}: {answer:?}");
    assert_eq!(body["request_id"].as_str(), header("x-request-id"), "{case}");
    assert_eq!(body["status"], answer.status, "{case}");
    let code = body["code"].as_str().unwrap_or_default();
    assert_eq!(body["type"], format!("/problems/{code}"), "{case}: {body}");
    for text in ["title", "detail"] {
        assert!(body[text].as_str().is_some_and(|text| !text.is_empty()), "{text} of {case}: {body}");
    }
    let recorded = body.get("recorded").unwrap_or_else(|| panic!("no recorded: {case}: {body}"));
    assert!(recorded.is_boolean() || recorded.is_null(), "{case}: {body}");
    assert!(body["retryable"].is_boolean(), "{case}: {body}");
    for fault in body["errors"].as_array().into_iter().flatten() {
        for text in ["pointer", "code", "detail"] {
            assert!(fault[text].is_string(), "{text} of a fault of {case}: {body}");
        }
    }
}

/// Asserts that an answer is this problem, and left no trace.
#[track_caller]
pub(crate) fn assert_problem(answer: &Answer, status: u16, code: &str, case: &str) {
    assert_eq!((answer.status, answer.code()), (status, code), "{case}: {}", answer.body);
    assert_whole_problem(answer, case);
    assert_eq!(answer.body["recorded"], false, "{case}: {}", answer.body);
}

/// Asserts that an answer is 400 with one fault: this code at this pointer.
#[track_caller]
pub(crate) fn assert_invalid(answer: &Answer, code: &str, pointer: &str, case: &str) {
    assert_problem(answer, 400, code, case);
    assert_eq!(answer.body["retryable"], false, "{case}");
    assert_eq!(answer.faults(), [(code.to_owned(), pointer.to_owned())], "{case}: {}", answer.body);
}
