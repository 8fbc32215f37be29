//! Memory of answers that list tables, regions and the like: reserved before a handler collects
//! anything ([`listing`]), and kept by the connection until the client has received the answer.

use basalt_idl::admin::Method;

use super::handlers::{Called, Context, Result};
use crate::server::Server;
use crate::service::Call;
use crate::service::listing::{self, Listing};

impl Context<'_> {
    /// Reserves the memory of the call's answer.
    pub(super) async fn reserve_listing(&mut self, listing: Listing<'_>) -> Result<()> {
        listing::reserve(self.server, listing, self.call.reply()).await
    }
}

/// Reserves the memory of the answer to a call whose handler has no [`Context`]: those of BasaltAdmin
/// have only the server.
pub(super) async fn reserve(server: &Server, called: Called, call: &mut Call<'_>) -> Result<()> {
    let Called::Admin(method) = called else {
        return Ok(());
    };
    let listing = match method {
        // All of these walk over all regions.
        Method::BasaltRegionMetrics | Method::BasaltMemstoreState | Method::BasaltServerStatus => {
            Listing::Regions
        }
        Method::BasaltBalance => Listing::Cluster,
        Method::BasaltListQuotas => Listing::Quotas,
        Method::BasaltListSnapshots => Listing::Snapshots,
        _ => return Ok(()),
    };
    listing::reserve(server, listing, call.reply()).await
}
