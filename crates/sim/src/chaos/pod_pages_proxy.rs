//! The way from one controller to the metrics pages of pods, with what can be wrong with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocations::Owner;
use tokio::time::sleep;

use super::active_faults::ActiveFaults;
use super::fault::AutoscalerFault;
use super::mutation::Mutation;
use crate::threads::locked;
use crate::world::PodNetwork;
use wva::signals::metrics_page::FamilyReader;
use wva::signals::{MetricFamilies, PageAnswer, PageReadError, PageUrl, PodPages};
use wva_supervise::Clock;

#[derive(Debug, Clone, Copy)]
pub(super) struct PageRead {
    pub(super) at: Duration,
    pub(super) sum: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PageReads(Arc<Mutex<BTreeMap<String, PageRead>>>);

impl PageReads {
    fn note(&self, address: &str, at: Duration, page: &MetricFamilies) {
        let _scope = Owner::NONE.enter();
        let samples = page.values().flat_map(|family| family.samples.values());
        let sum = samples.map(|sample| sample.value).sum();
        locked(&self.0).insert(address.to_owned(), PageRead { at, sum });
    }

    pub(super) fn last(&self, address: &str) -> Option<PageRead> {
        locked(&self.0).get(address).copied()
    }
}

#[derive(Debug, Clone)]
pub(super) struct PodPagesProxy {
    pub(super) inner: PodNetwork,
    pub(super) ills: ActiveFaults,
    pub(super) clock: Clock,
    pub(super) reads: PageReads,
    pub(super) mutation: Option<Mutation>,
}

impl PodPages for PodPagesProxy {
    fn read(&self, page: PageUrl, wanted: Vec<Arc<str>>, deadline: Duration) -> PageAnswer {
        let this = self.clone();
        Box::pin(async move {
            let text = page.to_string();
            let address = text.trim_start_matches("http://").split(':').next();
            let address = address.unwrap_or_default().to_owned();
            let series = wanted.clone();
            let answer = match this.fails(&address, deadline).await {
                Some(error) => Err(error),
                None => this.inner.read(page, wanted, deadline).await,
            };
            if let Ok(page) = &answer {
                this.reads.note(&address, this.clock.now().monotonic, page);
            }
            match answer {
                Err(_) if this.mutation == Some(Mutation::FailedReadZero) => zeros(series),
                answer => answer,
            }
        })
    }
}

impl PodPagesProxy {
    async fn fails(&self, address: &str, deadline: Duration) -> Option<PageReadError> {
        for (id, fault, _) in self.ills.pages() {
            let is_hit = match fault {
                AutoscalerFault::PagesDown | AutoscalerFault::PagesHang => true,
                AutoscalerFault::PagesPartial => address.ends_with(['0', '2', '4', '6', '8']),
                AutoscalerFault::Removed(_) => false,
            };
            if !is_hit {
                continue;
            }
            self.ills.hit(id);
            if fault == AutoscalerFault::PagesHang {
                sleep(deadline).await;
                return Some(PageReadError::Timeout(deadline));
            }
            let cause = "connection refused".to_owned();
            return Some(PageReadError::Unreachable(cause));
        }
        None
    }
}

fn zeros(series: Vec<Arc<str>>) -> Result<MetricFamilies, PageReadError> {
    let lines: Vec<String> = series.iter().map(|name| format!("{name} 0\n")).collect();
    let mut reader = FamilyReader::new(series);
    reader.feed(lines.concat().as_bytes())?;
    Ok(reader.finish()?)
}
