//! What may go wrong with a call, and what it says of whether the call was done.

use std::fmt;
use std::sync::Arc;

use holdfast_engine::CacheError;
use redis::{ErrorKind, RedisError};

/// Longest piece of a server's words that is passed on.
const DETAIL_CHARS_MAX: usize = 200;

/// Why a call was not answered.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It was not sent.
    Unsent(Arc<str>),
    /// It may have been sent; no answer came.
    Lost(Arc<str>),
    /// The server does not have the script: nothing was done.
    NoScript,
    /// The stream has no such group: nothing was done.
    NoGroup,
    /// The stream went while the call waited, or is not there.
    NoStream,
    /// The keys are elsewhere, or this server is no master any more: nothing was done.
    Moved(Arc<str>),
    /// The connection leads to another server than the call is for: it was not sent.
    OtherServer,
    /// The server refuses for now: nothing was done.
    Refused(Arc<str>),
    /// What the server has or says is not what it must be.
    Unfit(Arc<str>),
}

impl Fault {
    pub(crate) fn unsent(why: impl Into<Arc<str>>) -> Self {
        Self::Unsent(why.into())
    }

    pub(crate) fn unfit(why: impl Into<Arc<str>>) -> Self {
        Self::Unfit(why.into())
    }

    /// Whether the connection must not be used again.
    pub(crate) fn ends_the_connection(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Moved(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&CacheError::from(self.clone()), f)
    }
}

impl From<Fault> for CacheError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unsent(why) | Fault::Moved(why) | Fault::Refused(why) => Self::Unavailable(why),
            Fault::Lost(why) => Self::Unknown(why),
            Fault::NoScript => Self::Unavailable("the server forgets scripts at once".into()),
            Fault::OtherServer => Self::Unavailable("another server answers".into()),
            Fault::NoGroup | Fault::NoStream => Self::Unavailable("the stream is gone".into()),
            Fault::Unfit(why) => Self::Unfit(why),
        }
    }
}

/// What a call's error means.
pub(crate) fn of_call(error: &RedisError) -> Fault {
    let Some(code) = error.code().filter(|_| is_of_server(error)) else {
        return Fault::Lost(shown(error));
    };
    match code {
        "NOSCRIPT" => Fault::NoScript,
        "NOGROUP" => Fault::NoGroup,
        "UNBLOCKED" => Fault::NoStream,
        "MOVED" | "ASK" | "READONLY" | "MASTERDOWN" => Fault::Moved(shown(error)),
        "LOADING" | "BUSY" | "CLUSTERDOWN" | "TRYAGAIN" | "OOM" | "MISCONF" | "NOREPLICAS" => {
            Fault::Refused(shown(error))
        }
        // Everything is judged before the first write; what fails otherwise failed at the first command.
        _ => Fault::Unfit(shown(error)),
    }
}

/// Why a connection could not be made. The server's words stay out of it: they may repeat what it was sent.
pub(crate) fn of_connecting(error: &RedisError) -> Arc<str> {
    match error.code().filter(|_| is_of_server(error)) {
        Some(code) => format!("the server refuses the connection: {code}").into(),
        None if error.kind() == ErrorKind::Io => error.to_string().into(),
        None => format!("{:?}", error.kind()).into(),
    }
}

fn is_of_server(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

fn shown(error: &RedisError) -> Arc<str> {
    error.to_string().chars().take(DETAIL_CHARS_MAX).collect::<String>().into()
}
