//! Business answers: what the stock, the campaign and the order allow.

use super::{Guidance, Key, Recorded, Retry, Text, text};

/// What the buyer sees when an operator's request does not fit.
const OPERATORS: Text = text(
    "Nothing: a buyer never meets this. Show it to the operator.",
    "无需展示：买家不会遇到。请展示给运营人员。",
);

/// A refusal that left no trace and may turn out otherwise later.
const fn for_now(means: Text, buyer: Text) -> Guidance {
    Guidance { means, recorded: Recorded::No, retry: Retry::WhenChanged, key: Key::Same, buyer }
}

/// The order stands where no such command can move it.
const fn over(means: Text, key: Key, buyer: Text) -> Guidance {
    Guidance { means, recorded: Recorded::No, retry: Retry::Never, key, buyer }
}

pub(super) const SOLD_OUT: Guidance = Guidance {
    means: text(
        "Too little stock for a line; `errors` names it with `requested` and `available`. When the authority \
         decided it, the order exists as `failed` and its key says the same for ever. Stock may come back \
         when holds end.",
        "某一行库存不足，`errors` 给出 `requested` 与 `available`。若由权威库判定，订单以 `failed` 存在，\
         同一个键永远得到同样的答复。预占结束后库存可能回来。",
    ),
    recorded: Recorded::Either,
    retry: Retry::WhenChanged,
    key: Key::ByRecorded,
    buyer: text(
        "Sold out. More may become available if others do not pay.",
        "已售罄。若有人未付款，可能会再次有货。",
    ),
};

pub(super) const ACCOUNT_LIMIT: Guidance = Guidance {
    means: text(
        "The account would have more units than the campaign allows; held, in review and sold units count.",
        "该账号的件数将超过活动限购；预占、审核中与已售的件数都计入。",
    ),
    recorded: Recorded::Either,
    retry: Retry::WhenChanged,
    key: Key::ByRecorded,
    buyer: text("You have reached the limit for this sale.", "您已达到本次活动的限购数量。"),
};

pub(super) const ACCOUNT_OPEN_HOLDS: Guidance = for_now(
    text("The account has as many unpaid orders as it may have.", "该账号的未付款订单数已达上限。"),
    text("Please pay or cancel your open order first.", "请先支付或取消未付款的订单。"),
);

pub(super) const KEY_LIMIT: Guidance = for_now(
    text(
        "Another named key of the order (a device, an address) has reached its limit.",
        "订单的其他限购键（如设备、地址）已达上限。",
    ),
    text("The limit for this sale is reached.", "已达到本次活动的限购数量。"),
);

pub(super) const CAMPAIGN_NOT_OPEN: Guidance = for_now(
    text("The campaign is a draft, or its start has not come.", "活动仍是草稿，或尚未到开始时间。"),
    text("The sale has not started yet.", "活动尚未开始。"),
);

pub(super) const CAMPAIGN_PAUSED: Guidance = for_now(
    text("An operator paused the campaign; orders that exist go on.", "活动已被运营暂停；已有订单照常进行。"),
    text("The sale is paused. Please wait.", "活动已暂停，请稍候。"),
);

pub(super) const CAMPAIGN_CLOSED: Guidance = over(
    text("The campaign is over; orders that exist go on.", "活动已结束；已有订单照常进行。"),
    Key::Unneeded,
    text("The sale is over.", "活动已结束。"),
);

pub(super) const FROZEN: Guidance = for_now(
    text(
        "The campaign or the pool is frozen while its stock is examined; payments and cancels go on.",
        "活动或库存池在核查期间被冻结；付款与取消照常进行。",
    ),
    text("The sale is briefly interrupted. Please wait.", "活动暂时中断，请稍候。"),
);

pub(super) const ALREADY_SOLD: Guidance = over(
    text("The order is sold; to undo it, refund it.", "订单已售出；如需撤销请退款。"),
    Key::Unneeded,
    text("This order is already paid.", "该订单已付款。"),
);

pub(super) const ALREADY_RELEASED: Guidance = over(
    text(
        "The order was released: not paid in time, cancelled, or its payment failed. Its stock went back.",
        "订单已释放：未按时付款、被取消或支付失败。库存已退回。",
    ),
    Key::New,
    text("This order has ended. You can order again.", "该订单已结束，您可以重新下单。"),
);

pub(super) const ALREADY_FAILED: Guidance = over(
    text("The order failed and never held stock.", "订单失败，从未占用库存。"),
    Key::New,
    text("This order did not succeed. You can order again.", "该订单未成功，您可以重新下单。"),
);

pub(super) const ALREADY_REFUNDED: Guidance = over(
    text("Every unit of the order is refunded.", "订单的每一件都已退款。"),
    Key::New,
    text("This order is already refunded.", "该订单已退款。"),
);

pub(super) const CANCELLED: Guidance = Guidance {
    recorded: Recorded::Yes,
    ..over(
        text("The order was cancelled before it held stock.", "订单在占用库存之前已取消。"),
        Key::New,
        text("This order was cancelled. You can order again.", "该订单已取消，您可以重新下单。"),
    )
};

pub(super) const NOT_HELD: Guidance = for_now(
    text("The order still waits and holds nothing yet.", "订单仍在排队，尚未占用库存。"),
    text("Your order is still in the queue.", "您的订单仍在排队。"),
);

pub(super) const NOT_SOLD: Guidance = for_now(
    text(
        "The order is not sold, so nothing can be refunded; cancel it instead.",
        "订单未售出，无可退款；请改为取消。",
    ),
    text("This order is not paid yet.", "该订单尚未付款。"),
);

pub(super) const HOLD_EXPIRED: Guidance = over(
    text(
        "The hold has ended, so no payment may begin. A payment already under way is judged by \
         `late_payment`.",
        "预占已到期，不能再开始付款。已在途中的付款按 `late_payment` 处理。",
    ),
    Key::New,
    text("The time to pay is over. You can order again.", "付款时间已过，您可以重新下单。"),
);

pub(super) const IN_REVIEW: Guidance = for_now(
    text(
        "A payment of the order is in doubt; the provider or a person decides first.",
        "订单的某笔付款存疑，须先由支付方或人工判定。",
    ),
    text("We are checking your payment. Please do not pay again.", "正在核对您的付款，请不要重复付款。"),
);

pub(super) const REFUND_EXCEEDS_SOLD: Guidance = over(
    text(
        "The refund names more units than the line still has; `errors` says how many there are.",
        "退款件数超过该行剩余件数，`errors` 给出可退件数。",
    ),
    Key::Same,
    OPERATORS,
);

pub(super) const STOCK_IN_USE: Guidance = for_now(
    text(
        "The adjustment would take away units that are held or sold; `errors` says how many are free.",
        "调整将减去已预占或已售的件数，`errors` 给出可用件数。",
    ),
    OPERATORS,
);

pub(super) const ADMISSION_LOST: Guidance = over(
    text(
        "The cache lost the order before it was landed: nothing was ever held, and the ticket stands for nothing. The same number may be placed again.",
        "缓存在落库前丢失了该订单：从未占用库存，票据作废。可用同一订单号重新下单。",
    ),
    Key::Same,
    text("Your place was lost. Please order again.", "您的排队资格已失效，请重新下单。"),
);

pub(super) const QUEUE_TIMEOUT: Guidance = Guidance {
    recorded: Recorded::Yes,
    ..over(
        text("The order waited longer than the queue allows.", "订单等待时间超过队列上限。"),
        Key::New,
        text("It took too long. You can order again.", "等待时间过长，您可以重新下单。"),
    )
};

pub(super) const CONFLICT: Guidance = over(
    text("The request does not fit what is there; `detail` says why.", "请求与现状冲突，`detail` 说明原因。"),
    Key::Same,
    OPERATORS,
);

pub(super) const ORDER_MISMATCH: Guidance = over(
    text(
        "The order number belongs to another account or other content; `errors` names the fields. Nothing \
         changed. A purchase that is meant to be another one needs another number.",
        "该订单号属于另一账号或另一内容，`errors` 指出不同的字段。什么都没有改变。若是另一笔购买，须换新订单号。",
    ),
    Key::New,
    text("This order number is taken. Please start a new order.", "该订单号已被使用，请重新下单。"),
);

pub(super) const KEY_MISMATCH: Guidance = over(
    text(
        "The id of the refund, adjustment, event or attempt belongs to other content; `errors` names the \
         fields. Nothing changed.",
        "该退款、调整、事件或支付尝试的标识属于另一内容，`errors` 指出不同的字段。什么都没有改变。",
    ),
    Key::New,
    OPERATORS,
);
