//! The client: calls through the pool, and the rule for retries.
//!
//! A call that fails because its connection was lost is retried once, on a new connection, if the
//! interface declares its method idempotent: every method that only reads. Not retried are writes and
//! changes of schema, which the server may have carried out before the connection broke; opening a
//! scanner, which would leave one behind; fetching from a scanner, which moves it. A timeout is never
//! followed by a retry, because that would add load to a slow server.

use basalt_idl::call::Call;

use crate::error::{Result, Thrown};
use crate::pool::{Pool, PoolOptions};

/// A client of one server. Clones share its connections; use one for a whole program.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Pool,
}

impl Client {
    /// Connects to `target`, a `host:port`, with default options. Fails if no server listens there.
    pub async fn connect(target: &str) -> Result<Client> {
        let client = Client::new(target, PoolOptions::default())?;
        drop(client.pool.acquire().await?);
        Ok(client)
    }

    /// A client that connects when first used.
    pub fn new(target: impl Into<String>, options: PoolOptions) -> Result<Client> {
        Ok(Client {
            pool: Pool::new(target, options)?,
        })
    }

    /// The pool behind this client.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Makes any call of the interface, by its arguments: a type of `args` in a service's module of the crate
    /// `basalt-idl`. The handles use it; it is public for calls that they do not have.
    pub async fn call<C>(&self, args: &C) -> Result<C::Success>
    where
        C: Call,
        C::Exception: Thrown,
    {
        let mut connection = self.pool.acquire().await?;
        match connection.call(args).await {
            Err(lost) if lost.is_connection_lost() && C::METHOD.idempotent => {
                drop(connection);
                self.pool.acquire_new().await?.call(args).await
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_idl::{admin, thrift2};

    /// Every method of both services is either declared idempotent or known to change something, so a
    /// new method of the interface fails here until it is classified.
    #[test]
    fn every_method_is_decided() {
        let changes = [
            "put",
            "checkAndPut",
            "putMultiple",
            "deleteSingle",
            "deleteMultiple",
            "checkAndDelete",
            "increment",
            "append",
            "openScanner",
            "getScannerRows",
            "closeScanner",
            "mutateRow",
            "checkAndMutate",
            "createTable",
            "deleteTable",
            "truncateTable",
            "enableTable",
            "disableTable",
            "addColumnFamily",
            "deleteColumnFamily",
            "modifyColumnFamily",
            "modifyTable",
            "createNamespace",
            "modifyNamespace",
            "deleteNamespace",
            "clearSlowLogResponses",
            "grant",
            "revoke",
            "basaltFlush",
            "basaltCompact",
            "basaltPause",
            "basaltClearBlockCache",
            "basaltSplit",
            "basaltMerge",
            "basaltMove",
            "basaltAssign",
            "basaltUnassign",
            "basaltBalance",
            "basaltSetQuota",
            "basaltSnapshot",
            "basaltDeleteSnapshot",
            "basaltCloneSnapshot",
            "basaltRestoreSnapshot",
            "basaltReset",
            "basaltAdvanceClock",
            "basaltSetFaults",
        ];
        for method in thrift2::SERVICE.methods.iter().chain(admin::SERVICE.methods) {
            assert_ne!(
                method.idempotent,
                changes.contains(&method.name),
                "{}",
                method.name
            );
        }
    }
}
