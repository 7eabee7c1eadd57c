//! What the machine is like: file system, space, flushes, open files.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{StatFs, statfs};
use rustix::process::{Resource, getrlimit};

use super::Finding;

/// Flushes that are measured; their median is told.
const FLUSHES: usize = 50;
/// A median above it makes every batch slow.
const FLUSH_SLOW: Duration = Duration::from_millis(20);
/// A median below it is faster than any disk: the flush does not reach one.
const FLUSH_DOUBTFUL: Duration = Duration::from_micros(10);
/// Less free space than that is soon none.
const FREE_UNSAFE: u64 = 64 << 20;
const FREE_LOW: u64 = 1 << 30;
/// Less free space than that, in percent, is worth a look.
const FREE_LOW_PERCENT: u64 = 10;
/// Connections that a server takes, and files that it needs besides.
const FILES_WANTED: u64 = 10_000 + 256;
/// With less than that even a small sale refuses connections.
const FILES_UNSAFE: u64 = 256;

/// File systems by the magic number that `statfs` tells.
const NETWORK: &[(u64, &str)] = &[
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x5346_414f, "afs"),
    (0x6e66_7364, "nfsd"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x00c3_6400, "ceph"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x0bd0_0bd0, "lustre"),
];
const LAYERED: &[(u64, &str)] = &[(0x794c_7630, "overlay"), (0xf15f, "ecryptfs"), (0x6175_6673, "aufs")];
const IN_MEMORY: &[(u64, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];
const KNOWN_GOOD: &[(u64, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
];

/// Looks at the directory of the database and at this process's limits.
pub(super) fn findings(directory: &Path) -> Vec<Finding> {
    let mut found = match statfs(directory) {
        Ok(stat) => vec![file_system(&stat), free_space(&stat)],
        Err(error) => vec![Finding::unsafe_(
            "file_system",
            format!("{}: {error}", directory.display()),
            "the directory of the database must be there and be readable",
        )],
    };
    found.push(match flush_median(directory) {
        Ok(median) => flush(median),
        Err(error) => Finding::unsafe_(
            "flush",
            format!("{}: {error}", directory.display()),
            "the server must be able to write where its database is",
        ),
    });
    found.push(open_files());
    found
}

fn named(magic: u64, of: &[(u64, &'static str)]) -> Option<&'static str> {
    of.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

fn file_system(stat: &StatFs) -> Finding {
    // The type of the number differs between platforms; the magic is its low 32 bits.
    #[expect(clippy::cast_sign_loss, reason = "a bit pattern, not a quantity")]
    judge_file_system(stat.f_type as u64 & 0xffff_ffff)
}

fn judge_file_system(magic: u64) -> Finding {
    const CHECK: &str = "file_system";
    if let Some(name) = named(magic, NETWORK) {
        let advice = "locks and flushes are not dependable here: use a local disk";
        return Finding::unsafe_(CHECK, format!("{name}, over a network or through another program"), advice);
    }
    if let Some(name) = named(magic, LAYERED) {
        let advice = "what is written goes away with the container: mount a volume for the database";
        return Finding::unsafe_(CHECK, format!("{name}, in layers"), advice);
    }
    if let Some(name) = named(magic, IN_MEMORY) {
        let advice = "everything is lost when the machine stops: use a local disk";
        return Finding::unsafe_(CHECK, format!("{name}, in memory"), advice);
    }
    match named(magic, KNOWN_GOOD) {
        Some(name) => Finding::ok(CHECK, name),
        None => Finding::warning(
            CHECK,
            format!("not known here, magic {magic:#x}"),
            "make sure that it is a local disk whose flushes are kept",
        ),
    }
}

fn free_space(stat: &StatFs) -> Finding {
    let unit = u64::try_from(stat.f_bsize).unwrap_or(0);
    judge_space(stat.f_bavail.saturating_mul(unit), stat.f_blocks.saturating_mul(unit))
}

fn judge_space(free: u64, total: u64) -> Finding {
    let percent = free.saturating_mul(100).checked_div(total).unwrap_or(0);
    let found = format!("{} MiB free, {percent} %", free >> 20);
    if free < FREE_UNSAFE {
        Finding::unsafe_("free_space", found, "a full disk refuses every order with storage_full: make room")
    } else if free < FREE_LOW || percent < FREE_LOW_PERCENT {
        Finding::warning("free_space", found, "a full disk refuses every order with storage_full: make room")
    } else {
        Finding::ok("free_space", found)
    }
}

/// The median time of a small write and its flush, as every batch of orders needs one.
fn flush_median(directory: &Path) -> io::Result<Duration> {
    let mut file = tempfile::tempfile_in(directory)?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let begin = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    times.get(FLUSHES / 2).copied().ok_or_else(|| io::Error::other("nothing was measured"))
}

fn flush(median: Duration) -> Finding {
    let found = format!("{} µs, the median of {FLUSHES}", median.as_micros());
    if median > FLUSH_SLOW {
        let advice = "every answer waits for a flush: a faster disk, or expect few batches a second";
        Finding::warning("flush", found, advice)
    } else if median < FLUSH_DOUBTFUL {
        let advice = "no disk is so fast: make sure that flushes are not swallowed";
        Finding::warning("flush", found, advice)
    } else {
        Finding::ok("flush", found)
    }
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    judge_files(limit.current)
}

fn judge_files(limit: Option<u64>) -> Finding {
    let advice = "a connection is a file: raise the limit (ulimit -n, LimitNOFILE) to 10,256 or more";
    match limit {
        None => Finding::ok("open_files", "unlimited"),
        Some(files) if files >= FILES_WANTED => Finding::ok("open_files", format!("{files}")),
        Some(files) if files < FILES_UNSAFE => Finding::unsafe_("open_files", format!("{files}"), advice),
        Some(files) => Finding::warning("open_files", format!("{files}"), advice),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn file_systems_are_judged_by_their_magic() {
        for (magic, level, word) in [
            (0xef53, Level::Ok, "ext4"),
            (0x6969, Level::Unsafe, "nfs"),
            (0xff53_4d42, Level::Unsafe, "cifs"),
            (0x794c_7630, Level::Unsafe, "overlay"),
            (0x0102_1994, Level::Unsafe, "tmpfs"),
            (0x1234_5678, Level::Warning, "0x12345678"),
        ] {
            let finding = judge_file_system(magic);
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.found.contains(word), "{finding:?}");
        }
    }

    #[test]
    fn a_magic_stands_in_one_list_only() {
        let all: Vec<u64> =
            [NETWORK, LAYERED, IN_MEMORY, KNOWN_GOOD].concat().iter().map(|(m, _)| *m).collect();
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
    }

    #[test]
    fn limits_have_three_levels() {
        let gib = 1_u64 << 30;
        assert_eq!(judge_space(0, gib).level, Level::Unsafe);
        assert_eq!(judge_space(2 * gib, 100 * gib).level, Level::Warning);
        assert_eq!(judge_space(50 * gib, 100 * gib).level, Level::Ok);
        assert_eq!(judge_files(Some(100)).level, Level::Unsafe);
        assert_eq!(judge_files(Some(1_024)).level, Level::Warning);
        assert_eq!(judge_files(Some(65_536)).level, Level::Ok);
        assert_eq!(judge_files(None).level, Level::Ok);
        assert_eq!(flush(Duration::from_millis(50)).level, Level::Warning);
        assert_eq!(flush(Duration::from_micros(1)).level, Level::Warning);
        assert_eq!(flush(Duration::from_micros(800)).level, Level::Ok);
    }
}
