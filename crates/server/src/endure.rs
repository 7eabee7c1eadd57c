//! Work that goes on when nobody waits for it any more.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Work that is done by whoever waits for it, as long as he does. If he stops, a task of its own does the rest: a
/// dropped connection must not cancel what has begun. Nearly everybody waits, and is spared the task.
pub(crate) struct Enduring<F: Future + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future + Send + 'static> Enduring<F> {
    pub(crate) fn new(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future + Send + 'static> Future for Enduring<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out meanwhile: work that panics is not gone on with.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<F: Future + Send + 'static> Drop for Enduring<F> {
    fn drop(&mut self) {
        if let Some(rest) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { drop(rest.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::Arc;

    use futures_util::FutureExt;
    use tokio::sync::{Notify, oneshot};

    use super::*;

    #[tokio::test]
    async fn it_is_done_by_whoever_waits() {
        assert_eq!(Enduring::new(async { 7 }).await, 7);
        let (tell, told) = oneshot::channel();
        let work = Enduring::new(told);
        tokio::spawn(async move { tell.send(8) });
        assert_eq!(work.await, Ok(8));
    }

    #[tokio::test]
    async fn it_goes_on_when_nobody_waits_any_more() {
        let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, told) = oneshot::channel();
        let work = {
            let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
            Enduring::new(async move {
                begun.notify_one();
                go.notified().await;
                tell.send(9).unwrap();
            })
        };
        tokio::select! {
            () = work => panic!("it waits"),
            () = begun.notified() => {}
        }
        go.notify_one();
        assert_eq!(told.await, Ok(9));
    }

    #[tokio::test]
    async fn what_panicked_is_not_gone_on_with() {
        let (held, released) = oneshot::channel::<()>();
        let mut work = Enduring::new(async move {
            tokio::task::yield_now().await;
            let _held = held;
            panic!("on purpose");
        });
        let caught = AssertUnwindSafe(&mut work).catch_unwind().await;
        assert!(caught.is_err());
        drop(work);
        assert!(released.await.is_err(), "what it held is given back");
    }
}
