//! The condition of the server, for `/readyz`, pages and the log.

use std::time::Duration;

use basalt_engine::clock::{BEHIND_MS, behind_text};

use super::Server;
use super::copies::Copies;
use super::copies::standing::Role;

/// Most damaged regions that `/readyz` and the overview list one by one.
const DAMAGED_LISTED: usize = 3;

impl Server {
    /// Reasons why not all calls are accepted although the server is ready, a sentence each; empty
    /// if all are.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let stalled = self
            .engine
            .stalled()
            .map(|waited| format!("the log has been waiting for the disk for {} s", waited.as_secs()));
        let suspended = self
            .engine
            .disk()
            .suspended
            .map(|why| format!("disk space: {why}"));
        let (used, limit) = (self.engine.memstore_bytes(), self.config().memstore.total_bytes);
        let full = (used >= limit).then(|| {
            format!("writes are refused until flushes have freed memory: memstores have {used} bytes, memstore.total_bytes is {limit}")
        });
        let memory = self.admission.memory();
        let busy = memory.check().is_err().then(|| {
            let (used, limit) = (memory.used(), memory.limit());
            format!("calls that need memory are refused: those in hand have {used} bytes, requests.memory_bytes is {limit}")
        });
        [stalled, suspended, full, busy].into_iter().flatten().collect()
    }

    /// Lines about damage: refused regions, up to [`DAMAGED_LISTED`] one by one, and damaged blocks
    /// that reads have found. Empty when nothing is damaged.
    pub(crate) fn damage(&self) -> Vec<String> {
        let damaged = self.engine.damaged_regions();
        let mut lines: Vec<_> = damaged
            .iter()
            .take(DAMAGED_LISTED)
            .map(ToString::to_string)
            .collect();
        if damaged.len() > DAMAGED_LISTED {
            lines.push(format!(
                "{} more regions are refused: basalt_regions_damaged counts them, the log of the start has them",
                damaged.len() - DAMAGED_LISTED
            ));
        }
        let reads = self.engine.counters().damaged_reads.get();
        if reads > 0 {
            lines.push(format!(
                "damaged blocks of store files were found {reads} times since the start: the log and the errors of calls name the files, basalt check finds all of them"
            ));
        }
        lines
    }

    /// Conditions that need an operator although everything is served.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let ahead = self.engine.ahead_of_clock();
        let behind = ahead > Duration::from_millis(BEHIND_MS);
        let behind = behind.then(|| behind_text(ahead));
        behind.into_iter().chain(self.standing()).collect()
    }

    /// The line about the role: of a standby, a fenced server, or a primary without its standby.
    fn standing(&self) -> Option<String> {
        let Copies {
            standing,
            following,
            standbys,
            ..
        } = &self.copies;
        match standing.role() {
            Role::Primary if standbys.is_alone() => Some(
                "writes wait for no standby, although standby.sync asks for one: none is connected that has everything".into(),
            ),
            Role::Primary => None,
            Role::Standby => {
                let at = standing
                    .leader()
                    .map_or_else(String::new, |leader| format!(" of {}:{}", leader.host, leader.port));
                let problem = following.problem();
                let problem = if problem.is_empty() {
                    problem
                } else {
                    format!(": {problem}")
                };
                let store = self.config().followed_store();
                let store = store.map_or_else(String::new, |url| format!(" by way of {url}"));
                Some(format!(
                    "standby{at}{store}, {} ms behind{problem}",
                    following.lag().as_millis()
                ))
            }
            Role::Fenced | Role::Copying => standing.refusal(),
        }
    }
}
