//! A simulated disk under the real engine.
//!
//! [`SimFs`] behaves like [`RealFs`](super::RealFs) (a test compares the two) and remembers which
//! changes a power cut would lose. Everything that happens on it follows from its seed, given that
//! it is called in the same order.
//!
//! * [`SimFs::crash`] is the disk after a power cut, damaged as `crash` (the module) describes;
//!   [`SimFs::crash_keep_all`] is the disk after kill -9: nothing lost, and nothing more durable than before.
//! * [`SimFs::crash_at_op`] lets the process die at a chosen call: from there on every call fails and the
//!   disk stands still.
//! * [`SimFs::fail`] makes calls of a live disk fail, [`SimFs::hang`] lets them hang,
//!   [`SimFs::set_capacity`] fills it up; `flip_bit`, `overwrite` and the like damage its content.
//!
//! A test of crash safety counts the calls of a workload ([`SimFs::op_count`]), then for every call
//! and several damage seeds runs it again, dies there, and opens the disk that `crash` returns.
//!
//! Clones are handles of one disk. All methods may be called from every thread; one lock guards the whole
//! disk.

mod crash;
mod disk;
mod fault;
mod random;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
pub use rustix::io::Errno;

use self::disk::{Create, Disk, Inode};
use self::fault::{Faults, crashed};
use super::{Advice, DirLock, File, Open, Space, Vfs};

pub use self::crash::Harm;
pub use self::fault::{CrashWhen, Failure, FaultId, OpKind, Ops, Times, is_crash};
pub use self::random::SplitMix64;

/// Reported space of a disk without a set capacity.
const BOUNDLESS_BYTES: u64 = 1 << 50;

/// Guarantees of the simulated file system about names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only the guarantees of POSIX: a file's sync does not make its name durable, changes of names
    /// have no order.
    #[default]
    Strict,
    /// As ext4 with ordered data: a file's sync commits the journal and with it all names; the journal keeps
    /// their order.
    Ext4,
}

/// Settings of a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimOptions {
    /// Guarantees about names.
    pub mode: Mode,
    /// Capacity in bytes; `None`: unlimited.
    pub capacity_bytes: Option<u64>,
}

impl SimOptions {
    /// An unlimited disk with the guarantees of ext4.
    pub fn ext4() -> Self {
        Self {
            mode: Mode::Ext4,
            capacity_bytes: None,
        }
    }
}

/// A simulated file system.
#[derive(Clone, Debug)]
pub struct SimFs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    mode: Mode,
    state: Mutex<State>,
    /// Told when a call that hangs may go on.
    resumed: Condvar,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    dice: SplitMix64,
    faults: Faults,
    /// Calls that hang: those of these kinds whose path contains the text.
    hanging: Option<(Ops, String)>,
    /// Locked files.
    locks: BTreeSet<Inode>,
    /// Calls so far.
    ops: u64,
    crash_at: Option<(u64, CrashWhen)>,
    /// The process is dead: nothing moves any more.
    dead: bool,
    /// The process's descriptors.
    descriptors: Descriptors,
}

/// Descriptors of the process that uses the disk: open files and held locks.
#[derive(Clone, Copy, Debug, Default)]
struct Descriptors {
    open: usize,
    most: usize,
    /// Opening more fails with EMFILE.
    limit: Option<usize>,
}

impl Descriptors {
    fn check(self) -> io::Result<()> {
        match self.limit {
            Some(limit) if self.open >= limit => Err(Errno::MFILE.into()),
            _ => Ok(()),
        }
    }

    fn opened(&mut self) {
        self.open += 1;
        self.most = self.most.max(self.open);
    }
}

impl State {
    fn hangs(&self, op: OpKind, path: &Path) -> bool {
        self.hanging
            .as_ref()
            .is_some_and(|(ops, pattern)| ops.has(op) && path.to_string_lossy().contains(pattern))
    }
}

impl Shared {
    /// Does one call: counts it, crashes the process at it if that is due, asks the faults for a
    /// failure.
    fn call<T>(
        &self,
        op: OpKind,
        path: &Path,
        act: impl FnOnce(&mut State, Option<Failure>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state.lock();
        while state.hangs(op, path) {
            self.resumed.wait(&mut state);
        }
        if state.dead {
            return Err(crashed());
        }
        let number = state.ops;
        state.ops += 1;
        let dies = state
            .crash_at
            .filter(|(at, _)| *at <= number)
            .map(|(_, when)| when);
        if dies == Some(CrashWhen::Before) {
            state.dead = true;
            return Err(crashed());
        }
        let State { faults, dice, .. } = &mut *state;
        let failure = faults.strike(op, path, dice);
        let result = act(&mut state, failure);
        if dies.is_some() {
            state.dead = true;
            return Err(crashed());
        }
        result
    }

    /// A call that happens or fails, nothing in between.
    fn plain<T>(
        &self,
        op: OpKind,
        path: &Path,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.call(op, path, |state, failure| match failure {
            Some(Failure::Error(errno)) => Err(errno.into()),
            Some(Failure::ShortRead) | None => act(state),
        })
    }
}

impl SimFs {
    /// An empty disk.
    pub fn new(seed: u64, options: SimOptions) -> Self {
        Self::with_disk(
            Disk::new(options.capacity_bytes),
            options.mode,
            SplitMix64::new(seed),
        )
    }

    fn with_disk(disk: Disk, mode: Mode, dice: SplitMix64) -> Self {
        Self {
            shared: Arc::new(Shared {
                mode,
                state: Mutex::new(State {
                    disk,
                    dice,
                    faults: Faults::default(),
                    hanging: None,
                    locks: BTreeSet::new(),
                    ops: 0,
                    crash_at: None,
                    dead: false,
                    descriptors: Descriptors::default(),
                }),
                resumed: Condvar::new(),
            }),
        }
    }

    /// The disk after a power cut at this moment, with damage that follows from `damage_seed`. This
    /// disk is unchanged, so one point can be cut with many seeds. The new disk has no faults,
    /// locks or open files and counts calls from 0.
    #[must_use]
    pub fn crash(&self, damage_seed: u64) -> Self {
        self.crash_with_harm(damage_seed).0
    }

    /// [`SimFs::crash`], with a summary of the power cut's effects.
    #[must_use]
    pub fn crash_with_harm(&self, damage_seed: u64) -> (Self, Harm) {
        let state = self.shared.state.lock();
        let mut dice = state.dice.fork(damage_seed);
        let (disk, harm) = crash::after_power_cut(&state.disk, self.shared.mode, &mut dice);
        (Self::with_disk(disk, self.shared.mode, dice), harm)
    }

    /// The disk after the process was killed: the page cache survives, so nothing is lost, and
    /// bytes that were not durable can still be lost to a later [`SimFs::crash`].
    #[must_use]
    pub fn crash_keep_all(&self) -> Self {
        let state = self.shared.state.lock();
        Self::with_disk(
            state.disk.clone().without_handles(),
            self.shared.mode,
            state.dice.fork(0),
        )
    }

    /// Calls so far. Advice is not counted, it changes nothing.
    pub fn op_count(&self) -> u64 {
        self.shared.state.lock().ops
    }

    /// Crashes the process at call number `op` (the first one is 0): that call and all later ones
    /// fail with an error that [`is_crash`] recognises.
    pub fn crash_at_op(&self, op: u64, when: CrashWhen) {
        self.shared.state.lock().crash_at = Some((op, when));
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        self.shared.state.lock().dead
    }

    /// Makes calls fail: those of these kinds whose path contains `pattern`.
    pub fn fail(
        &self,
        ops: impl Into<Ops>,
        pattern: &str,
        failure: impl Into<Failure>,
        times: Times,
    ) -> FaultId {
        self.shared
            .state
            .lock()
            .faults
            .add(ops.into(), pattern, failure.into(), times)
    }

    /// The calls that a fault has failed so far, with their paths; none once it is healed.
    pub fn struck(&self, fault: FaultId) -> Vec<(OpKind, PathBuf)> {
        self.shared.state.lock().faults.struck(fault)
    }

    /// Number of calls so far that matched the kinds and paths of a fault, whether it struck or
    /// not. With [`Times::Nth`] of a number that is never reached, the fault only counts.
    pub fn matched(&self, fault: FaultId) -> u64 {
        self.shared.state.lock().faults.matched(fault)
    }

    /// Ends a fault.
    pub fn heal(&self, fault: FaultId) {
        self.shared.state.lock().faults.heal(fault);
    }

    /// Ends all faults. Damage on the disk stays.
    pub fn heal_all(&self) {
        self.shared.state.lock().faults.heal_all();
    }

    /// Makes calls hang: those of these kinds whose path contains `pattern` do nothing until
    /// [`Self::resume`].
    pub fn hang(&self, ops: impl Into<Ops>, pattern: &str) {
        self.shared.state.lock().hanging = Some((ops.into(), pattern.to_owned()));
    }

    /// Resumes hanging calls.
    pub fn resume(&self) {
        self.shared.state.lock().hanging = None;
        self.shared.resumed.notify_all();
    }

    /// Sets the disk's capacity; its content stays. `None`: unlimited.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.state.lock().disk.capacity_bytes = bytes;
    }

    /// Limits the descriptors of the process, as `RLIMIT_NOFILE` does: open files and held locks.
    /// Opening more fails with EMFILE.
    pub fn limit_descriptors(&self, limit: Option<usize>) {
        self.shared.state.lock().descriptors.limit = limit;
    }

    /// Descriptors in use.
    pub fn descriptors(&self) -> usize {
        self.shared.state.lock().descriptors.open
    }

    /// Most descriptors in use at a time since the last call.
    pub fn take_most_descriptors(&self) -> usize {
        let descriptors = &mut self.shared.state.lock().descriptors;
        std::mem::replace(&mut descriptors.most, descriptors.open)
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.shared.state.lock().disk.used_bytes()
    }

    /// Flips a bit of a file on the disk and in the page cache. Bit 0 is the lowest of the first byte.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        self.damage(path, bit / 8..bit / 8 + 1, |byte| byte[0] ^= 1 << (bit % 8))
    }

    /// Zeros a sector of 512 bytes; the part of it that the file has.
    pub fn zero_sector(&self, path: &Path, sector: u64) -> io::Result<()> {
        let start = sector * crash::SECTOR_BYTES as u64;
        self.damage(path, start..start + crash::SECTOR_BYTES as u64, |bytes| {
            bytes.fill(0);
        })
    }

    /// Overwrites a file's bytes at `offset`: a stale, swapped or misdirected sector.
    pub fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.damage(path, offset..offset + bytes.len() as u64, |place| {
            place.copy_from_slice(&bytes[..place.len()]);
        })
    }

    /// Reads that touch this range of a file fail with EIO from now on.
    pub fn make_unreadable(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        let inode = state.disk.resolve(path)?;
        state.disk.file_mut(inode)?.unreadable.push(range);
        Ok(())
    }

    fn damage(&self, path: &Path, range: Range<u64>, change: impl Fn(&mut [u8])) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        let inode = state.disk.resolve(path)?;
        let file = state.disk.file_mut(inode)?;
        for bytes in [&mut file.seen, &mut file.durable] {
            let bytes = Arc::make_mut(bytes);
            let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(bytes.len());
            let start = usize::try_from(range.start).unwrap_or(usize::MAX);
            if start < end {
                change(&mut bytes[start..end]);
            }
        }
        Ok(())
    }

    /// A file's bytes as reads see them. Not a call of the file system: not counted, not affected
    /// by faults, possible after a crash.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.shared.state.lock();
        Ok(state.disk.file(state.disk.resolve(path)?)?.seen.to_vec())
    }

    /// All files as reads see them, sorted. No call, as with [`SimFs::contents`].
    pub fn files(&self) -> Vec<PathBuf> {
        self.shared.state.lock().disk.paths()
    }
}

/// An open file of the simulation.
#[derive(Debug)]
struct SimFile {
    shared: Arc<Shared>,
    inode: Inode,
    /// The path it was opened by, which faults match.
    path: PathBuf,
    writable: bool,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.disk.close(self.inode);
        state.descriptors.open -= 1;
    }
}

impl SimFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable {
            Ok(())
        } else {
            Err(Errno::BADF.into())
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.call(OpKind::Sync, &self.path, |state, failure| {
            if let Some(Failure::Error(errno)) = failure {
                state.disk.discard_unsynced(self.inode)?;
                return Err(errno.into());
            }
            state.disk.sync_file(self.inode)?;
            if self.shared.mode == Mode::Ext4 {
                state.disk.commit_all_names();
            }
            Ok(())
        })
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.shared
            .call(OpKind::Read, &self.path, |state, failure| match failure {
                Some(Failure::Error(errno)) => Err(errno.into()),
                Some(Failure::ShortRead) => {
                    let half = buffer.len() / 2;
                    state.disk.read(self.inode, &mut buffer[..half], offset)
                }
                None => state.disk.read(self.inode, buffer, offset),
            })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        self.shared.call(OpKind::Write, &self.path, |state, failure| {
            if let Some(Failure::Error(errno)) = failure {
                let written = state.dice.below(bytes.len() as u64 + 1) as usize;
                state.disk.write(self.inode, &bytes[..written], offset)?;
                return Err(errno.into());
            }
            state.disk.write(self.inode, bytes, offset)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        self.shared.plain(OpKind::Allocate, &self.path, |state| {
            state.disk.allocate(self.inode, len)
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // ftruncate of a descriptor that is not for writing is EINVAL, where write is EBADF.
        self.check_writable().map_err(|_| Errno::INVAL)?;
        self.shared.plain(OpKind::SetLen, &self.path, |state| {
            state.disk.set_len(self.inode, len)
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.shared.plain(OpKind::Len, &self.path, |state| {
            Ok(state.disk.file(self.inode)?.seen.len() as u64)
        })
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) {}
}

/// A lock of the simulation.
#[derive(Debug)]
struct SimLock {
    shared: Arc<Shared>,
    inode: Inode,
}

impl DirLock for SimLock {}

/// A reader's lock when there is no file to lock.
#[derive(Debug)]
struct NoLock;

impl DirLock for NoLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.locks.remove(&self.inode);
        state.disk.close(self.inode);
        state.descriptors.open -= 1;
    }
}

impl Vfs for SimFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let (op, create) = match how {
            Open::Read | Open::Direct | Open::Write => (OpKind::Open, Create::No),
            Open::CreateNew => (OpKind::Create, Create::New),
        };
        let open = |state: &mut State| {
            state.descriptors.check()?;
            let inode = state.disk.open(path, create)?;
            state.descriptors.opened();
            Ok(inode)
        };
        let inode = self.shared.plain(op, path, open)?;
        Ok(Arc::new(SimFile {
            shared: Arc::clone(&self.shared),
            inode,
            path: path.to_owned(),
            writable: matches!(how, Open::Write | Open::CreateNew),
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.shared
            .plain(OpKind::CreateDir, path, |state| state.disk.create_dir_all(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.shared.plain(OpKind::List, dir, |state| {
            let names = &state.disk.dir(state.disk.resolve(dir)?)?.seen;
            Ok(names.keys().map(PathBuf::from).collect())
        })
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.shared
            .plain(OpKind::Exists, path, |state| match state.disk.resolve(path) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared
            .plain(OpKind::Rename, to, |state| state.disk.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared
            .plain(OpKind::Link, to, |state| state.disk.link(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.shared
            .plain(OpKind::RemoveFile, path, |state| state.disk.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.shared
            .plain(OpKind::RemoveDir, path, |state| state.disk.remove_dir(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.shared.plain(OpKind::SyncDir, dir, |state| {
            let inode = state.disk.resolve(dir)?;
            state.disk.sync_dir(inode)?;
            if self.shared.mode == Mode::Ext4 {
                state.disk.commit_all_names();
            }
            Ok(())
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        let inode = self.shared.plain(OpKind::Lock, path, |state| {
            state.descriptors.check()?;
            let inode = state.disk.open(path, Create::IfMissing)?;
            if state.locks.insert(inode) {
                state.descriptors.opened();
                return Ok(Some(inode));
            }
            state.disk.close(inode);
            Ok(None)
        })?;
        Ok(inode.map(|inode| {
            Box::new(SimLock {
                shared: Arc::clone(&self.shared),
                inode,
            }) as Box<dyn DirLock>
        }))
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        if self.exists(path)? {
            return self.lock(path);
        }
        Ok(Some(Box::new(NoLock)))
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        self.shared.plain(OpKind::Space, dir, |state| {
            state.disk.resolve(dir)?;
            let total_bytes = state.disk.capacity_bytes.unwrap_or(BOUNDLESS_BYTES);
            Ok(Space {
                total_bytes,
                available_bytes: total_bytes.saturating_sub(state.disk.used_bytes()),
            })
        })
    }

    fn draw_uuid(&self) -> io::Result<[u8; 16]> {
        self.shared.plain(OpKind::DrawUuid, Path::new(""), |state| {
            let mut uuid = [0; 16];
            state.dice.fill(&mut uuid);
            Ok(uuid)
        })
    }
}

#[cfg(test)]
mod tests;
