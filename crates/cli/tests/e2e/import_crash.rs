//! `kill -9` while a stock file is applied: after the start all of it is there or nothing, and the same file again
//! says which, and is applied once.

use serde_json::json;

use crate::crash::POINTS;
use crate::support::{Answer, Http, Server, Start};

const ROWS: u64 = 1_500;
/// Somebody else is answered so often while the file is under way: then the server is killed.
const MOMENTS: [u32; 5] = [0, 3, 10, 30, 100];

/// How the server dies.
#[derive(Debug, Clone, Copy)]
enum Death {
    At(&'static str),
    After(u32),
}

fn plain() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
}

async fn try_import(http: &Http, query: &str, file: &str) -> Option<Answer> {
    let path = format!("/v1/imports/stock?campaign_id=spring&{query}");
    http.try_send_raw("POST", &path, &[("content-type", "text/csv")], file.into()).await
}

async fn import(http: &Http, query: &str, file: &str) -> Answer {
    try_import(http, query, file).await.expect("an answer")
}

async fn units(http: &Http) -> u64 {
    http.get("/v1/campaigns/spring").await.body["totals"]["available"].as_u64().unwrap()
}

/// Sends a file to a server that dies meanwhile; the answer, if it came before.
async fn send_and_die(server: &mut Server, death: Death, query: &str, file: &str) -> Option<Answer> {
    let mut start = plain();
    if let Death::At(point) = death {
        start.environment.push(("HOLDFAST_FAILPOINTS".into(), format!("{point}=1")));
    }
    server.restart(&start).await;
    let (http, query, file) = (server.http.clone(), query.to_owned(), file.to_owned());
    let sent = tokio::spawn(async move { try_import(&http, &query, &file).await });
    match death {
        Death::At(point) => assert!(!server.wait().await.success(), "it dies at {point}"),
        Death::After(answers) => {
            for _ in 0..answers {
                server.http.get("/livez").await;
            }
            server.kill().await;
        }
    }
    sent.await.unwrap()
}

/// Kills a server over and over, while files bring new pools and while they bring more of what there is.
pub(crate) async fn a_file_is_whole_or_not_there(mut server: Server) {
    server.http.campaign("spring", json!({})).await;
    let file = |name: &str| {
        let rows: String = (0..ROWS).map(|n| format!("{name}-{n},1\n")).collect();
        format!("sku,quantity\n{rows}")
    };
    assert_eq!(import(&server.http, "", &file("CUP")).await.status, 201);
    let deaths = POINTS.map(Death::At).into_iter().chain(MOMENTS.map(Death::After));
    let mut before = ROWS;
    let mut cut_off = 0;
    for (round, (death, mode)) in deaths.flat_map(|death| [(death, "inbound"), (death, "open")]).enumerate() {
        let file = if mode == "open" { file(&format!("NEW{round}")) } else { file("CUP") };
        let query = format!("mode={mode}&import_id=i-{round}");
        let told = send_and_die(&mut server, death, &query, &file).await;
        server.restart(&plain()).await;
        let there = units(&server.http).await - before;
        assert!(there == 0 || there == ROWS, "{there} of {ROWS} rows are there: {death:?}, {mode}");
        match &told {
            Some(answer) => assert_eq!((answer.status, there), (201, ROWS), "{answer:?}"),
            None => cut_off += 1,
        }
        let again = import(&server.http, &query, &file).await;
        // A database server may still finish what was sent to it; then it is known here, too.
        let was_done = again.status == 200;
        assert!(was_done || (again.status, there) == (201, 0), "{death:?}, {mode}: {again:?}");
        let once_more = import(&server.http, &query, &file).await;
        for (answer, replayed) in [(&again, was_done), (&once_more, true)] {
            let counts =
                ["rows", "units", "opened", "adjusted", "unchanged"].map(|name| answer.body[name].as_u64());
            let (opened, adjusted) = if mode == "open" { (ROWS, 0) } else { (0, ROWS) };
            assert_eq!(counts, [ROWS, ROWS, opened, adjusted, 0].map(Some), "{answer:?}");
            assert_eq!(answer.body["replayed"], replayed, "{answer:?}");
        }
        before += ROWS;
        assert_eq!(units(&server.http).await, before, "{death:?}, {mode}: once");
    }
    assert!(cut_off > POINTS.len(), "the server must die before it answers, too: {cut_off}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_under_way_when_the_server_is_killed_is_whole_or_not_there() {
    a_file_is_whole_or_not_there(Server::start().await).await;
}
