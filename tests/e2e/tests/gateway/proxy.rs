//! A proxy in front of a server that cuts connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use basalt_test_support::free_address;

/// A proxy. It ends with the process.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// Where it connects to.
    target: Mutex<SocketAddr>,
    open: Mutex<Vec<TcpStream>>,
    /// Set: what the server sends next is swallowed, and the connection is cut.
    swallows: AtomicBool,
}

impl Proxy {
    /// Listens at a free address. The target is set later: it may need the proxy's address.
    pub(crate) fn start() -> Self {
        let address = free_address();
        let listener = TcpListener::bind(address).expect("a free address");
        let shared = Arc::new(Shared {
            target: Mutex::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            open: Mutex::default(),
            swallows: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accepting.serve(client);
            }
        });
        Self { address, shared }
    }

    pub(crate) fn set_target(&self, target: SocketAddr) {
        *self.shared.target.lock().expect("no panics") = target;
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        for stream in self.shared.open.lock().expect("no panics").drain(..) {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Swallows the server's next bytes, and cuts their connection.
    pub(crate) fn swallow_next(&self) {
        self.shared.swallows.store(true, Ordering::SeqCst);
    }

    /// Whether that has happened.
    pub(crate) fn has_swallowed(&self) -> bool {
        !self.shared.swallows.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn serve(self: &Arc<Self>, client: TcpStream) {
        let target = *self.target.lock().expect("no panics");
        let Ok(server) = TcpStream::connect(target) else {
            return;
        };
        let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        self.open
            .lock()
            .expect("no panics")
            .extend([copy(&client), copy(&server)]);
        let (from_client, to_server) = (copy(&client), copy(&server));
        std::thread::spawn(move || pass(from_client, to_server, || false));
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            pass(server, client, || shared.swallows.swap(false, Ordering::SeqCst));
        });
    }
}

/// Passes bytes on until either side ends, or `cuts` says so.
fn pass(mut from: TcpStream, mut to: TcpStream, cuts: impl Fn() -> bool) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if cuts() || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for stream in [&from, &to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
