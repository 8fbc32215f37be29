//! Commands that move regions between the virtual servers of a rehearsal, as HBase's do between region
//! servers.

use super::ShellResult;
use super::arguments::{Arguments, text};
use super::session::{Outcome, Session};

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
        arguments.end()?;
        let moved = self.admin.balance().await?;
        self.output
            .line(&format!("Balancer ran, moved {moved} regions"))?;
        Ok(Some("true".to_owned()))
    }

    async fn named_region(&self, arguments: &mut Arguments) -> ShellResult<bytes::Bytes> {
        self.region_name(arguments.bytes("a region")?).await
    }
}
