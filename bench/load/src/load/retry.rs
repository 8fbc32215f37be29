//! Retries, as HBase's own clients make them: a refused call is sent again after a pause that
//! doubles.

use std::time::Duration;

use basalt_client::ErrorKind;

/// Tries of one call, and the pauses between them: half a minute in all, which a server that throttles may
/// need.
const TRIES: u32 = 36;
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Calls that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Failed calls, retried ones included.
    pub calls: u64,
    /// The text of the first.
    pub first: Option<String>,
}

impl Failures {
    pub(crate) fn add(&mut self, other: Failures) {
        self.calls += other.calls;
        self.first = self.first.take().or(other.first);
    }

    /// One more.
    pub(crate) fn count(&mut self, error: &basalt_client::Error) {
        self.calls += 1;
        self.first.get_or_insert_with(|| error.to_string());
    }
}

/// Makes a call until it succeeds, fails for good or has failed too often; `None` then. Calls that
/// may have been carried out are sent again as well, so they must be idempotent.
pub async fn retried<T, F>(failures: &mut Failures, mut call: impl FnMut() -> F) -> Option<T>
where
    F: Future<Output = basalt_client::Result<T>>,
{
    let mut pause = PAUSE;
    for _ in 0..TRIES {
        let error = match call().await {
            Ok(result) => return Some(result),
            Err(error) => error,
        };
        failures.count(&error);
        if !matches!(error.kind(), ErrorKind::Retry | ErrorKind::Unknown) {
            return None;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(can_retry: bool) -> basalt_client::Error {
        basalt_client::Error::Server {
            method: "put",
            message: "not now".to_owned(),
            can_retry,
        }
    }

    #[tokio::test]
    async fn a_refusal_for_now_is_tried_again_and_one_for_good_is_not() {
        let mut failures = Failures::default();
        let mut answers = vec![Ok(7), Err(refusal(true)), Err(refusal(true))];
        let found = retried(&mut failures, || std::future::ready(answers.pop().unwrap())).await;
        assert_eq!((found, failures.calls), (Some(7), 2));
        let mut answers = vec![Ok(7), Err(refusal(false))];
        let found = retried(&mut failures, || std::future::ready(answers.pop().unwrap())).await;
        assert_eq!((found, failures.calls, answers.len()), (None, 3, 1));
        assert_eq!(failures.first.as_deref(), Some("not now"));
    }
}
