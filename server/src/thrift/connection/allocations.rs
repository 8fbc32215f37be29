//! Goal: the allocations of a call are known and bounded. Method: a real socket, a server on a real
//! disk, and all of it, client included, on one thread whose allocations are counted. The client's
//! part makes none.

use std::sync::Arc;

use allocation_counter::measure;
use basalt_engine::options::{Background, Options, WalSync};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::call::{Call, write_call};
use basalt_idl::thrift2::{TColumnIncrement, TColumnValue, TGet, TIncrement, TPut, args};
use basalt_idl::wire::BinaryWriter;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tests::connect_to;
use crate::config::Config;

/// Calls that are counted together.
const CALLS: u32 = 1_000;

/// A framed message.
fn framed<C: Call>(call: &C) -> Vec<u8> {
    let mut message = vec![0; 4];
    write_call(&mut BinaryWriter::new(&mut message), 7, call);
    let length = u32::try_from(message.len() - 4).unwrap();
    message[..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// Sends a message `times` times, each after the reply to the last one. Returns the last reply.
async fn send(client: &mut TcpStream, message: &[u8], times: u32, reply: &mut Vec<u8>) {
    for _ in 0..times {
        client.write_all(message).await.unwrap();
        let length = client.read_u32().await.unwrap() as usize;
        reply.resize(length, 0);
        client.read_exact(reply).await.unwrap();
    }
}

#[test]
fn calls_allocate_as_much_as_is_stated() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config::default();
    let options = Options {
        background: Background::Manual,
        wal_sync: WalSync::Os,
        ..config.engine_options()
    };
    let engine = crate::rig::engine_in(&dir.path().join("data"), options);
    let table = TableName::parse(b"t").unwrap();
    let descriptor = TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new(b"f")]);
    engine.create_table(descriptor, Vec::new()).unwrap();
    let server = Arc::new(crate::rig::server_of(Arc::clone(&engine), config, 4));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut client, _served) = runtime.block_on(connect_to(server));

    let name = Bytes::from_static(b"t");
    let put = framed(&args::Put {
        table: name.clone(),
        tput: TPut {
            row: Bytes::from_static(b"row"),
            column_values: vec![TColumnValue {
                family: Bytes::from_static(b"f"),
                qualifier: Bytes::from_static(b"q"),
                value: Bytes::from(vec![7; 100]),
                ..TColumnValue::default()
            }],
            ..TPut::default()
        },
    });
    let increment = framed(&args::Increment {
        table: name.clone(),
        tincrement: TIncrement {
            row: Bytes::from_static(b"counter"),
            columns: vec![TColumnIncrement {
                family: Bytes::from_static(b"f"),
                qualifier: Bytes::from_static(b"q"),
                amount: 1,
            }],
            ..TIncrement::default()
        },
    });
    let get = framed(&args::Get {
        table: name,
        tget: TGet {
            row: Bytes::from_static(b"row"),
            ..TGet::default()
        },
    });
    let mut reply = Vec::with_capacity(4096);
    // The expected numbers, 4, 6 and 15, and half of one more for occasional ones, as a chunk of a
    // memstore.
    for (what, message, most) in [
        ("put", &put, 4.5),
        ("get", &get, 6.5),
        ("increment", &increment, 15.5),
    ] {
        runtime.block_on(send(&mut client, message, 100, &mut reply));
        if what == "get" {
            assert!(
                reply.windows(100).any(|value| value == [7; 100]),
                "the value is in the reply"
            );
        }
        let counted = measure(|| runtime.block_on(send(&mut client, message, CALLS, &mut reply)));
        let each = |count: u64| count as f64 / f64::from(CALLS);
        let (allocations, bytes) = (each(counted.count_total), each(counted.bytes_total));
        println!("{what}: {allocations:.1} allocations of {bytes:.0} bytes together");
        assert!(
            allocations <= most,
            "{what}: {allocations} allocations, {most} are stated"
        );
        engine.flush(&table).unwrap();
    }
    engine.close().unwrap();
}
