//! Key layouts, the order of feeds, tags, and refused input. The application on a server is in the
//! workspace's black-box tests.

use proptest::prelude::*;

use super::feed::merge;
use super::keys::{FeedOrder, hash, related, relation};
use super::*;

fn twit(author: &str, time_ms: i64, number: u32) -> Twit {
    Twit {
        author: author.to_owned(),
        time_ms,
        number,
        text: "text".to_owned(),
    }
}

/// MD5 of `ada` by md5sum.
#[test]
fn keys_have_the_documented_layout() {
    let ada = hash("ada");
    let hex: String = ada
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(hex, "8c8d357b5e872bbacd45197626bd5759");
    let order = FeedOrder::new(ada, 1, 2);
    let time = [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe];
    let number = [0xff, 0xff, 0xff, 0xfd];
    assert_eq!(order.twit_key(), [&ada[..], &time, &number].concat());
    let reader = hash("grace");
    assert_eq!(
        order.copy_key(reader),
        [&reader[..], &time, &ada, &number].concat()
    );
    assert_eq!(related(&relation(ada, reader)), Some(reader));
    assert_eq!((related(&ada), related(b"short")), (None, None));
}

proptest! {
    /// A twit's place can be read from both kinds of keys, and both sort as feeds do.
    #[test]
    fn keys_sort_as_feeds_do(
        twits in prop::collection::vec(("[ab]", 0..3i64, 1..4u32), 2..10),
    ) {
        let mut orders: Vec<FeedOrder> =
            twits.iter().map(|(author, time, number)| FeedOrder::new(hash(author), *time, *number)).collect();
        orders.sort();
        let reader = hash("reader");
        let copies: Vec<_> = orders.iter().map(|order| order.copy_key(reader)).collect();
        prop_assert!(copies.is_sorted());
        for order in &orders {
            prop_assert_eq!(FeedOrder::of_copy(&order.copy_key(reader)), Some(*order));
            prop_assert_eq!(FeedOrder::of_twit(&order.twit_key()), Some(*order));
        }
        let of_one: Vec<_> = orders.iter().filter(|order| order.twit_key().starts_with(&hash("a"))).collect();
        let keys: Vec<_> = of_one.iter().map(|order| order.twit_key()).collect();
        prop_assert!(keys.is_sorted());
    }

    #[test]
    fn any_bytes_can_be_a_key(row in prop::collection::vec(any::<u8>(), 0..50)) {
        if let Some(order) = FeedOrder::of_twit(&row) {
            prop_assert_eq!(order.twit_key(), row.clone());
        }
        if let Some(order) = FeedOrder::of_copy(&row) {
            let of = row[..16].try_into().unwrap();
            prop_assert_eq!(order.copy_key(of), row);
        }
    }
}

#[test]
fn a_gathered_feed_is_newest_first_and_ends_at_its_limit() {
    let sources = vec![
        vec![twit("ada", 9, 2), twit("ada", 3, 1)].into_iter(),
        Vec::new().into_iter(),
        vec![twit("grace", 7, 3), twit("grace", 7, 2), twit("grace", 1, 1)].into_iter(),
    ];
    let found: Vec<(i64, u32)> = merge(sources, 4)
        .iter()
        .map(|twit| (twit.time_ms, twit.number))
        .collect();
    assert_eq!(found, [(9, 2), (7, 3), (7, 2), (3, 1)]);
}

#[test]
fn twits_of_one_moment_have_one_order_for_every_source() {
    let (ada, grace) = (twit("ada", 5, 1), twit("grace", 5, 1));
    let feed = |sources: [&Twit; 2]| merge(sources.map(|twit| vec![twit.clone()].into_iter()).into(), 9);
    assert_eq!(feed([&ada, &grace]), feed([&grace, &ada]));
}

#[test]
fn tags_are_words_behind_a_hash_sign() {
    let tags = |text: &str| {
        let twit = Twit {
            text: text.to_owned(),
            ..twit("ada", 1, 1)
        };
        twit.tags()
    };
    assert_eq!(tags("#b, #A! (#b) c#d ## #"), ["a", "b"]);
    assert!(tags("nothing").is_empty());
}

#[test]
fn texts_that_do_not_fit_are_refused() {
    for name in ["", "a b", "a:b", &"x".repeat(31)] {
        let text = check_name(name).unwrap_err().to_string();
        assert!(text.contains("1 to 30 letters"), "{text}");
    }
    assert!(check_name(&"x".repeat(30)).is_ok());
    let long = check_text(&"é".repeat(281)).unwrap_err().to_string();
    assert!(long.contains("281 characters") && long.contains("280"), "{long}");
    assert!(check_text(&"é".repeat(280)).is_ok() && check_text("").is_err());
}
