//! The users and their follows: functions of numbers, identical in each run.

use std::sync::Arc;
use std::time::Instant;

use basalt_load::error::{Error, Result};
use basalt_load::load::choose::fnv_hash;
use basalt_load::load::retry::{Failures, retried};
use basalt_load::load::{self, Operations, Outcome};
use basalt_twibase::store::Store;
use basalt_twibase::{Twibase, User};

use super::Run;

/// Everybody's name but the fans'.
pub(super) const CELEBRITY: &str = "celebrity";
/// One user in this many follows the celebrity.
pub(super) const USERS_PER_FAN: u32 = 10;
/// Pairs of an operation.
const PAIRS: u64 = 500;

/// Sizes of the population.
#[derive(Clone, Copy, Debug)]
pub(super) struct Population {
    /// Users who write and read.
    pub(super) users: u32,
    /// Users that each of them follows.
    pub(super) following: u32,
    /// Followers of the celebrity who do nothing else.
    pub(super) fans: u32,
}

pub(super) fn user(number: u32) -> String {
    format!("user{number:07}")
}

fn fan(number: u32) -> String {
    format!("fan{number:07}")
}

impl Population {
    /// Whom a user follows: never himself, each once, the celebrity last.
    pub(super) fn followed_by_user(&self, number: u32) -> Vec<String> {
        let others = self.users - 1;
        let first = (fnv_hash(u64::from(number)) % u64::from(others)) as u32;
        let step = (others / self.following.max(1)).max(1);
        let mut followed: Vec<u32> = (0..self.following.min(others))
            // Numbers of the others, counted from the one behind the user.
            .map(|place| (u64::from(first) + u64::from(place) * u64::from(step)) % u64::from(others))
            .map(|place| (u64::from(number) + 1 + place) % u64::from(self.users))
            .map(|other| other as u32)
            .collect();
        followed.sort_unstable();
        followed.dedup();
        let mut followed: Vec<String> = followed.into_iter().map(user).collect();
        if number.is_multiple_of(USERS_PER_FAN) {
            followed.push(CELEBRITY.to_owned());
        }
        followed
    }

    /// Everyone who follows the celebrity.
    pub(super) fn fans_of_celebrity(&self) -> impl Iterator<Item = String> {
        let users = (0..self.users).step_by(USERS_PER_FAN as usize).map(user);
        users.chain((0..self.fans).map(fan))
    }

    /// Pairs of `chunk`: those of a user, then the fans', 500 at a time.
    fn pairs(&self, chunk: u64) -> Option<Vec<(String, String)>> {
        if chunk < u64::from(self.users) {
            let follower = chunk as u32;
            let followed = self.followed_by_user(follower).into_iter();
            return Some(followed.map(|followed| (user(follower), followed)).collect());
        }
        let first = (chunk - u64::from(self.users)) * PAIRS;
        let fans = u64::from(self.fans);
        (first < fans).then(|| {
            let fans = first..(first + PAIRS).min(fans);
            fans.map(|number| (fan(number as u32), CELEBRITY.to_owned()))
                .collect()
        })
    }

    fn chunks(&self) -> u64 {
        u64::from(self.users) + u64::from(self.fans).div_ceil(PAIRS)
    }
}

/// Users join and follow: operation `index` is the chunk of that number.
struct Joining<S> {
    twibase: Twibase<S>,
    population: Population,
}

impl<S: Store> Operations for Joining<S> {
    type Worker = ();

    fn kinds(&self) -> Vec<String> {
        vec!["join".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<()> {
        Ok(())
    }

    async fn operate(&self, _worker: &mut (), index: u64) -> Result<Option<Outcome>> {
        let Some(pairs) = self.population.pairs(index) else {
            return Ok(None);
        };
        let mut failures = Failures::default();
        let join = || async {
            if index < u64::from(self.population.users) {
                // False if a lost answer made this the second time.
                self.twibase.join(&User::new(user(index as u32))).await?;
            }
            self.twibase.follow_all(&pairs).await
        };
        let done = retried(&mut failures, join).await;
        let rows = done.map(|()| pairs.len() as u64);
        Ok(Some(Outcome::of(0, rows, failures)))
    }
}

impl<S: Store> Run<S> {
    /// Fills `users`, `follows` and `followedBy`.
    pub(super) async fn populate(&self) -> Result<()> {
        let population = self.population;
        let joining = Arc::new(Joining {
            twibase: self.twibase.clone(),
            population,
        });
        let celebrity = User {
            full_name: "The Celebrity".to_owned(),
            ..User::new(CELEBRITY)
        };
        self.twibase
            .join(&celebrity)
            .await
            .map_err(|source| Error::Target {
                during: "adding the celebrity".to_owned(),
                source,
            })?;
        let each = u64::from(population.following);
        let plan = self.lab.whole_plan("population", population.chunks(), each);
        let (measured, _) = load::run(plan, &joining).await?;
        if measured.operations() != population.chunks() {
            let first = measured.failures.first.as_deref();
            return Err(Error::Different(format!(
                "the population was not written: {}",
                first.unwrap_or("the server gave no reason")
            )));
        }
        for table in &self.tables[2..4] {
            self.lab.settle(table).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_follows_others_and_each_once() {
        for (users, following) in [(20, 5), (20, 30), (1_000, 30)] {
            let population = Population {
                users,
                following,
                fans: 0,
            };
            for number in 0..users {
                let mut followed = population.followed_by_user(number);
                let fan = number.is_multiple_of(USERS_PER_FAN);
                assert_eq!(followed.last().is_some_and(|last| last == CELEBRITY), fan);
                if fan {
                    followed.pop();
                }
                assert!(!followed.contains(&user(number)), "{number} follows himself");
                assert!(followed.is_sorted_by(|a, b| a < b), "{followed:?}");
                assert_eq!(followed.len(), following.min(users - 1) as usize);
            }
        }
    }

    #[test]
    fn chunks_hold_all_pairs() {
        let population = Population {
            users: 20,
            following: 3,
            fans: 1_001,
        };
        let pairs: Vec<_> = (0..population.chunks())
            .flat_map(|chunk| population.pairs(chunk).unwrap())
            .collect();
        assert_eq!(population.pairs(population.chunks()), None);
        let of_celebrity = pairs.iter().filter(|(_, followed)| followed == CELEBRITY);
        assert_eq!(of_celebrity.count(), population.fans_of_celebrity().count());
        assert_eq!(pairs.len(), 20 * 3 + 2 + 1_001);
    }
}
