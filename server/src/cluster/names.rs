//! Names of servers.

use std::net::SocketAddr;

use basalt_engine::engine::ServerName;

/// Host and port that native clients connect to: `server.advertise`, or the bound address.
pub(crate) fn advertised(setting: &str, bound: SocketAddr) -> (String, u16) {
    match setting.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() => {
            // `Config::validate` has checked the port.
            (host.to_owned(), port.parse().unwrap_or(bound.port()))
        }
        _ if setting == "auto" => (bound.ip().to_string(), bound.port()),
        _ => (setting.to_owned(), bound.port()),
    }
}

/// The names of the `servers` virtual servers of a rehearsal, or of the one server at `host` if
/// there is none.
pub(crate) fn server_names(servers: usize, host: &str, port: u16, start_code: u64) -> Vec<ServerName> {
    let name = |host| ServerName {
        host,
        port,
        start_code,
    };
    if servers == 0 {
        return vec![name(host.to_owned())];
    }
    (1..=servers).map(virtual_host).map(name).collect()
}

/// The host name of a virtual server, from 1 on. Metrics use it as a label.
pub(crate) fn virtual_host(number: usize) -> String {
    format!("rehearsal-{number}")
}
