//! Commands that move regions between the virtual servers of a rehearsal, as HBase's do between region
//! servers.

use super::arguments::{Arguments, text};
use super::session::{Outcome, Session};
use super::value::Value;
use super::{ShellError, ShellResult};

impl Session {
    pub(super) async fn move_region(&mut self, mut arguments: Arguments) -> Outcome {
        let region = self.named_region(&mut arguments).await?;
        let server = arguments.optional_bytes("a server")?;
        arguments.end()?;
        let server = server.map(|server| text(server, "a server")).transpose()?;
        self.admin.move_region(region, server).await?;
        Ok(None)
    }

    pub(super) async fn assign(&mut self, mut arguments: Arguments) -> Outcome {
        let region = self.named_region(&mut arguments).await?;
        arguments.end()?;
        self.admin.assign(region).await?;
        Ok(None)
    }

    pub(super) async fn unassign(&mut self, mut arguments: Arguments) -> Outcome {
        let region = self.named_region(&mut arguments).await?;
        arguments.end()?;
        self.admin.unassign(region).await?;
        Ok(None)
    }

    /// Prints whether the balancer ran, as HBase does, and how many regions it moved.
    pub(super) async fn balancer(&mut self, mut arguments: Arguments) -> Outcome {
        match arguments.optional_text("a mode")?.as_deref() {
            None | Some("force" | "ignore_rit") => {}
            Some("dry_run") => {
                arguments.end()?;
                return self.balance_dry_run().await;
            }
            Some(other) => {
                let text = format!("the mode is '{other}' and must be 'force', 'ignore_rit' or 'dry_run'");
                return Err(ShellError::Arguments(text));
            }
        }
        arguments.end()?;
        let moved = self.admin.balance().await?;
        let text = format!("Balancer ran, moved {moved} regions");
        self.output.note(&text)?;
        Ok(Some(Value::Bool(true)))
    }

    async fn named_region(&self, arguments: &mut Arguments) -> ShellResult<bytes::Bytes> {
        self.region_name(arguments.bytes("a region")?).await
    }
}
