//! The store's own threads. A batch that is under way holds locks, so whoever carries it forward must not stand in
//! line behind the requests of a rush: on the server's own threads each of its steps waited for hundreds of them.

use holdfast_store::Error;
use tokio::runtime::{Builder, Handle, Runtime};

/// Most threads: one is busy with about 20,000 orders a second.
const THREADS_MAX: usize = 4;

/// Threads that drive connections and batches, until this is dropped.
pub(crate) struct Threads {
    /// What starts a task on them.
    pub(crate) handle: Handle,
    /// None only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Threads {
    /// Starts them: one for every two processors.
    pub(crate) fn start() -> Result<Self, Error> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((processors / 2).clamp(1, THREADS_MAX))
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }
}

impl Drop for Threads {
    /// Without waiting: a store may be dropped where nothing may block.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
