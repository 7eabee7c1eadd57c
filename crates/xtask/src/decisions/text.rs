//! The words of the decision table in each language. States, answers and policies are spelled as in the API.

use super::{Answer, Ending, Step};

/// What a page says.
pub(super) struct Tongue {
    /// Up to the first table.
    pub(super) begin: &'static str,
    /// Before the table of all that meet.
    pub(super) all: &'static str,
    /// Before the table of late and further payments.
    pub(super) late: &'static str,
    /// The head of every table.
    pub(super) head: &'static str,
    /// Whatever the policy.
    pub(super) any: &'static str,
    step: fn(Step) -> &'static str,
    between: &'static str,
    done: &'static str,
    again: &'static str,
    not_due: &'static str,
    due: &'static str,
}

impl Tongue {
    pub(super) fn row(&self, steps: &[Step], policy: &str, ending: &Ending) -> String {
        let arrives: Vec<_> = steps.iter().map(|step| (self.step)(*step)).collect();
        let told: Vec<_> = ending
            .told
            .iter()
            .map(|told| format!("{} → {}", self.answer(&told.answer), told.state))
            .collect();
        let (available, held, sold) = ending.stock;
        let due = if ending.refund_due { self.due } else { "" };
        format!(
            "| {} | {policy} | {} | {due} | {available}/{held}/{sold} |\n",
            arrives.join(self.between),
            told.join("; ")
        )
    }

    fn answer(&self, answer: &Answer) -> String {
        match answer {
            Answer::Disposition(disposition) => format!("*{disposition}*"),
            Answer::Refused(code) => format!("`{code}`"),
            Answer::Done => self.done.to_owned(),
            Answer::Again => self.again.to_owned(),
            Answer::NotDue => self.not_due.to_owned(),
        }
    }
}

pub(super) const ENGLISH: Tongue = Tongue {
    begin: "# What meets a payment, and who wins

Generated from `holdfast_core` by `cargo xtask docs`; do not edit. Each row was played on the core that decides in
production.

One order holds the only unit. What arrives is named in the order in which the authority decides on it, under the
lock of the order's bucket; when two requests come at once, that order is all that is left to chance. *Expiry* is the
time being over: the clock passes the end of the hold and its grace (or the end of the review), and the timer or the
scan asks for the release. A *payment* before it comes in time, after it late. A *refund* is of the unit, with
`restock: true`. (In brackets: what happens without a command on the order.)

*Answer → state* says for each arrival what it was answered and where the order stood then: a payment notice by its
disposition, 200 with the order where something was done, *again* where it stood already, or a code. *Stock* is
available/held/sold at the end. Whatever arrives a second time with its own key changes nothing: that, too, was played
for every arrival. Conditions and every other command: [states](states.md).

## Two that meet

",
    all: "
## All four, in every order

",
    late: "
## Late payments, further payments, open attempts

With *made in time* the campaign has `deadline_basis: provider_paid_at` and the notice says that the payment was made
before the end. An open *attempt* sends the order to review when its time is over; the second expiry is the end of the
review.

",
    head: "| arrives | `late_payment` | answer → state | | stock |\n|---|---|---|---|---|\n",
    any: "any",
    step: |step| match step {
        Step::Payment => "payment",
        Step::PaymentMadeInTime => "payment made in time",
        Step::OtherPayment => "another payment",
        Step::FailedPayment => "failed payment",
        Step::Attempt => "attempt",
        Step::Expiry => "expiry",
        Step::Cancel => "cancel",
        Step::Refund => "refund",
        Step::End => "(end passes)",
        Step::Grace => "(grace passes)",
        Step::SoldToAnother => "(sold to another)",
        Step::Freeze => "(pool frozen)",
    },
    between: ", ",
    done: "200",
    again: "again",
    not_due: "nothing due",
    due: "refund due",
};

pub(super) const CHINESE: Tongue = Tongue {
    begin: "# 付款遇上到期、退款、取消时谁算数

由 `cargo xtask docs` 从 `holdfast_core` 生成，请勿手改。每一行都在生产中做决定的同一个核心上实际演算过。

一张订单占着唯一的一件。到达的事按权威库做决定的先后列出，决定都在订单归属桶的锁下做出；两个请求同时到来时，只有这个先后是偶然的。
“到期”指时间已过：时钟越过预占的结束和宽限（或审核的结束），定时器或扫描来请求释放。到期之前的“付款”是及时的，之后的是迟到的。
“退款”退这一件，`restock: true`。括号里是没有对订单下命令而发生的事。

“答复 → 状态”逐一说明每个到达得到什么答复、订单那时处于什么状态：付款通知答以处置结果；做了事的答 200 和订单；本来就如此的答“再次”；否则是错误码。
“库存”是最后的 可售/预占/已售。任何到达带着自己的键再来一次都不改变什么：这一点也对每个到达演算过。条件和其他命令见[状态表](../states.md)。

## 两者相遇

",
    all: "
## 四者俱来，各种先后

",
    late: "
## 迟到的付款、多出的付款、未决的付款尝试

“及时付的款”：活动设 `deadline_basis: provider_paid_at`，通知说付款在结束之前完成。有未决的付款尝试时，时间一过订单转入审核；第二次到期是审核的结束。

",
    head: "| 到达 | `late_payment` | 答复 → 状态 | | 库存 |\n|---|---|---|---|---|\n",
    any: "任意",
    step: |step| match step {
        Step::Payment => "付款",
        Step::PaymentMadeInTime => "及时付的款",
        Step::OtherPayment => "另一笔付款",
        Step::FailedPayment => "付款失败",
        Step::Attempt => "付款尝试",
        Step::Expiry => "到期",
        Step::Cancel => "取消",
        Step::Refund => "退款",
        Step::End => "（结束已过）",
        Step::Grace => "（宽限已过）",
        Step::SoldToAnother => "（卖给了别人）",
        Step::Freeze => "（库存池冻结）",
    },
    between: "、",
    done: "200",
    again: "再次",
    not_due: "无到期事项",
    due: "应退款",
};
