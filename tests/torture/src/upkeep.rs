//! Flushes, compactions, splits and merges at random, of whatever the clients use.

use std::sync::Arc;
use std::time::Duration;

use basalt_client::Error;
use basalt_client::admin::{Admin, Compaction};
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Problem;
use super::life::{Kind, Life, Tasks, Upkeep};

/// A table with more regions is merged, not split.
const REGIONS_MAX: usize = 6;
/// As many pieces may be under way at once.
const TASKS: u64 = 2;

/// Begins in a life.
pub(super) fn start(life: &Arc<Life>, tables: &[String], tasks: &mut Tasks) {
    for number in 0..TASKS {
        tasks.spawn(run(Arc::clone(life), tables.to_vec(), number));
    }
}

async fn run(life: Arc<Life>, tables: Vec<String>, number: u64) {
    let admin = Admin::new(&life.client(number));
    let mut random = life.random(10 + number);
    while !life.stopped() {
        let pause = Duration::from_millis(random.random_range(0..30));
        tokio::time::sleep(pause).await;
        let table = &tables[random.random_range(0..tables.len())];
        let kind = [Kind::Flush, Kind::Compaction, Kind::Split, Kind::Merge][random.random_range(0..4)];
        // The receiver is gone when the life is about to end.
        let _ = life.upkeep.send(Upkeep::Begins);
        match one(&admin, table, kind, &mut random).await {
            Ok(true) => drop(life.upkeep.send(Upkeep::Done(kind))),
            // Nothing to do; a region that cannot be split now, one that has just been merged.
            Ok(false) | Err(Error::Server { .. } | Error::Application { .. }) => {}
            Err(Error::Io { .. } | Error::Connect { .. }) => return,
            Err(error) => return life.found(Problem::new("upkeep", error.to_string())),
        }
    }
}

/// Runs one piece of upkeep; false if there was nothing to do.
async fn one(admin: &Admin, table: &str, kind: Kind, random: &mut SmallRng) -> Result<bool, Error> {
    match kind {
        Kind::Flush => admin.flush(table).await?,
        Kind::Compaction => {
            // Seldom of all files: tombstones must stay where older files are left out.
            let compaction = Compaction {
                family: None,
                major: random.random_bool(0.15),
                wait: random.random_bool(0.5),
            };
            admin.compact(table, compaction).await?;
        }
        Kind::Split | Kind::Merge => {
            let regions = admin.regions(Some(table)).await?;
            let at = random.random_range(0..regions.len().max(1));
            if kind == Kind::Split {
                let Some(region) = regions.get(at).filter(|_| regions.len() < REGIONS_MAX) else {
                    return Ok(false);
                };
                admin.split(&region.region_name, None).await?;
            } else {
                let Some([one, other]) = regions.get(at..at + 2) else {
                    return Ok(false);
                };
                let names = vec![one.region_name.clone(), other.region_name.clone()];
                admin.merge(names).await?;
            }
        }
    }
    Ok(true)
}
