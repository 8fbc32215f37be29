//! Calls about namespaces, permissions and the server.

use basalt_calls::{Api, Value};

use super::{Generator, record};

impl Generator {
    fn namespace(&mut self) -> Value {
        let name = self.one_of(&["nsp0", "nsp1", "nsp1", "nspx"]);
        let configuration = self.maybe(0.5, |this| {
            let value = this.one_of(&["red", "blue"]);
            Value::Map(vec![("color".into(), value.into())])
        });
        record([("name", Some(name.into())), ("configuration", configuration)])
    }

    /// A call about namespaces, or one about the server.
    pub(super) fn namespaces(&mut self) {
        let name = self.one_of(&["nsp0", "nsp1", "nsp1", "nspx", "default", "hbase"]);
        let name = [("name", Value::bytes(name))];
        match self.int(0..=11) {
            0 | 1 => {
                let namespace = self.namespace();
                self.call(Api::Two, "createNamespace", [("namespaceDesc", namespace)]);
            }
            2 | 3 => {
                let namespace = self.namespace();
                self.call(Api::Two, "modifyNamespace", [("namespaceDesc", namespace)]);
            }
            4 | 5 => self.call(Api::Two, "deleteNamespace", name),
            6 | 7 => self.call(Api::Two, "getNamespaceDescriptor", name),
            8 => self.call(Api::Two, "listNamespaces", []),
            9 => self.call(Api::Two, "listNamespaceDescriptors", []),
            10 => self.permissions(),
            _ => self.about_server(),
        }
    }

    /// Permissions that a server without access control cannot give.
    fn permissions(&mut self) {
        let of_table = self.chance(0.5);
        let entity = record([
            ("username", Some("user".into())),
            ("scope", Some(i64::from(!of_table).into())),
            ("actions", Some("RW".into())),
            ("tableName", of_table.then(|| "tbl0".into())),
            ("nsName", (!of_table).then(|| "nsp0".into())),
        ]);
        let api = self.one_of(&[Api::One, Api::Two]);
        let method = self.one_of(&["grant", "revoke"]);
        self.call(api, method, [("info", entity)]);
    }

    fn about_server(&mut self) {
        let nobody = || ("serverNames", Value::List(Vec::new()));
        match self.int(0..=3) {
            0 => self.call(Api::One, "getThriftServerType", []),
            1 => self.call(Api::Two, "getThriftServerType", []),
            2 => {
                let args = [nobody(), ("logQueryFilter", Value::Struct(Vec::new()))];
                self.call(Api::Two, "getSlowLogResponses", args);
            }
            _ => self.call(Api::Two, "clearSlowLogResponses", [nobody()]),
        }
    }
}
