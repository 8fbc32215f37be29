//! Switches of background work that operators turn off and on for the whole server.
//!
//! HBase keeps them in ZooKeeper. Here each is a property of the system namespace, so that a switch is
//! durable with one manifest edit, is published like any change of the schema, and is shown with the
//! namespace. A switch that is on has no property.

use super::NamespaceDescriptor;

/// A switch. All are on in a new database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Switch {
    /// Regions move between servers on a call of the balancer.
    Balancer,
    /// Regions of tables with NORMALIZATION_ENABLED are split and merged to similar sizes.
    Normalizer,
    /// Regions are split, by the policy or on request.
    Splits,
    /// Regions are merged.
    Merges,
    /// Snapshots are removed when their time to live is over.
    SnapshotCleanup,
}

impl Switch {
    /// All switches.
    #[doc(hidden)]
    pub const ALL: [Self; 5] = [
        Self::Balancer,
        Self::Normalizer,
        Self::Splits,
        Self::Merges,
        Self::SnapshotCleanup,
    ];

    /// Name of the property.
    pub fn property(self) -> &'static str {
        match self {
            Self::Balancer => "basalt.switch.balancer",
            Self::Normalizer => "basalt.switch.normalizer",
            Self::Splits => "basalt.switch.splits",
            Self::Merges => "basalt.switch.merges",
            Self::SnapshotCleanup => "basalt.switch.snapshot_cleanup",
        }
    }
}

/// Value of the property of a switch that is off.
const OFF: &str = "off";

impl NamespaceDescriptor {
    /// Whether the switch is on, if this is the system namespace.
    pub fn is_on(&self, switch: Switch) -> bool {
        let value = self.configuration.get(switch.property());
        value.is_none_or(|value| value != OFF)
    }

    /// Turns the switch.
    pub fn turn(&mut self, switch: Switch, on: bool) {
        let property = switch.property();
        if on {
            self.configuration.remove(property);
        } else {
            self.configuration.insert(property.to_owned(), OFF.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_is_turned_by_itself() {
        let mut namespace = NamespaceDescriptor::default();
        for turned in Switch::ALL {
            namespace.turn(turned, false);
            for switch in Switch::ALL {
                assert_eq!(namespace.is_on(switch), switch != turned, "{switch:?}");
            }
            namespace.turn(turned, true);
        }
        assert!(namespace.configuration.is_empty());
    }
}
