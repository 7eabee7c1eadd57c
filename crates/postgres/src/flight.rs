//! Statements that are sent together: the server works through them one after another, and only the last answer
//! is waited for.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::{Connection, Param};
use crate::error::{Fault, of_driver};
use crate::statement::Sql;

/// A parameter that belongs to the flight.
pub(crate) type Owned<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Statements to send together.
#[derive(Default)]
pub(crate) struct Flight<'a> {
    statements: Vec<(&'static Sql, Vec<Owned<'a>>)>,
}

/// What came of one statement, as long as nothing has come: its answer is outstanding.
type Answer = Option<Result<Vec<Row>, tokio_postgres::Error>>;
/// An answer that is waited for.
pub(crate) type Outstanding<'f> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'f>>;

impl<'a> Flight<'a> {
    /// Adds a statement; its number in the flight.
    pub(crate) fn add(&mut self, sql: &'static Sql, params: Vec<Owned<'a>>) -> usize {
        self.statements.push((sql, params));
        self.statements.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Hands the statements to the connection, behind `before`. What cannot be sent fails here, before anything
    /// that must not come without it is sent.
    pub(crate) async fn send<'f>(
        &'f self,
        connection: &'f Connection,
        before: Option<Outstanding<'f>>,
    ) -> Result<Sent<'f>, Fault> {
        let mut sent =
            Sent { outstanding: Vec::with_capacity(self.statements.len() + 1), before: before.is_some() };
        sent.outstanding.extend(before.map(|before| (before, None)));
        for (sql, params) in &self.statements {
            let answer = async move {
                let params: Vec<Param<'_>> = params.iter().map(|param| &**param as Param<'_>).collect();
                connection.rows(sql, &params).await
            };
            sent.outstanding.push((Box::pin(answer), None));
        }
        // A statement is sent when it is polled first.
        poll_fn(|context| {
            sent.poll(context);
            Poll::Ready(())
        })
        .await;
        match sent.outstanding.iter().find_map(|(_, answer)| answer.as_ref()?.as_ref().err()) {
            Some(error) => Err(of_driver(error)),
            None => Ok(sent),
        }
    }
}

/// Statements whose answers are outstanding.
pub(crate) struct Sent<'f> {
    outstanding: Vec<(Outstanding<'f>, Answer)>,
    /// Whether the first is not one of the flight's own.
    before: bool,
}

impl Sent<'_> {
    /// Polls what is outstanding, in order; whether all have answered.
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> bool {
        let mut complete = true;
        for (outstanding, answer) in &mut self.outstanding {
            if answer.is_none() {
                match outstanding.as_mut().poll(context) {
                    Poll::Ready(result) => *answer = Some(result),
                    Poll::Pending => complete = false,
                }
            }
        }
        complete
    }

    /// Waits for every answer. The first that failed is the reason; the others then failed because of it.
    pub(crate) async fn answers(mut self) -> Result<Vec<Vec<Row>>, Fault> {
        poll_fn(|context| if self.poll(context) { Poll::Ready(()) } else { Poll::Pending }).await;
        let skipped = usize::from(self.before);
        let mut answers = Vec::with_capacity(self.outstanding.len());
        for (_, answer) in self.outstanding {
            answers.push(answer.unwrap_or_else(|| Ok(Vec::new())).map_err(|error| of_driver(&error))?);
        }
        Ok(answers.split_off(skipped.min(answers.len())))
    }
}
