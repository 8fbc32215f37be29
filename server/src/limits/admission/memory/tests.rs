use std::sync::atomic::AtomicBool;

use basalt_engine::cell::{Cell, CellBatch, CellType, KeyBuf};
use basalt_engine::id::SeqId;

use super::*;

fn memory(limit: u64) -> Arc<Memory> {
    Arc::new(Memory::new(limit, Counter::noop(), Counter::noop()))
}

fn add(batch: &mut CellBatch, value: &[u8]) -> basalt_engine::Result<()> {
    let key = KeyBuf::new(b"r", b"f", b"q", 1, CellType::Put);
    batch.add(Cell {
        key: key.as_key(),
        value,
        tags: b"",
        seq: SeqId(1),
    })
}

#[test]
fn memory_is_counted_beyond_what_is_free() {
    let memory = memory(8_000);
    let mut permit = MemoryPermit::empty(&memory);
    permit.set(FREE_BYTES);
    assert_eq!(memory.used(), 0);
    assert!(permit.try_raise(FREE_BYTES + 6_999));
    memory.check().unwrap();
    let mut other = MemoryPermit::empty(&memory);
    assert!(other.try_raise(FREE_BYTES + 1));
    assert!(!other.try_raise(FREE_BYTES + 2), "the last eighth is for results");
    let refused = memory.check().unwrap_err();
    assert!(
        refused.to_string().contains("requests.memory_bytes is 8000"),
        "{refused}"
    );
    drop(permit);
    memory.check().unwrap();
    assert_eq!((memory.used(), memory.room()), (1, 7_999));
    other.join(&mut MemoryPermit::empty(&memory));
    drop(other);
    assert_eq!(memory.used(), 0);
}

/// Goal: the limit is hard. Method: threads reserve and release at random while the sum is checked.
#[test]
fn reservations_never_exceed_the_limit() {
    let memory = memory(80_000);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..=4_u64 {
            let (memory, stop) = (&memory, &stop);
            scope.spawn(move || {
                let mut state = seed;
                for _ in 0..20_000 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let bytes = (state >> 33) % 60_000;
                    let purpose = if bytes % 2 == 0 {
                        Purpose::Arrive
                    } else {
                        Purpose::Serve
                    };
                    if memory.try_reserve(bytes, purpose) {
                        std::hint::spin_loop();
                        memory.release(bytes);
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        while !stop.load(Ordering::Relaxed) {
            let used = memory.used();
            assert!(used <= memory.limit(), "{used}");
        }
    });
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn a_reservation_waits_for_memory_and_is_refused_after_a_while() {
    let memory = memory(8_000);
    let mut permit = MemoryPermit::empty(&memory);
    permit.add(7_000, Purpose::Arrive).await.unwrap();
    let mut other = MemoryPermit::empty(&memory);
    let refused = other.add(1, Purpose::Arrive).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Busy::Memory {
                used: 7_000,
                wanted: 1,
                limit: 8_000
            }
        ),
        "{refused}"
    );
    other
        .add(1_000, Purpose::Serve)
        .await
        .expect("a result may have the rest");
    drop(other);
    let mut waits = MemoryPermit::empty(&memory);
    let mut waiting = std::pin::pin!(waits.add(5_000, Purpose::Arrive));
    assert!(futures_poll(&mut waiting).is_none());
    drop(permit);
    waiting.await.unwrap();
    assert_eq!(memory.used(), 5_000);
}

#[tokio::test]
async fn impossible_reservations_are_refused_at_once_with_another_word() {
    let memory = memory(8_000);
    let refused = MemoryPermit::empty(&memory)
        .add(7_001, Purpose::Arrive)
        .await
        .unwrap_err();
    assert_eq!(
        refused,
        Busy::TooLarge {
            wanted: 7_001,
            limit: 8_000
        }
    );
    let mut batch = CellBatch::charged_to(memory.clone());
    batch.set_on_shortage(OnShortage::Wait);
    let refused = add(&mut batch, &vec![0; 100_000]).unwrap_err();
    assert!(matches!(refused, Error::DoNotRetry(_)), "{refused}");
}

/// A read on a network thread does not wait, a read on the pool does, and a read under a row's lock
/// is refused.
#[test]
fn a_result_asks_as_its_thread_may() {
    let memory = memory(800_000);
    let mut permit = MemoryPermit::empty(&memory);
    assert!(permit.try_raise(FREE_BYTES + 600_000));
    let mut batch = CellBatch::charged_to(memory.clone());
    add(&mut batch, &[0; 10_000]).expect("a small result is free");
    assert_eq!(memory.used(), 600_000);
    assert!(matches!(
        add(&mut batch, &vec![0; 200_000]),
        Err(Error::NotInMemory)
    ));
    batch.set_on_shortage(OnShortage::Refuse);
    assert!(matches!(
        add(&mut batch, &vec![0; 200_000]),
        Err(Error::CallMemory(_))
    ));
    assert_eq!(
        (batch.cell_count(), memory.used()),
        (1, 600_000),
        "nothing was taken"
    );
    batch.set_on_shortage(OnShortage::Wait);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| add(&mut batch, &vec![0; 200_000]));
        while memory.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        drop(permit);
        waits.join().expect("no panic").expect("there is memory now");
    });
    assert!(memory.used() >= 200_000 - FREE_BYTES as u64);
    drop(batch);
    assert_eq!(memory.used(), 0);
}

#[test]
fn arguments_of_open_scanners_have_a_share() {
    let memory = memory(8_000);
    let first = memory.for_scanner(1_500).expect("there is memory");
    assert!(memory.for_scanner(501).is_none());
    let second = memory.for_scanner(500).expect("up to the share");
    drop((first, second));
    assert_eq!(memory.used(), 0);
    assert!(memory.for_scanner(2_000).is_some());
}

#[tokio::test]
async fn a_slow_client_is_dropped_for_a_reservation() {
    let memory = memory(8_000);
    let mut message = MemoryPermit::empty(&memory);
    message.add(7_000, Purpose::Arrive).await.unwrap();
    let client = memory.slow_client(None, message.bytes());
    let slow = tokio::spawn(async move {
        client.dropped().await;
        drop(message);
    });
    MemoryPermit::empty(&memory)
        .add(1, Purpose::Arrive)
        .await
        .expect("the slow one has made room");
    slow.await.unwrap();
}

fn futures_poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
