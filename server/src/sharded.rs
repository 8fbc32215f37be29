//! A map for many threads: each key belongs to one of several shards, each under a mutex of its own.
//!
//! A guard of [`Sharded::get_mut`] holds its shard's mutex. REQUIRES: a thread that has one calls no
//! other function of the map, and neither does the drop of a value.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hash};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

/// More than threads that would use one map at once.
const SHARDS: usize = 32;

/// A map that is shared without a lock around it.
#[derive(Debug)]
pub(crate) struct Sharded<K, V> {
    shards: [Mutex<HashMap<K, V>>; SHARDS],
    hasher: RandomState,
}

impl<K, V> Default for Sharded<K, V> {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
        }
    }
}

impl<K: Hash + Eq, V> Sharded<K, V> {
    fn shard(&self, key: &K) -> MutexGuard<'_, HashMap<K, V>> {
        // The shards' own maps hash with keys of their own.
        let hash = self.hasher.hash_one(key);
        self.shards[hash as usize % SHARDS].lock()
    }

    /// The value of a key, with its shard locked.
    pub(crate) fn get_mut(&self, key: &K) -> Option<MappedMutexGuard<'_, V>> {
        MutexGuard::try_map(self.shard(key), |shard| shard.get_mut(key)).ok()
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.shard(key).contains_key(key)
    }

    /// Adds a value, or returns it if the key has one.
    pub(crate) fn insert_new(&self, key: K, value: V) -> Result<(), V> {
        match self.shard(&key).entry(key) {
            Entry::Occupied(_) => Err(value),
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                Ok(())
            }
        }
    }

    /// A copy of the value of a key, which becomes the default if there is none.
    pub(crate) fn get_or_default(&self, key: K) -> V
    where
        V: Clone + Default,
    {
        self.shard(&key).entry(key).or_default().clone()
    }

    pub(crate) fn remove(&self, key: &K) -> Option<V> {
        self.remove_if(key, |_| true)
    }

    /// Removes the value of a key if `condition` holds for it.
    pub(crate) fn remove_if(&self, key: &K, condition: impl FnOnce(&V) -> bool) -> Option<V> {
        let mut shard = self.shard(key);
        if condition(shard.get(key)?) {
            shard.remove(key)
        } else {
            None
        }
    }

    /// Removes the values for which `keep` is false, shard after shard.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&mut V) -> bool) {
        for shard in &self.shards {
            shard.lock().retain(|_, value| keep(value));
        }
    }

    /// Calls `visit` with every value, shard after shard.
    pub(crate) fn for_each_mut(&self, mut visit: impl FnMut(&mut V)) {
        for shard in &self.shards {
            shard.lock().values_mut().for_each(&mut visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_value() {
        let map = Sharded::default();
        for key in 0..1_000 {
            assert_eq!(map.insert_new(key, key * 2), Ok(()));
        }
        assert_eq!(map.insert_new(7, 0), Err(0));
        *map.get_mut(&7).unwrap() += 1;
        assert_eq!(map.get_mut(&7).as_deref(), Some(&15));
        assert!(map.get_mut(&1_000).is_none() && !map.contains_key(&1_000));
        assert_eq!(map.get_or_default(1_000), 0);
        assert_eq!(map.get_or_default(7), 15);
    }

    #[test]
    fn removals_reach_every_shard() {
        let map = Sharded::default();
        for key in 0..1_000 {
            map.insert_new(key, key).unwrap();
        }
        assert_eq!(map.remove_if(&1, |value| *value == 2), None);
        assert_eq!(map.remove(&1), Some(1));
        assert_eq!(map.remove(&1), None);
        map.retain(|value| *value % 2 == 0);
        let mut left = 0;
        map.for_each_mut(|value| {
            assert_eq!(*value % 2, 0);
            left += 1;
        });
        assert_eq!(left, 500);
        map.retain(|_| false);
        assert!((0..1_000).all(|key| !map.contains_key(&key)));
    }

    /// Goal: updates of one key from many threads are not lost.
    #[test]
    fn threads_share_it() {
        let map = Sharded::<u8, u32>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        map.get_or_default(1);
                        *map.get_mut(&1).unwrap() += 1;
                    }
                });
            }
        });
        assert_eq!(map.remove(&1), Some(4_000));
    }
}
