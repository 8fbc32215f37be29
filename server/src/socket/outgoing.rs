//! HTTP clients for other servers' ports, in clear or under TLS.

use std::error::Error;
use std::path::Path;

/// A client for the HTTP port of another server, to be completed by the caller, and the port's URL
/// without a slash at its end.
///
/// `address` is a URL or HOST:PORT; a URL decides by itself between clear text and TLS. `ca` is the PEM
/// file of the only authority that the client accepts.
///
/// # Errors
///
/// A sentence that names the file, if it cannot be read or has no certificate.
pub(crate) fn http_client(
    address: &str,
    ca: Option<&Path>,
) -> Result<(reqwest::ClientBuilder, String), String> {
    // The library of HTTP takes TLS's cryptography from the process. It may be there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder();
    if let Some(file) = ca {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let pem = std::fs::read(file).map_err(|error| wrong(&error))?;
        let certificate = reqwest::Certificate::from_pem(&pem).map_err(|error| wrong(&error))?;
        client = client.tls_certs_only([certificate]);
    }
    let scheme = if ca.is_some() { "https" } else { "http" };
    let url = if address.contains("://") {
        address.trim_end_matches('/').to_owned()
    } else {
        format!("{scheme}://{address}")
    };
    Ok((client, url))
}

/// An error with its causes: the library's text alone does not say what failed.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
