//! The hash chain of the ledger, kept outside of the database: whoever can rewrite rows cannot rewrite what was sealed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use holdfast_core::id::PoolId;
use holdfast_core::ledger::Entry;
use holdfast_core::order::State;
use holdfast_core::stock::BucketKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// How entries are hashed. Another way is another version.
const VERSION: u32 = 1;
/// Largest file that is read: some millions of buckets.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Most broken chains that are named; all are counted.
const BROKEN_SHOWN_MAX: usize = 1_000;

type Hash = [u8; 32];

/// A bucket's chain up to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    seq: u64,
    hash: Hash,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Chained {
    /// The file.
    file: PathBuf,
    /// Entries that were sealed before, and are what they were.
    unchanged: u64,
    /// Entries that are sealed now.
    sealed: u64,
    /// Buckets whose ledger is another one than was sealed.
    broken: u64,
    /// The first of them.
    buckets: Vec<Broken>,
}

/// A bucket whose ledger is another one.
#[derive(Debug, Serialize)]
struct Broken {
    pool_id: String,
    bucket: u32,
    /// Up to where it had been sealed: an entry up to there was changed, taken away or put in.
    sealed_seq: u64,
}

impl Chained {
    pub(crate) const fn is_whole(&self) -> bool {
        self.broken == 0
    }

    pub(crate) fn text(&self) -> String {
        let mut out = format!(
            "chain  {} entries as they were sealed, {} sealed now in {}\n",
            self.unchanged,
            self.sealed,
            self.file.display()
        );
        for broken in &self.buckets {
            let Broken { pool_id, bucket, sealed_seq } = broken;
            out.push_str(&format!(
                "chain  pool {pool_id} bucket {bucket}: BROKEN, not the ledger that was sealed up to {sealed_seq}\n"
            ));
        }
        if self.broken > 0 {
            out.push_str(&format!("chain  {} buckets BROKEN; the file stays as it was\n", self.broken));
        }
        out
    }
}

/// Chains under way, beside an audit that reads every entry.
pub(crate) struct Chain {
    file: PathBuf,
    sealed: BTreeMap<BucketKey, Head>,
    heads: BTreeMap<BucketKey, Head>,
    /// Sealed heads that were met.
    met: u64,
    unchanged: u64,
    broken: Vec<BucketKey>,
}

impl Chain {
    /// With what a file has sealed; nothing if there is none yet.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let sealed = read(file).with_context(|| file.display().to_string())?;
        let file = file.to_owned();
        Ok(Self { file, sealed, heads: BTreeMap::new(), met: 0, unchanged: 0, broken: Vec::new() })
    }

    /// Goes on with an entry.
    pub(crate) fn add(&mut self, entry: &Entry) {
        let head = self.heads.entry(entry.bucket).or_insert(Head { seq: 0, hash: [0; 32] });
        *head = Head { seq: entry.seq, hash: hash(&head.hash, entry) };
        let Some(sealed) = self.sealed.get(&entry.bucket).filter(|sealed| sealed.seq == entry.seq) else {
            return;
        };
        self.met = self.met.saturating_add(1);
        if sealed == head {
            self.unchanged = self.unchanged.saturating_add(sealed.seq);
        } else {
            self.broken.push(entry.bucket);
        }
    }

    /// Judges, and seals what is new where nothing is broken.
    pub(crate) fn finish(mut self) -> Result<Chained> {
        // A bucket that is gone, or does not reach so far any more.
        let lost = |bucket: &&BucketKey| {
            let sealed = self.sealed.get(bucket).map_or(0, |head| head.seq);
            self.heads.get(bucket).is_none_or(|head| head.seq < sealed)
        };
        let lost: Vec<BucketKey> = self.sealed.keys().filter(lost).copied().collect();
        self.broken.extend(lost);
        self.broken.sort_unstable();
        let buckets = self.broken.iter().take(BROKEN_SHOWN_MAX).map(|bucket| Broken {
            pool_id: bucket.pool.to_string(),
            bucket: bucket.number,
            sealed_seq: self.sealed.get(bucket).map_or(0, |head| head.seq),
        });
        let buckets: Vec<Broken> = buckets.collect();
        let mut sealed = 0;
        if self.broken.is_empty() {
            write(&self.file, &self.heads).with_context(|| self.file.display().to_string())?;
            sealed = self.heads.values().map(|head| head.seq).sum();
        }
        let broken = u64::try_from(self.broken.len())?;
        Ok(Chained { file: self.file, unchanged: self.unchanged, sealed, broken, buckets })
    }
}

/// The hash of an entry and of all before it.
fn hash(before: &Hash, entry: &Entry) -> Hash {
    let mut hasher = Sha256::new_with_prefix(before);
    let mut field = |text: Option<&str>| {
        // Its length stands before a text, so that no two entries are the same bytes.
        let length = text.map_or(u64::MAX, |text| text.len() as u64);
        hasher.update(length.to_be_bytes());
        hasher.update(text.unwrap_or_default());
    };
    field(Some(&entry.bucket.pool.to_string()));
    field(Some(&entry.bucket.number.to_string()));
    field(Some(&entry.seq.to_string()));
    field(Some(&entry.at.0.to_string()));
    field(entry.order_id.map(|id| id.to_string()).as_deref());
    field(Some(&entry.business_no));
    field(Some(entry.action.as_str()));
    for delta in [entry.delta.available, entry.delta.held, entry.delta.sold] {
        field(Some(&delta.to_string()));
    }
    field(Some(&entry.settled.to_string()));
    field(entry.from_state.map(State::as_str));
    field(entry.to_state.map(State::as_str));
    field(entry.order_version.map(|version| version.to_string()).as_deref());
    for text in [&entry.source, &entry.actor, &entry.reason] {
        field(Some(text));
    }
    field(entry.covers.map(|covers| format!("{}-{}", covers.first, covers.last)).as_deref());
    hasher.finalize().into()
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    buckets: Vec<Sealed>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    pool_id: String,
    bucket: u32,
    seq: u64,
    sha256: String,
}

fn read(path: &Path) -> Result<BTreeMap<BucketKey, Head>> {
    let text = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.into()),
        Ok(about) if about.len() > FILE_BYTES_MAX => bail!("more than {FILE_BYTES_MAX} bytes"),
        Ok(_) => std::fs::read(path)?,
    };
    let file: File = serde_json::from_slice(&text).context("it is no chain")?;
    ensure!(file.version == VERSION, "a chain of version {}, which this binary cannot read", file.version);
    file.buckets.iter().map(head).collect()
}

fn head(sealed: &Sealed) -> Result<(BucketKey, Head)> {
    let pool = PoolId(Uuid::parse_str(&sealed.pool_id).context("the id of a pool")?.as_u128());
    let mut hash = [0; 32];
    ensure!(sealed.sha256.len() == 64 && sealed.sha256.is_ascii(), "a hash of another length");
    for (byte, digits) in hash.iter_mut().zip(sealed.sha256.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits)?, 16).context("a hash")?;
    }
    Ok((BucketKey { pool, number: sealed.bucket }, Head { seq: sealed.seq, hash }))
}

/// Writes it whole or not at all.
fn write(path: &Path, heads: &BTreeMap<BucketKey, Head>) -> Result<()> {
    let buckets = heads.iter().map(|(bucket, head)| Sealed {
        pool_id: bucket.pool.to_string(),
        bucket: bucket.number,
        seq: head.seq,
        sha256: head.hash.iter().map(|byte| format!("{byte:02x}")).collect(),
    });
    let file = File { version: VERSION, buckets: buckets.collect() };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut written = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    serde_json::to_writer(&mut written, &file)?;
    written.write_all(b"\n")?;
    written.as_file().sync_all()?;
    written.persist(path)?;
    Ok(())
}
