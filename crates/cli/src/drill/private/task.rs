//! Something that goes on as long as a fault lasts.

use std::sync::{Mutex, PoisonError};

use tokio::task::JoinHandle;

/// At most one thing that goes on. It ends when this is dropped.
#[derive(Default)]
pub(super) struct Task(Mutex<Option<JoinHandle<()>>>);

impl Task {
    /// Begins it, instead of what went on before.
    pub(super) fn begin(&self, what: impl Future<Output = ()> + Send + 'static) {
        let before = self.replace(Some(tokio::spawn(what)));
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Ends it; it is over when this returns.
    pub(super) async fn end(&self) {
        let before = self.replace(None);
        if let Some(before) = before {
            before.abort();
            let _ = before.await;
        }
    }

    fn replace(&self, with: Option<JoinHandle<()>>) -> Option<JoinHandle<()>> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), with)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.replace(None) {
            task.abort();
        }
    }
}
