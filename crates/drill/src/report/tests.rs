//! The page is well-formed, loads nothing, hides no text, and says everything twice.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Document, Node, ParsingOptions};

use super::words;
use crate::fault::Fault;
use crate::outcome::{
    Breach, BucketFigures, Environment, Generator, InvariantVerdict, Outcome, Parameters, Second, Window,
};

/// What somebody might be called who wants to be more than text.
const EVIL: &str = "</script><script src=\"http://evil.example/x\">&'\"]]><!--\u{1}\u{ffff}";

fn second(at: u64) -> Second {
    Second {
        at,
        due: 100,
        answers: BTreeMap::from([("held".to_owned(), 90), ("outage".to_owned(), 5 + at % 5)]),
        p50_us: (at != 3).then_some(900),
        p99_us: (at != 3).then_some(12_000 * (at + 1)),
        max_us: (at != 3).then_some(3_000_000),
        backlog: at * 10,
        under_way: 7,
    }
}

fn outcome(scenario: &str, seconds: u64) -> Outcome {
    Outcome {
        scenario: scenario.to_owned(),
        ok: false,
        began_at: "2026-11-30T19:00:00Z".to_owned(),
        environment: Environment { deployment: "sqlite".to_owned(), private: true, ..Environment::default() },
        parameters: Parameters { seed: 7, seconds: 10.0, orders_a_second: 100.0, ..Parameters::default() },
        seconds: (0..seconds).map(second).collect(),
        windows: Fault::ALL
            .iter()
            .map(|fault| Window { fault: fault.name().to_owned(), from: 1.0, to: 2.5 })
            .collect(),
        answers: BTreeMap::from([("place 201".to_owned(), 90), ("place 503 x".to_owned(), 1)]),
        buckets: (0..50)
            .map(|bucket| BucketFigures { sku: "CUP".to_owned(), bucket, available: 1, held: 2, sold: 3 })
            .collect(),
        invariants: vec![
            InvariantVerdict { code: "INV1".to_owned(), name: "no oversell".to_owned(), breaches: Some(0) },
            InvariantVerdict { code: "INV7".to_owned(), name: "lost".to_owned(), breaches: Some(2) },
            InvariantVerdict { code: "answers".to_owned(), name: "in time".to_owned(), breaches: None },
        ],
        breaches: vec![Breach {
            code: "INV7".to_owned(),
            subject: "order".to_owned(),
            expected: "held".to_owned(),
            actual: "nothing".to_owned(),
        }],
        breaches_count: 2,
        recovered_after_ms: Some(1_500),
        drained_after_ms: 20,
        generator: Generator { due: 1_000, sent: 999, late_p99_us: 40, is_limit: true },
    }
}

/// The page as a tree: it is XML too, so that a forgotten end or an unescaped letter is an error.
fn read(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn elements<'d>(document: &'d Document<'_>, tag: &'d str) -> impl Iterator<Item = Node<'d, 'd>> {
    document.descendants().filter(move |node| node.tag_name().name() == tag)
}

#[test]
fn pages_of_any_outcomes_are_well_formed_and_load_nothing() {
    let bare = Outcome {
        seconds: Vec::new(),
        windows: Vec::new(),
        answers: BTreeMap::new(),
        buckets: Vec::new(),
        invariants: Vec::new(),
        breaches: Vec::new(),
        ..outcome("bare", 0)
    };
    let pages = [
        vec![],
        vec![bare],
        vec![outcome("one", 1)],
        vec![outcome("one", 10), outcome("two", 4_000)],
        vec![outcome(EVIL, 10)],
    ];
    for outcomes in pages {
        let page = super::page(&outcomes);
        let document = read(&page);
        let mut ids = BTreeSet::new();
        for node in document.descendants() {
            let tag = node.tag_name().name();
            assert!(
                !["link", "img", "iframe", "object", "embed", "base", "use", "image"].contains(&tag),
                "{tag}"
            );
            for attribute in node.attributes() {
                let (name, value) = (attribute.name(), attribute.value());
                assert!(
                    !["src", "srcset", "action"].contains(&name) && !name.starts_with("on"),
                    "{name}={value}"
                );
                let is_inside = value.starts_with('#') || value.starts_with("data:application/json");
                assert!(name != "href" || is_inside, "{value}");
                assert!(name != "id" || ids.insert(value.to_owned()), "{value} twice");
            }
        }
        for script in elements(&document, "script") {
            assert_eq!(script.attribute("type"), Some("application/json"), "a page without a script to run");
        }
        let style = elements(&document, "style").next().unwrap().text().unwrap();
        assert!(!style.contains("url(") && !style.contains("@import"));
        assert!(ids.contains("drill-data") && ids.contains("en") && ids.contains("zh"));
    }
}

#[test]
fn every_text_of_an_outcome_stays_a_text() {
    let mut evil = outcome(EVIL, 3);
    evil.began_at = EVIL.to_owned();
    evil.environment.deployment = EVIL.to_owned();
    evil.environment.version = EVIL.to_owned();
    evil.parameters.path = EVIL.to_owned();
    evil.windows.push(Window { fault: EVIL.to_owned(), from: 0.0, to: 1.0 });
    evil.answers.insert(EVIL.to_owned(), 3);
    evil.buckets.insert(0, BucketFigures { sku: EVIL.to_owned(), bucket: 1, available: 1, held: 1, sold: 1 });
    evil.invariants.push(InvariantVerdict { code: EVIL.to_owned(), name: EVIL.to_owned(), breaches: None });
    let breach = || EVIL.to_owned();
    evil.breaches.push(Breach { code: breach(), subject: breach(), expected: breach(), actual: breach() });
    for second in &mut evil.seconds {
        second.answers.insert(EVIL.to_owned(), 1);
    }
    let page = super::page(&[evil.clone(), evil]);
    let document = read(&page);
    assert_eq!(elements(&document, "script").count(), 1);
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<!--"));
}

#[test]
fn the_data_in_the_page_are_the_outcomes() {
    let outcomes = [outcome(EVIL, 5), outcome("two", 5)];
    let page = super::page(&outcomes);
    let document = read(&page);
    let script = elements(&document, "script").next().unwrap().text().unwrap();
    assert_eq!(serde_json::from_str::<Vec<Outcome>>(script).unwrap(), outcomes);
    let link = elements(&document, "a").find(|a| a.has_attribute("download")).unwrap();
    let (_, data) = link.attribute("href").unwrap().split_once(',').unwrap();
    let data = percent_encoding::percent_decode_str(data).decode_utf8().unwrap();
    assert_eq!(serde_json::from_str::<Vec<Outcome>>(&data).unwrap(), outcomes);
}

#[test]
fn everything_is_said_in_both_languages() {
    for text in words::ALL.iter().chain(words::CLASSES.iter().map(|(_, text)| text)) {
        assert!(!text.en.is_empty() && text.en.is_ascii() | text.en.starts_with(['✔', '✘']), "{text:?}");
        assert!(text.zh.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter)), "{text:?}");
    }
    for verdict in crate::audit::Findings::default().verdicts() {
        let text =
            words::judged(&verdict.code).unwrap_or_else(|| panic!("{} is not translated", verdict.code));
        assert_eq!(text.en, verdict.name);
        assert!(!text.zh.is_ascii());
    }
    let page = super::page(&[outcome("one", 10), outcome("two", 10)]);
    let document = read(&page);
    let main = elements(&document, "main").next().unwrap();
    let count = |lang: &str| main.descendants().filter(|node| node.attribute("lang") == Some(lang)).count();
    assert!(count("en") > 100);
    assert_eq!(count("en"), count("zh-CN"));
    // A text of the page that stands in neither would be read in one language only.
    for node in main.descendants().filter(Node::is_text) {
        let text = node.text().unwrap_or_default();
        let is_chinese = text.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter));
        let parents: Vec<Node> = node.ancestors().collect();
        let is_both =
            parents.iter().any(|node| ["title", "desc", "script"].contains(&node.tag_name().name()));
        let is_marked = parents.iter().any(|node| node.attribute("lang") == Some("zh-CN"));
        let is_other_buckets = text.starts_with(words::OTHER_BUCKETS.en);
        assert!(!is_chinese || is_both || is_marked || is_other_buckets, "{text}");
    }
}

#[test]
fn the_page_of_a_boundary_is_whole_too() {
    let mut outcomes: Vec<Outcome> = (1..5).map(|step| outcome("hot-pool", 5 + step)).collect();
    outcomes[3].generator.is_limit = false;
    for outcomes in [&outcomes[..], &outcomes[..1], &[]] {
        let boundary = crate::boundary::boundary(outcomes);
        let page = super::boundary_page(&boundary, outcomes);
        let document = read(&page);
        assert_eq!(elements(&document, "script").count(), 1);
        let main = elements(&document, "main").next().unwrap();
        let count =
            |lang: &str| main.descendants().filter(|node| node.attribute("lang") == Some(lang)).count();
        assert_eq!(count("en"), count("zh-CN"));
    }
}

#[test]
fn a_chart_is_named_and_has_its_figures() {
    let page = super::page(&[outcome("one", 500)]);
    let document = read(&page);
    let charts: Vec<Node> = elements(&document, "svg").collect();
    assert_eq!(charts.len(), 5);
    for chart in charts {
        for id in chart.attribute("aria-labelledby").unwrap().split(' ') {
            let named = chart.children().find(|node| node.attribute("id") == Some(id)).unwrap();
            assert!(named.text().unwrap().contains(" / "));
        }
        let figure = chart.ancestors().find(|node| node.tag_name().name() == "figure").unwrap();
        assert!(figure.descendants().any(|node| node.tag_name().name() == "table"));
    }
    // A window for each fault, in each chart over time.
    let windows = document.descendants().filter(|node| node.attribute("class") == Some("window"));
    assert_eq!(windows.count(), 3 * Fault::ALL.len());
}
