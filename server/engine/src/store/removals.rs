//! Removing obsolete store files in the background, so that no reader waits for it.
//!
//! The last holder of a file may be any user of an old version: a writer, a network thread.
//! Removing the file takes long: the cache drops its blocks, and the file system frees a gigabyte's
//! extents one by one at the last close, with a wait for the disk at each under the mount option
//! `discard`. So one thread does it, in three steps:
//!
//! 1. the file's blocks leave the cache;
//! 2. when no cursor reads it any more, its name is removed. Until then it is *held*: a read may
//!    have to open it again by its name ([`crate::fs::HandleCache`]);
//! 3. it is closed.
//!
//! Every reader of a file holds a version that has it, and drops its cursors first, so a file is
//! rarely held. When the thread ends, held files lose their names too, since a leftover would be an
//! orphan at the next start.
//!
//! Without that thread (in simulation, and before the engine's threads have started and after they
//! have stopped) the caller removes the file itself, before it returns.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::StoreContext;
use crate::error::Error;
use crate::hfile::Reader;

/// How often held files are looked at.
const HELD_LOOK: Duration = Duration::from_millis(100);

/// Queue of files to be removed. All methods may be called from any thread.
#[derive(Debug, Default)]
pub struct Removals {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a thread serves the queue.
    served: bool,
    /// Set once: the thread ends when nothing waits.
    stopped: bool,
    waiting: Vec<Arc<Reader>>,
}

impl Removals {
    /// Removes a file, or leaves that to the thread.
    pub(super) fn remove(&self, context: &StoreContext, file: Arc<Reader>) {
        let mut state = self.state.lock();
        if state.served {
            state.waiting.push(file);
            drop(state);
            self.changed.notify_all();
        } else {
            drop(state);
            remove_now(context, &file);
        }
    }

    /// Body of the removing thread: removes files until it is stopped and the queue is empty.
    pub fn serve(&self, context: &StoreContext) {
        let mut held: Vec<Arc<Reader>> = Vec::new();
        let mut state = self.state.lock();
        state.served = true;
        loop {
            let files = std::mem::take(&mut state.waiting);
            if files.is_empty() && state.stopped {
                // No file is queued from now on: `served` is read under this lock.
                state.served = false;
                drop(state);
                for file in &held {
                    remove_name(context, file);
                }
                return;
            } else if files.is_empty() && held.is_empty() {
                self.changed.wait(&mut state);
            } else {
                if files.is_empty() {
                    self.changed.wait_for(&mut state, HELD_LOOK);
                }
                MutexGuard::unlocked(&mut state, || remove_all(context, files, &mut held));
            }
        }
    }

    /// Leaves everything to the thread from now on, as if it ran already.
    #[cfg(test)]
    pub(super) fn expect_thread(&self) {
        self.state.lock().served = true;
    }

    /// Asks the thread to end.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }
}

/// Does all steps. Keeps in `held` the files that are still read.
pub(super) fn remove_all(context: &StoreContext, files: Vec<Arc<Reader>>, held: &mut Vec<Arc<Reader>>) {
    for file in &files {
        context.reader.cache.remove_file(file.id());
    }
    held.extend(files);
    held.retain(|file| {
        // The count cannot rise from 1 again: readers come from a version, and no version has the
        // file.
        let is_read = Arc::strong_count(file) > 1;
        if !is_read {
            remove_name(context, file);
        }
        is_read
    });
}

/// Does all steps, without waiting for readers.
fn remove_now(context: &StoreContext, file: &Reader) {
    context.reader.cache.remove_file(file.id());
    remove_name(context, file);
}

fn remove_name(context: &StoreContext, file: &Reader) {
    let path = file.path();
    if let Err(source) = context.vfs.remove_file(path) {
        let error = Error::io("removing obsolete", path, source);
        context
            .listener
            .background_error("removing an obsolete store file", &error);
    }
}
