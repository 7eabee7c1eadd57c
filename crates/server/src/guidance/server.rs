//! The server cannot answer now. Nothing is the buyer's fault, and the same key makes every retry safe.

use super::{Guidance, Key, Recorded, Retry, Text, text};

/// What the buyer sees while the shop tries again by itself.
const BUSY: Text =
    text("It is very busy. Please wait, we are trying again.", "当前人数较多，正在为您重试，请稍候。");

/// A wait after which the same request may succeed; nothing was done.
const fn later(means: Text) -> Guidance {
    Guidance { means, recorded: Recorded::No, retry: Retry::Soon, key: Key::Same, buyer: BUSY }
}

pub(super) const RATE_LIMITED: Guidance = later(text(
    "Too many requests of this account or campaign; nothing was done.",
    "该账号或活动的请求过多；什么都没有执行。",
));

pub(super) const QUEUE_FULL: Guidance =
    later(text("As many orders wait as may wait; nothing was done.", "排队订单已达上限；什么都没有执行。"));

pub(super) const INTERNAL: Guidance = Guidance {
    means: text(
        "A fault of the server: a bug. Whether something was done is not known; report `request_id`.",
        "服务器内部故障，属于缺陷。是否已经执行未知；请上报 `request_id`。",
    ),
    recorded: Recorded::Unknown,
    ..later(BUSY)
};

pub(super) const OVERLOADED: Guidance =
    later(text("The server has too much to do; nothing was done.", "服务器过载；什么都没有执行。"));

pub(super) const AUTHORITY_UNAVAILABLE: Guidance = later(text(
    "The database does not answer or needs a person; nothing was done.",
    "数据库没有答复或需要人工处理；什么都没有执行。",
));

pub(super) const OUTCOME_UNKNOWN: Guidance = Guidance {
    means: text(
        "Nobody knows whether it was done. Asking again with the same key finds out and does it at most once. \
         A new key could buy twice.",
        "是否已经执行未知。用同一个键再次请求即可得知结果，且最多执行一次。换新键可能重复购买。",
    ),
    recorded: Recorded::Unknown,
    buyer: text(
        "We are checking your order. Please do not order again.",
        "正在确认您的订单，请不要重复下单。",
    ),
    ..later(BUSY)
};

pub(super) const CACHE_NOT_READY: Guidance = later(text(
    "The cache of the pool is not ready yet; nothing was done.",
    "库存池的缓存尚未就绪；什么都没有执行。",
));

pub(super) const STORAGE_FULL: Guidance = later(text(
    "The disk of the authority is full; nothing was done. It recovers by itself when there is space.",
    "权威库的磁盘已满；什么都没有执行。有空间后会自行恢复。",
));

pub(super) const SHUTTING_DOWN: Guidance = later(text(
    "The server is going down; nothing was done. Ask another node.",
    "服务器正在关闭；什么都没有执行。请改问其他节点。",
));
