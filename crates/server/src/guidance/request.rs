//! Requests that cannot be taken. Most are faults of the program that sends them, so the buyer hears one
//! sentence for all of them.

use super::{Guidance, Key, Recorded, Retry, Text, text};

/// What the buyer sees when the shop's own program is wrong.
const OUR_FAULT: Text = text(
    "Something went wrong on our side. Nothing was ordered. We have been told.",
    "我们这边出了点问题，没有产生订单。我们已收到通知。",
);

/// A request that is wrong in itself: nothing happened, and only another request helps.
const fn wrong(means: Text) -> Guidance {
    Guidance { means, recorded: Recorded::No, retry: Retry::Corrected, key: Key::Same, buyer: OUR_FAULT }
}

pub(super) const MALFORMED_JSON: Guidance =
    wrong(text("The body is not JSON, or it broke off on the way.", "请求体不是合法的 JSON，或者传输中断。"));

pub(super) const UNKNOWN_FIELD: Guidance = wrong(text(
    "A field of the body or a parameter of the query does not exist. `errors` says which. It is refused \
     because ignoring it could do something other than what was meant.",
    "请求体的某个字段或某个查询参数不存在，见 `errors`。忽略它可能做出并非本意的事，所以拒绝。",
));

pub(super) const DUPLICATE_FIELD: Guidance = wrong(text(
    "A key stands twice in one object, or a parameter twice in the query. Which one is meant is not guessed.",
    "同一个对象里有重复的键，或查询里有重复的参数。系统不猜测以哪个为准。",
));

pub(super) const INVALID_VALUE: Guidance = wrong(text(
    "A value is missing, of the wrong kind, out of bounds, or not built yet. `errors` names each place.",
    "某个值缺失、类型不对、超出范围，或尚未实现。`errors` 指出每一处。",
));

pub(super) const INVALID_QUANTITY: Guidance = wrong(text(
    "A quantity is missing or not allowed: whole units, written as JSON integers, within the bounds of the \
     field.",
    "数量缺失或不允许：必须是字段范围内、写成 JSON 整数的整数件数。",
));

pub(super) const INVALID_IDENTIFIER: Guidance = wrong(text(
    "An identifier is missing or not allowed: 1 to 128 characters, no control characters, no white space at \
     either end. It is compared exactly, so it is never repaired.",
    "标识符缺失或不允许：1 到 128 个字符，不含控制字符，首尾没有空白。标识符按原样比较，因此不会自动修正。",
));

pub(super) const INVALID_TIME: Guidance = wrong(text(
    "A time is not a definite instant: RFC 3339 with an offset, or local time with a `time_zone` in which it \
     exists exactly once.",
    "时间不是一个确定的时刻：须为带时区偏移的 RFC 3339，或在给定 `time_zone` 中恰好存在一次的本地时间。",
));

pub(super) const UNAUTHENTICATED: Guidance = wrong(text(
    "There is no key, the key is not known, or the signature of a notice does not verify.",
    "没有密钥、密钥未知，或通知的签名验证失败。",
));

pub(super) const FORBIDDEN: Guidance = wrong(text(
    "The key is known, but its role or its campaigns do not allow this.",
    "密钥有效，但其角色或活动范围不允许此操作。",
));

pub(super) const NOT_FOUND: Guidance = Guidance {
    means: text(
        "There is no such thing. For a payment notice it may only be too early: the provider should send it \
         again.",
        "没有这个对象。对支付通知来说可能只是来得太早：支付方应当再次发送。",
    ),
    buyer: text("We cannot find this.", "找不到您要的内容。"),
    ..wrong(OUR_FAULT)
};

pub(super) const UNKNOWN_SKU: Guidance = Guidance {
    means: text(
        "The campaign has no pool of this SKU and location. `errors` names the line.",
        "该活动没有此 SKU 与地点的库存池，`errors` 指出是哪一行。",
    ),
    buyer: text("This item is not part of this sale.", "该商品不在本次活动中。"),
    ..wrong(OUR_FAULT)
};

pub(super) const METHOD_NOT_ALLOWED: Guidance = wrong(text(
    "The route exists, but not with this method. `Allow` lists those that it has.",
    "路径存在，但不支持此方法。`Allow` 列出支持的方法。",
));

pub(super) const NOT_ACCEPTABLE: Guidance = wrong(text(
    "`Accept` leaves no form in which this can be answered.",
    "`Accept` 中没有任何可用于答复的格式。",
));

pub(super) const REQUEST_TIMEOUT: Guidance = Guidance {
    means: text(
        "The body did not arrive in time, so nothing was done. The connection is closed.",
        "请求体没有及时到达，因此什么都没有执行。连接已关闭。",
    ),
    recorded: Recorded::No,
    retry: Retry::Soon,
    key: Key::Same,
    buyer: text("The connection is slow. We are trying again.", "网络较慢，正在重试。"),
};

pub(super) const TOO_LARGE: Guidance = wrong(text(
    "The body is longer than 256 KiB. The connection is closed.",
    "请求体超过 256 KiB。连接已关闭。",
));

pub(super) const UNSUPPORTED_MEDIA_TYPE: Guidance = wrong(text(
    "The body is not `application/json`, or it is compressed (`Content-Encoding`).",
    "请求体不是 `application/json`，或经过压缩（`Content-Encoding`）。",
));
