//! What people do to sinks, the same in every store.

use std::sync::Arc;

use holdfast_core::command::Via;
use holdfast_core::time::Timestamp;

use super::row::{SECRETS_MAX, SinkHealth, SinkKind, SinkName, SinkRow, SinkSecret, SinkSettings, SinkState};

/// A sink to make or to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutSink {
    /// Its name.
    pub name: SinkName,
    /// How events reach it. It cannot be changed.
    pub kind: SinkKind,
    /// What it is told to do.
    pub settings: SinkSettings,
    /// With what deliveries of a new sink are signed.
    pub secrets: Vec<(String, Arc<str>)>,
    /// From when on a new sink is told.
    pub from: Timestamp,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

impl PutSink {
    /// The sink that it makes of the one before; none if nothing changes.
    pub fn onto(&self, before: Option<&SinkRow>, now: Timestamp) -> Result<Option<SinkRow>, SinkRefusal> {
        let Some(before) = before else { return Ok(Some(self.new_row(now))) };
        if before.kind != self.kind {
            return Err(SinkRefusal::Conflict("a sink of another kind has this name"));
        }
        let row = SinkRow { settings: self.settings.clone(), updated_at: now, ..before.clone() };
        Ok((row.settings != before.settings).then_some(row))
    }

    fn new_row(&self, now: Timestamp) -> SinkRow {
        let secret = |(id, secret): &(String, Arc<str>)| SinkSecret {
            id: id.clone(),
            secret: Arc::clone(secret),
            created_at: now,
        };
        SinkRow {
            name: self.name.clone(),
            kind: self.kind,
            settings: self.settings.clone(),
            secrets: self.secrets.iter().take(SECRETS_MAX).map(secret).collect(),
            state: SinkState::Active,
            why: None,
            round: 1,
            created_at: now,
            updated_at: now,
            health: SinkHealth::default(),
            parked: 0,
            waiting: 0,
        }
    }
}

/// What is done to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkChange {
    /// Deliver nothing for now.
    Pause,
    /// Deliver again, the backlog first.
    Resume,
    /// Deliver again what happened from a time on, beside what was not delivered yet.
    ReplayFrom(Timestamp),
    /// Try the parked events again.
    ReplayDeadLetters,
    /// Sign with one more secret.
    AddSecret(String, Arc<str>),
    /// Sign with this secret no more.
    DropSecret(String),
    /// Forget the sink and where it stands.
    Delete,
}

impl SinkChange {
    /// The word for the trail.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pause => "pause_sink",
            Self::Resume => "resume_sink",
            Self::ReplayFrom(_) | Self::ReplayDeadLetters => "replay_sink",
            Self::AddSecret(..) => "add_sink_secret",
            Self::DropSecret(_) => "drop_sink_secret",
            Self::Delete => "delete_sink",
        }
    }

    /// What it is about, for the trail.
    pub fn detail(&self) -> String {
        match self {
            Self::Pause | Self::Resume | Self::Delete => String::new(),
            Self::ReplayFrom(super::BEGINNING) => "from the beginning".into(),
            Self::ReplayFrom(from) => format!("from {from}"),
            Self::ReplayDeadLetters => "dead letters".into(),
            Self::AddSecret(id, _) | Self::DropSecret(id) => format!("secret {id}"),
        }
    }
}

/// A change of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSink {
    /// Which.
    pub name: SinkName,
    /// What.
    pub change: SinkChange,
    /// Who, as the request said; may be empty.
    pub operator: String,
    /// Why, as the request said; may be empty.
    pub reason: String,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

/// What a store must write for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkEffect {
    /// Nothing: it is so already.
    None,
    /// The sink's row.
    Row(Box<SinkRow>),
    /// The sink's row, and a new round from this time on.
    Round(Box<SinkRow>, Timestamp),
    /// Every parked event waits again.
    DeadLetters,
    /// Every row of the sink goes.
    Delete,
}

impl ChangeSink {
    /// What it means for the sink as it is.
    pub fn onto(&self, before: &SinkRow, now: Timestamp) -> Result<SinkEffect, SinkRefusal> {
        let mut row = SinkRow { updated_at: now, ..before.clone() };
        match &self.change {
            SinkChange::Pause => match before.state {
                SinkState::Paused => return Ok(SinkEffect::None),
                SinkState::Active | SinkState::Disabled => {
                    row.state = SinkState::Paused;
                    row.why =
                        Some(if self.reason.is_empty() { "paused".into() } else { self.reason.clone() });
                }
            },
            SinkChange::Resume => {
                if before.state == SinkState::Active && before.health.failures == 0 {
                    return Ok(SinkEffect::None);
                }
                (row.state, row.why) = (SinkState::Active, None);
                // Whoever resumes has mended it: it is tried at once.
                let delivered_at = before.health.delivered_at;
                row.health = SinkHealth { delivered_at, ..SinkHealth::default() };
            }
            SinkChange::ReplayFrom(from) => {
                row.round = before.round.saturating_add(1);
                return Ok(SinkEffect::Round(Box::new(row), *from));
            }
            SinkChange::ReplayDeadLetters => {
                return Ok(if before.parked == 0 { SinkEffect::None } else { SinkEffect::DeadLetters });
            }
            SinkChange::AddSecret(id, secret) => {
                check_is_signed(before)?;
                if before.secrets.len() >= SECRETS_MAX {
                    return Err(SinkRefusal::Conflict(
                        "the sink has as many secrets as it may: drop one first",
                    ));
                }
                let new = SinkSecret { id: id.clone(), secret: Arc::clone(secret), created_at: now };
                row.secrets.insert(0, new);
            }
            SinkChange::DropSecret(id) => {
                check_is_signed(before)?;
                row.secrets.retain(|secret| secret.id != *id);
                if row.secrets.len() == before.secrets.len() {
                    return Err(SinkRefusal::Unknown);
                }
                if row.secrets.is_empty() {
                    return Err(SinkRefusal::Conflict("it is the last secret: add another first"));
                }
            }
            SinkChange::Delete => return Ok(SinkEffect::Delete),
        }
        Ok(SinkEffect::Row(Box::new(row)))
    }
}

fn check_is_signed(sink: &SinkRow) -> Result<(), SinkRefusal> {
    if sink.kind == SinkKind::Webhook {
        Ok(())
    } else {
        Err(SinkRefusal::Conflict("only webhooks are signed"))
    }
}

/// Why nothing is done to a sink. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkRefusal {
    /// There is no such sink, or no such secret.
    Unknown,
    /// There are as many sinks as there may be.
    TooMany,
    /// It does not fit what is there.
    Conflict(&'static str),
}
