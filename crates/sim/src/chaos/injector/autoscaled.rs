//! PodAutoscalers that are removed and created again.

use serde_json::{Value, json};

use super::Injector;
use crate::apiserver::Denied;
use crate::world::{AUTOSCALER_PLURAL, AUTOSCALERS};
use wva::policy::pod_autoscaler::object::API_VERSION;

impl Injector {
    fn autoscalers(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.scenario.autoscaled.iter().flat_map(|autoscaled| {
            let variants = autoscaled.model.variants.iter();
            variants.map(|variant| (variant.name, self.labelled(autoscaled.object(variant))))
        })
    }

    pub(super) async fn settle_autoscalers(&self) -> Result<(), Denied> {
        for (name, object) in self.autoscalers() {
            let path = self.at(API_VERSION, AUTOSCALER_PLURAL, name);
            self.server.merge(&path, &object).await?;
        }
        Ok(())
    }

    pub(in crate::chaos) async fn remove_autoscaler(&self, number: usize) -> bool {
        let Some((name, _)) = self.autoscalers().nth(number) else {
            return false;
        };
        let path = self.at(API_VERSION, AUTOSCALER_PLURAL, name);
        self.server.delete(&path, &json!({})).await.is_ok()
    }

    pub(in crate::chaos) async fn restore_autoscaler(&self, number: usize) {
        let Some((name, object)) = self.autoscalers().nth(number) else {
            return;
        };
        let stored = (self.server).get(AUTOSCALERS, self.scenario.namespace, name);
        if stored.is_some() {
            return;
        }
        let all = self.at(API_VERSION, AUTOSCALER_PLURAL, "");
        if let Err(denied) = self.server.create(&all, &object).await {
            tracing::warn!(%denied, name, "a PodAutoscaler is not put back");
        }
    }
}
