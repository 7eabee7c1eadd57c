//! What the page says, each in both languages: a text without one of them cannot be written down.

use holdfast_core::invariant::Invariant;

use crate::fault::Fault;

/// A text in both languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) en: &'static str,
    pub(super) zh: &'static str,
}

const fn text(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// Declares the fixed texts and lists them, so that a test can read them all.
macro_rules! texts {
    ($($name:ident = $en:literal, $zh:literal;)*) => {
        $(pub(super) const $name: Text = text($en, $zh);)*
        #[cfg(test)]
        pub(super) const ALL: &[Text] = &[$($name),*];
    };
}

texts! {
    TITLE = "Holdfast drill", "Holdfast 演练报告";
    INTRO = "Load, faults and proof: what every buyer was told is held against the authority's ledger.",
        "压力、故障与证明:每位买家得到的每个答复,都与权威账本逐一核对。";
    OVERVIEW = "Overview", "总览";
    SCENARIO = "scenario", "场景";
    DEPLOYMENT = "deployment", "部署";
    VERDICT = "verdict", "结论";
    CLEAN = "✔ clean", "✔ 全部成立";
    BROKEN = "✘ broken", "✘ 有违反";
    HOLDS = "✔ holds", "✔ 成立";
    NOT_SHOWN = "not shown by what could be read", "可读到的数据无法说明";
    BREACHES = "breaches", "违反次数";
    BREACHES_TITLE = "Breaches", "违反之处";
    NO_BREACHES = "None was found.", "未发现。";
    INVARIANTS = "Invariants", "不变式";
    INVARIANT = "invariant", "不变式";
    CODE = "code", "编号";
    SUBJECT = "of what", "对象";
    EXPECTED = "expected", "应为";
    ACTUAL = "found", "实为";
    PRESSURE = "Pressure", "压力曲线";
    PRESSURE_DESC = "Orders due and answers a second by class over the time of the load; times of faults are shaded.",
        "加压期间每秒到期的订单数与各类答复数;阴影为故障时段。";
    LATENCY = "Latency of placing an order", "下单延迟";
    LATENCY_DESC = "From when an order was due until its answer, on a logarithmic axis; times of faults are shaded.",
        "从订单应发出的时刻到得到答复,对数坐标;阴影为故障时段。";
    BACKLOG = "Backlog", "积压";
    BACKLOG_DESC = "Queued orders without a final answer, and requests under way, at the end of each second.",
        "每秒末尚无最终结果的排队订单数与进行中的请求数。";
    WAITING = "queued, no final answer", "排队中,尚无最终结果";
    UNDER_WAY = "requests under way", "进行中的请求";
    OUTCOMES = "Answers by what was asked and told", "按请求与答复统计";
    OUTCOMES_DESC = "How often each answer came, on a logarithmic axis.", "各种答复出现的次数,对数坐标。";
    ANSWER = "answer", "答复";
    COUNT = "count", "次数";
    BUCKETS = "Where the units are", "库存去向";
    BUCKETS_DESC = "Units of each bucket at the end: available, held, sold.", "结束时各桶的库存:可售、占用、已售。";
    BUCKET = "bucket", "桶";
    AVAILABLE = "available", "可售";
    HELD_UNITS = "held", "占用";
    SOLD_UNITS = "sold", "已售";
    OTHER_BUCKETS = "all others", "其余合计";
    WINDOWS = "Faults", "故障";
    FAULT = "fault", "故障";
    FROM = "from", "开始";
    TO = "to", "结束";
    NO_FAULTS = "Nothing was broken.", "没有注入故障。";
    FIGURES = "Figures", "数据表";
    SECOND = "second", "秒";
    DUE = "due", "到期";
    NOTHING = "Nothing to draw.", "没有可绘制的数据。";
    CONDITIONS = "Conditions", "条件";
    REPEAT = "The same again", "重复这次演练";
    RAW = "Raw data", "原始数据";
    DOWNLOAD = "Download all figures as JSON", "下载全部数据(JSON)";
    RAW_NOTE = "The same JSON stands in this page, in the element `drill-data`.", "同样的 JSON 也在本页的 `drill-data` 元素中。";
    SEED = "seed", "种子";
    BEGAN_AT = "began at", "开始时间";
    NODES = "nodes", "节点数";
    PRIVATE = "servers of its own", "自建服务";
    VERSION = "version", "版本";
    PROCESSORS = "processors", "处理器";
    LOAD_SECONDS = "seconds of load", "加压秒数";
    RATE = "orders a second, wanted", "目标每秒订单数";
    CONNECTIONS = "connections", "连接数";
    PROCESSES = "generator processes", "发压进程数";
    PATH = "path", "路径";
    POOLS = "pools", "库存池";
    BUCKETS_EACH = "buckets of each", "每池桶数";
    STOCK = "units at the beginning", "初始库存";
    HOT_SHARE = "share of the hottest pool", "最热池占比";
    ACCOUNTS = "accounts", "账号数";
    ACCOUNT_LIMIT = "units an account", "每账号限购";
    HOLD_SECONDS = "seconds of a hold", "占用秒数";
    STORED_ORDERS = "orders stored before", "预先存入的订单";
    GENERATOR = "generator", "发压端";
    IS_LIMIT = "The generator was itself the limit: it offered less than was asked for.",
        "发压端本身成为瓶颈:实际压力低于要求。";
    RECOVERED = "first order after the last fault", "最后一个故障之后首单";
    DRAINED = "last answer after the last request", "最后请求之后全部了结";
    WORST_P99 = "worst p99", "最差 p99";
    YES = "yes", "是";
    NO = "no", "否";
    NONE = "none", "无";
    LANGUAGE = "Language", "语言";
    BOUNDARY = "Boundary", "边界";
    BOUNDARY_DESC = "Orders a second that landed against those that were due, one point a load.",
        "每档负载一个点:每秒落定的订单数与到期的订单数。";
    BOUNDARY_LATENCY = "Latency at each load", "各档负载下的延迟";
    BOUNDARY_LATENCY_DESC = "The 99th percentile of placing at each load, on a logarithmic axis.",
        "各档负载下单延迟的 99 分位,对数坐标。";
    OFFERED = "due a second", "每秒到期";
    LANDED = "landed a second", "每秒落定";
    TURNED_AWAY = "turned away for want of room", "因无余量被挡回";
    MEDIAN_P99 = "p99 of a middling second", "p99(各秒的中位数)";
    WAITS_EARLY = "waiting early", "前段等待";
    WAITS_LATE = "waiting at the end", "末段等待";
    DRAIN = "time to drain", "排空时间";
    HOTTEST = "hottest bucket", "最热桶";
    WAITS_FROM = "waiting accumulates", "等待开始积累";
    STUCK_FROM = "does not recover in time", "不能及时恢复";
    FITS = "✔ carries it", "✔ 承受得住";
    ACCUMULATES = "✘ waiting accumulates", "✘ 等待积累";
    STUCK = "✘ drains longer than it lasted", "✘ 排空比加压还久";
    UNKNOWN = "? the generator was the limit", "? 发压端是瓶颈";
    CARRIES_NOTHING = "Waiting accumulated at the smallest load already.", "最小的一档负载下等待就已积累。";
    NOT_REACHED = "Waiting did not accumulate at any load that was measured; the boundary is beyond.",
        "所测各档负载下等待都没有积累;边界在此之外。";
    GENERATOR_ENDED = "The row of loads ended at what the generator could offer.", "负载档位止于发压端的能力。";
}

/// A class of answers, in the order in which they are stacked.
pub(super) const CLASSES: [(&str, Text); 8] = [
    ("sold", text("sold", "已售")),
    ("held", text("held", "已占用")),
    ("queued", text("queued", "已排队")),
    ("released", text("released", "已释放")),
    ("refused", text("refused", "已拒绝")),
    ("outage", text("outage", "暂不可用")),
    ("lost", text("no answer", "无答复")),
    ("nonsense", text("nonsense", "无法理解")),
];

/// The name of a fault; one that is not known keeps its own.
pub(super) fn fault(name: &str) -> Option<Text> {
    let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name)?;
    Some(match fault {
        Fault::KillNode => text("node killed", "节点被杀"),
        Fault::PauseNode => text("node stands still", "节点停顿"),
        Fault::PauseWorker => text("worker stands still", "后台节点停顿"),
        Fault::KillAuthority => text("authority killed", "权威库被杀"),
        Fault::PauseAuthority => text("authority stands still", "权威库停顿"),
        Fault::FailOverAuthority => text("authority fails over", "权威库切换"),
        Fault::CutAuthority => text("authority cut off", "权威库断连"),
        Fault::LoseCommitAnswers => text("commit answers lost", "提交答复丢失"),
        Fault::CutCache => text("cache cut off", "缓存断连"),
        Fault::PauseCache => text("cache stands still", "缓存停顿"),
        Fault::WipeCache => text("cache wiped", "缓存清空"),
        Fault::RestoreCache => text("cache restored from before", "缓存回到过去"),
        Fault::FailOverCache => text("cache fails over", "缓存切换"),
        Fault::RepeatDeliveries => text("deliveries repeated", "重复投递"),
        Fault::StepClock => text("clock stepped", "时钟跳变"),
        Fault::SlowDisk => text("disk slow", "磁盘变慢"),
        Fault::FillDisk => text("disk full", "磁盘写满"),
    })
}

/// What is asked of answers beside the invariants.
const OF_ANSWERS: [(&str, Text); 6] = [
    ("answers_true", text("no answer was false", "没有一个答复是假的")),
    ("answers_expected", text("only expected answers came", "只有预期之内的答复")),
    ("answers_in_time", text("every answer came in time", "每个答复都及时")),
    ("reads_fresh", text("no read went back", "读取不倒退")),
    ("sold_out_true", text("nobody was sent away while there was enough", "有货时没有人被告知售罄")),
    ("at_rest", text("nothing is left waiting", "没有遗留的等待")),
];

/// The name of what is judged; none: the outcome's own words are shown.
pub(super) fn judged(code: &str) -> Option<Text> {
    let of_answers = OF_ANSWERS.iter().find(|(of, _)| *of == code);
    of_answers.map(|(_, text)| *text).or_else(|| invariant(code))
}

fn invariant(code: &str) -> Option<Text> {
    let invariant = Invariant::ALL.into_iter().find(|invariant| invariant.code() == code)?;
    let zh = match invariant {
        Invariant::NoOversell => "不超卖",
        Invariant::Conservation => "总量守恒",
        Invariant::LedgerIsBalance => "账本即余额",
        Invariant::AllocationsAreBalance => "分配即余额",
        Invariant::OneOutcome => "一个键一个结果",
        Invariant::FinalIsFinal => "终态不变",
        Invariant::NothingLost => "已确认的不丢失",
        Invariant::LimitsHold => "限购成立",
        Invariant::TransfersPair => "调拨成对",
        Invariant::EventsComplete => "事件完整",
        Invariant::UsageIsOrders => "用量即订单",
        Invariant::PaymentsAccounted => "付款有着落",
        Invariant::LandingsSettleOnce => "落库只结一次",
    };
    Some(text(invariant.name(), zh))
}
