//! The methods that can meet faults: those that read and write data.
//!
//! A native method's name stands for the same operation in all protocols ([`OPERATIONS`]); the name
//! of a Thrift method stands for that method alone, in both Thrift services. Case does not matter, so
//! `get` is `Get`.

use crate::observe::metrics::Api;

/// A native method, and the methods of Thrift that do the same.
struct Operation {
    native: &'static str,
    thrift1: &'static [&'static str],
    thrift2: &'static [&'static str],
}

/// The data methods of all protocols. `docs/test-servers.md` has this table.
const OPERATIONS: [Operation; 6] = [
    Operation {
        native: "Get",
        thrift1: &[
            "get",
            "getVer",
            "getVerTs",
            "getRow",
            "getRowTs",
            "getRowWithColumns",
            "getRowWithColumnsTs",
            "getRowOrBefore",
        ],
        thrift2: &["get", "exists"],
    },
    Operation {
        native: "Mutate",
        thrift1: &[
            "mutateRow",
            "mutateRowTs",
            "deleteAll",
            "deleteAllTs",
            "deleteAllRow",
            "deleteAllRowTs",
            "atomicIncrement",
            "increment",
            "append",
            "checkAndPut",
        ],
        thrift2: &[
            "put",
            "deleteSingle",
            "increment",
            "append",
            "checkAndPut",
            "checkAndDelete",
            "checkAndMutate",
        ],
    },
    Operation {
        native: "Multi",
        thrift1: &[
            "getRows",
            "getRowsTs",
            "getRowsWithColumns",
            "getRowsWithColumnsTs",
            "mutateRows",
            "mutateRowsTs",
            "incrementRows",
        ],
        thrift2: &[
            "getMultiple",
            "existsAll",
            "putMultiple",
            "deleteMultiple",
            "mutateRow",
        ],
    },
    Operation {
        native: "Scan",
        thrift1: &[
            "scannerOpen",
            "scannerOpenTs",
            "scannerOpenWithStop",
            "scannerOpenWithStopTs",
            "scannerOpenWithPrefix",
            "scannerOpenWithScan",
            "scannerGet",
            "scannerGetList",
        ],
        thrift2: &["openScanner", "getScannerRows", "getScannerResults"],
    },
    Operation {
        native: "ExecService",
        thrift1: &[],
        thrift2: &[],
    },
    Operation {
        native: "BulkLoadHFile",
        thrift1: &[],
        thrift2: &[],
    },
];

/// The name that stands for all of them.
const ALL: &str = "*";

/// The Thrift methods that fetch from a scanner. Their first argument is its id.
const FETCHES: [&str; 3] = ["scannerGet", "scannerGetList", "getScannerRows"];

/// Whether this Thrift method fetches from a scanner.
pub(crate) fn is_fetch(method: &str) -> bool {
    FETCHES.contains(&method)
}

impl Operation {
    fn contains(&self, api: Api, method: &str) -> bool {
        match api {
            Api::Native => self.native == method,
            Api::Thrift1 => self.thrift1.contains(&method),
            Api::Thrift2 => self.thrift2.contains(&method),
            Api::Admin | Api::Rest => false,
        }
    }

    fn thrift(&self) -> impl Iterator<Item = &'static str> {
        self.thrift1.iter().chain(self.thrift2).copied()
    }
}

/// The methods whose calls meet a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// All data methods.
    All,
    /// A native method, and Thrift's methods for the same: its position in [`OPERATIONS`].
    Operation(usize),
    /// The Thrift methods of this name.
    Thrift(&'static str),
}

impl Methods {
    /// The methods that a name stands for.
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == ALL {
            return Some(Self::All);
        }
        let is_name = |known: &&str| known.eq_ignore_ascii_case(name);
        let operation = OPERATIONS.iter().position(|operation| is_name(&operation.native));
        let thrift = || OPERATIONS.iter().flat_map(Operation::thrift).find(is_name);
        operation
            .map(Self::Operation)
            .or_else(|| thrift().map(Self::Thrift))
    }

    /// The name that stands for them.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => ALL,
            Self::Operation(index) => OPERATIONS[index].native,
            Self::Thrift(name) => name,
        }
    }

    /// All names that stand for methods: `*`, native names, then Thrift's.
    pub(super) fn names() -> Vec<&'static str> {
        let mut thrift: Vec<_> = OPERATIONS.iter().flat_map(Operation::thrift).collect();
        thrift.sort_unstable();
        thrift.dedup();
        let native = OPERATIONS.iter().map(|operation| operation.native);
        // `get` is also `Get`, which comes first.
        let is_native = |name: &&str| OPERATIONS.iter().any(|of| of.native.eq_ignore_ascii_case(name));
        thrift.retain(|name| !is_native(name));
        std::iter::once(ALL).chain(native).chain(thrift).collect()
    }

    /// Whether a call of this method is one of them.
    pub(super) fn contain(self, api: Api, method: &str) -> bool {
        match self {
            Self::All => is_data(api, method),
            Self::Operation(index) => OPERATIONS[index].contains(api, method),
            Self::Thrift(name) => api != Api::Native && name == method && is_data(api, method),
        }
    }

    /// Whether some of them fetch from a scan that is open.
    pub(super) fn contain_fetches(self) -> bool {
        match self {
            Self::All => true,
            Self::Operation(index) => OPERATIONS[index].thrift().any(is_fetch),
            Self::Thrift(name) => is_fetch(name),
        }
    }
}

/// Whether calls of this method can meet faults.
pub(crate) fn is_data(api: Api, method: &str) -> bool {
    OPERATIONS.iter().any(|operation| operation.contains(api, method))
}

#[cfg(test)]
mod tests {
    use basalt_idl::{thrift1, thrift2};

    use super::*;
    use crate::native;

    #[test]
    fn every_name_is_that_of_a_method() {
        for operation in &OPERATIONS {
            let native = operation.native;
            assert!(native::methods().any(|method| method == native), "{native}");
            for method in operation.thrift1 {
                assert!(thrift1::Method::from_name(method).is_some(), "{method}");
            }
            for method in operation.thrift2 {
                assert!(thrift2::Method::from_name(method).is_some(), "{method}");
            }
        }
        for fetch in FETCHES {
            assert!(
                OPERATIONS
                    .iter()
                    .flat_map(Operation::thrift)
                    .any(|method| method == fetch)
            );
        }
    }

    #[test]
    fn a_native_name_stands_for_all_protocols_and_a_thrift_name_for_itself() {
        let contain = |name: &str, api, method| Methods::named(name).unwrap().contain(api, method);
        for name in ["Mutate", "mutate", "*"] {
            assert!(contain(name, Api::Native, "Mutate"), "{name}");
            assert!(contain(name, Api::Thrift1, "mutateRow"), "{name}");
            assert!(contain(name, Api::Thrift2, "put"), "{name}");
        }
        assert!(!contain("Mutate", Api::Thrift2, "mutateRow"), "that is a Multi");
        assert!(contain("Multi", Api::Thrift2, "mutateRow"));
        assert!(
            contain("mutateRow", Api::Thrift1, "mutateRow")
                && contain("mutateRow", Api::Thrift2, "mutateRow")
        );
        assert!(!contain("mutateRow", Api::Thrift1, "mutateRowTs"));
        assert!(contain("get", Api::Native, "Get") && contain("get", Api::Thrift1, "getRow"));
        assert!(!contain("*", Api::Native, "CreateTable") && !contain("*", Api::Admin, "basaltFlush"));
        assert_eq!(Methods::named("gett"), None);
    }

    #[test]
    fn the_documentation_has_the_table() {
        let page = include_str!("../../../../docs/test-servers.md");
        for operation in &OPERATIONS {
            let cell = |names: &[&str]| match names {
                [] => " ".to_owned(),
                names => format!(" `{}` ", names.join("`, `")),
            };
            let (thrift1, thrift2) = (cell(operation.thrift1), cell(operation.thrift2));
            let row = format!("| `{}` |{thrift1}|{thrift2}|\n", operation.native);
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn every_name_is_listed_once_and_is_understood() {
        let names = Methods::names();
        for name in &names {
            assert_eq!(Methods::named(name).map(Methods::name), Some(*name));
        }
        assert_eq!(&names[..3], ["*", "Get", "Mutate"]);
        assert!(names.contains(&"getScannerRows") && !names.contains(&"get"));
    }
}
