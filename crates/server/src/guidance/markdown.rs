//! `docs/errors.md` in both languages, from the table. Only a test writes them, so this is no part of the
//! server.

use std::fmt::Write as _;

use holdfast_wire::Code;

use super::{Guidance, Key, Recorded, Retry, Text, of};

/// A language's choice of a text.
type Language = fn(Text) -> &'static str;

/// What stands before the table and over its columns.
struct Words {
    head: &'static str,
    columns: &'static str,
    recorded: fn(Recorded) -> &'static str,
    retry: fn(Retry) -> &'static str,
    key: fn(Key) -> &'static str,
}

const ENGLISH: Words = Words {
    head: "# Errors: what to show, whether to try again, and with which key\n\n\
           Generated from `holdfast_server::guidance` by `cargo xtask docs`; do not edit. The same stands at\n\
           `/problems/{code}` of a running server. In Chinese: [zh/errors.md](zh/errors.md).\n\n\
           The *key* is the business key in the body: `order_no` of an order, `refund_id`, `adjustment_id`,\n\
           `attempt_id`, `event_id`. Three rules cover most of it:\n\n\
           1. No answer, a 5xx, or `recorded: null`: ask again with the **same** key. It is done at most once.\n\
           2. `recorded: true`: the answer is a fact of this key. Another purchase needs a **new** key.\n\
           3. `recorded: false`: nothing happened. The same key may be used again, when `retryable` says that it\n\
           may help, and not before `retry_after_ms` where there is one.\n\n",
    columns: "| status | code | what it means | recorded | try again | key | show the buyer |\n\
              |---|---|---|---|---|---|---|\n",
    recorded: |recorded| match recorded {
        Recorded::No => "no",
        Recorded::Yes => "yes",
        Recorded::Either => "see `recorded`",
        Recorded::Unknown => "unknown",
    },
    retry: |retry| match retry {
        Retry::Never => "no",
        Retry::Corrected => "corrected",
        Retry::Soon => "after a wait",
        Retry::WhenChanged => "when something changed",
    },
    key: |key| match key {
        Key::Same => "same",
        Key::New => "new",
        Key::ByRecorded => "same; new if recorded",
        Key::Unneeded => "–",
    },
};

const CHINESE: Words = Words {
    head: "# 错误码：向买家展示什么、是否重试、用哪个键\n\n\
           由 `cargo xtask docs` 从 `holdfast_server::guidance` 生成，请勿手改。运行中的服务器在\n\
           `/problems/{code}` 提供同样的内容。英文版：[errors.md](../errors.md)。\n\n\
           *键*指请求体中的业务键：订单的 `order_no`，以及 `refund_id`、`adjustment_id`、`attempt_id`、`event_id`。\n\
           三条规则足以应对大多数情况：\n\n\
           1. 没有答复、5xx，或 `recorded: null`：用**同一个**键再次请求，最多执行一次。\n\
           2. `recorded: true`：答复是这个键的事实。另一次购买须用**新**键。\n\
           3. `recorded: false`：什么都没有发生。当 `retryable` 表示可能有用时，可用同一个键再试；\n\
           有 `retry_after_ms` 时不得早于它。\n\n",
    columns: "| 状态 | 错误码 | 含义 | 已记录 | 重试 | 键 | 向买家展示 |\n|---|---|---|---|---|---|---|\n",
    recorded: |recorded| match recorded {
        Recorded::No => "否",
        Recorded::Yes => "是",
        Recorded::Either => "看 `recorded`",
        Recorded::Unknown => "未知",
    },
    retry: |retry| match retry {
        Retry::Never => "否",
        Retry::Corrected => "改正后",
        Retry::Soon => "等待后",
        Retry::WhenChanged => "情况变化后",
    },
    key: |key| match key {
        Key::Same => "同一个",
        Key::New => "新键",
        Key::ByRecorded => "同一个；已记录则新键",
        Key::Unneeded => "–",
    },
};

/// The English document.
pub(crate) fn english() -> String {
    written(&ENGLISH, |text| text.en)
}

/// The Chinese document.
pub(crate) fn chinese() -> String {
    written(&CHINESE, |text| text.zh)
}

fn written(words: &Words, language: Language) -> String {
    let mut text = format!("{}{}", words.head, words.columns);
    for code in Code::ALL {
        let Guidance { means, recorded, retry, key, buyer } = *of(*code);
        let _ = writeln!(
            text,
            "| {} | `{code}` | {} | {} | {} | {} | {} |",
            code.status(),
            language(means),
            (words.recorded)(recorded),
            (words.retry)(retry),
            (words.key)(key),
            language(buyer),
        );
    }
    text
}
