//! Flushes, compactions, splits and merges at random, of whatever the clients use.

use std::sync::Arc;
use std::time::Duration;

use basalt_client::Error;
use basalt_client::admin::{Admin, Compaction};
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Problem;
use super::life::{Life, Tasks};

/// A table with more regions is merged, not split.
const REGIONS_MAX: usize = 6;

/// Begins in a life.
pub(super) fn start(life: &Arc<Life>, tables: Vec<String>, tasks: &mut Tasks) {
    let life = Arc::clone(life);
    tasks.spawn(async move {
        let admin = Admin::new(&life.client(0));
        let mut random = life.random(0);
        while !life.stopped() {
            let pause = Duration::from_millis(random.random_range(0..60));
            tokio::time::sleep(pause).await;
            let table = &tables[random.random_range(0..tables.len())];
            // Nobody listens when the life is about to end.
            let _ = life.upkeep.send(());
            match one(&admin, table, &mut random).await {
                // A region that cannot be split now, a table that has just been dropped.
                Ok(()) | Err(Error::Server { .. } | Error::Application { .. }) => {}
                Err(Error::Io { .. } | Error::Connect { .. }) => return,
                Err(error) => return life.found(Problem::new("upkeep", error.to_string())),
            }
        }
    });
}

async fn one(admin: &Admin, table: &str, random: &mut SmallRng) -> Result<(), Error> {
    let what = random.random_range(0..10);
    if what < 4 {
        return admin.flush(table).await;
    }
    if what < 7 {
        let compaction = Compaction {
            family: None,
            major: random.random_bool(0.5),
            wait: random.random_bool(0.5),
        };
        return admin.compact(table, compaction).await;
    }
    let regions = admin.regions(Some(table)).await?;
    let at = random.random_range(0..regions.len().max(1));
    if regions.len() < REGIONS_MAX && what < 9 {
        let Some(region) = regions.get(at) else {
            return Ok(());
        };
        admin.split(&region.region_name, None).await
    } else {
        let Some([one, other]) = regions.get(at..at + 2) else {
            return Ok(());
        };
        let names = vec![one.region_name.clone(), other.region_name.clone()];
        admin.merge(names).await.map(drop)
    }
}
